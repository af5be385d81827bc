//! When to acknowledge received bytes (RTMP 1.0 section 5.4.3).

/// Counts received bytes, and says when the peer is due an acknowledgement.
#[derive(Clone, Debug)]
pub(crate) struct Acknowledger {
    window: u32,
    /// Modulo 2³², like the sequence number on the wire.
    received: u32,
    acknowledged: u32,
}

impl Acknowledger {
    pub(crate) fn new(window: u32) -> Self {
        Self { window, received: 0, acknowledged: 0 }
    }

    /// The peer asks for an acknowledgement each `window` bytes. Zero asks for none.
    pub(crate) fn set_window(&mut self, window: u32) {
        self.window = window;
    }

    /// Counts bytes. Returns the sequence number to acknowledge, once for each full window.
    pub(crate) fn receive(&mut self, bytes: usize) -> Option<u32> {
        self.received = self.received.wrapping_add(bytes as u32);
        let due = self.window > 0 && self.received.wrapping_sub(self.acknowledged) >= self.window;
        due.then(|| {
            self.acknowledged = self.received;
            self.received
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_full_window_is_acknowledged_once() {
        let mut acknowledger = Acknowledger::new(100);
        assert_eq!(acknowledger.receive(99), None);
        assert_eq!(acknowledger.receive(1), Some(100));
        assert_eq!(acknowledger.receive(99), None);
        assert_eq!(acknowledger.receive(151), Some(350));
    }

    #[test]
    fn the_sequence_number_wraps() {
        let mut acknowledger = Acknowledger::new(100);
        assert_eq!(acknowledger.receive(u32::MAX as usize), Some(u32::MAX));
        assert_eq!(acknowledger.receive(99), None);
        assert_eq!(acknowledger.receive(1), Some(99));
    }

    #[test]
    fn a_window_of_zero_asks_for_nothing() {
        assert_eq!(Acknowledger::new(0).receive(1000), None);
    }
}
