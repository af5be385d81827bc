//! When to ask for a keyframe: at the start, and after a loss that nothing else repairs.

use std::time::Duration;

use weir_metrics::Moment;

/// How to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PictureRequestSettings {
    /// The least time between two requests.
    pub interval: Duration,
    /// How often to ask at the start while no keyframe is seen. Where keyframes cannot be seen, one is right.
    pub tries: u8,
}

impl Default for PictureRequestSettings {
    fn default() -> Self {
        Self { interval: Duration::from_secs(1), tries: 10 }
    }
}

/// The need of one stream for a keyframe.
#[derive(Clone, Copy, Debug)]
pub struct PictureRequests {
    settings: PictureRequestSettings,
    /// Requests left for the need at hand.
    tries: u8,
    /// When to ask next, at the earliest.
    due: Option<Moment>,
    sent: u64,
}

impl PictureRequests {
    /// Nothing is needed yet.
    pub fn new(settings: PictureRequestSettings) -> Self {
        Self { settings, tries: 0, due: None, sent: 0 }
    }

    /// The stream begins: a keyframe is needed to start with.
    pub fn start(&mut self, now: Moment) {
        self.need(now, self.settings.tries);
    }

    /// Something was lost for good.
    pub fn lost(&mut self, now: Moment) {
        self.need(now, 1);
    }

    fn need(&mut self, now: Moment, tries: u8) {
        self.tries = self.tries.max(tries);
        self.due.get_or_insert(now);
    }

    /// A keyframe was seen: what was lost before it does not matter any more.
    pub fn keyframe(&mut self) {
        self.tries = 0;
    }

    /// Whether to ask now.
    pub fn poll(&mut self, now: Moment) -> bool {
        if self.poll_timeout().is_none_or(|due| due > now) {
            return false;
        }
        self.tries -= 1;
        self.due = Some(now + self.settings.interval);
        self.sent += 1;
        true
    }

    /// When to call [`Self::poll`]; `None` while nothing is needed.
    pub fn poll_timeout(&self) -> Option<Moment> {
        self.due.filter(|_| self.tries > 0)
    }

    /// Requests so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn the_start_asks_until_a_keyframe_is_seen() {
        let mut requests = PictureRequests::new(PictureRequestSettings::default());
        assert!(!requests.poll(at(0)));
        requests.start(at(5));
        assert!(requests.poll(at(5)));
        assert!(!requests.poll(at(6)));
        assert_eq!(requests.poll_timeout(), Some(at(1005)));
        assert!(requests.poll(at(1005)));
        requests.keyframe();
        assert_eq!((requests.poll_timeout(), requests.sent()), (None, 2));
    }

    #[test]
    fn losses_ask_once_an_interval() {
        let mut requests = PictureRequests::new(PictureRequestSettings::default());
        let asked = (0..3000).filter(|&millis| {
            requests.lost(at(millis));
            requests.poll(at(millis))
        });
        assert_eq!(asked.collect::<Vec<_>>(), [0, 1000, 2000]);
    }
}
