//! Whether a viewer that is sent nothing is still there. One that waits for a publisher may wait for hours, with nothing to
//! say and nothing to acknowledge: it is asked (User Control PingRequest, RTMP specification section 7.1.7), and a client
//! has to answer.

use std::time::Duration;
use weir_metrics::Moment;

/// Looks in the longest silence that the origin allows: a question, and two for the answer, fit between two signs of life.
const LOOKS: u32 = 4;
/// Looks until an answer must have come.
const LOOKS_TO_ANSWER: u32 = 2;

/// What is known of one viewer.
#[derive(Debug)]
pub(super) struct Liveness {
    interval: Duration,
    next: Moment,
    /// Bytes that it had been sent at the last look.
    sent: u64,
    /// When it was asked, if it has said nothing since.
    asked: Option<Moment>,
}

/// What a look at a viewer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Nothing is to be done.
    Wait,
    /// It is to be asked whether it is there.
    Ask,
    /// It has not answered.
    Gone,
}

impl Liveness {
    /// Of a viewer that came now, to an origin that allows a silence of `idle`.
    pub(super) fn new(idle: Duration, now: Moment) -> Self {
        // Not without end at one moment, however impatient the origin is.
        let interval = (idle / LOOKS).max(Duration::from_millis(1));
        Self { interval, next: now + interval, sent: 0, asked: None }
    }

    /// It has said something.
    pub(super) fn on_bytes(&mut self) {
        self.asked = None;
    }

    /// It was sent the question, and `sent` bytes in all by now.
    pub(super) fn on_asked(&mut self, sent: u64) {
        self.sent = sent;
    }

    /// When to look.
    pub(super) fn poll_timeout(&self) -> Moment {
        self.next
    }

    /// Looks, if it is time to: it has been sent `sent` bytes. What a viewer that is sent media takes of it is seen by the
    /// shard, so that only one that is sent nothing is asked.
    pub(super) fn look(&mut self, now: Moment, sent: u64) -> Look {
        if now < self.next {
            return Look::Wait;
        }
        self.next = now + self.interval;
        if std::mem::replace(&mut self.sent, sent) != sent {
            self.asked = None;
            return Look::Wait;
        }
        match self.asked {
            None => {
                self.asked = Some(now);
                Look::Ask
            }
            Some(at) if now >= at + LOOKS_TO_ANSWER * self.interval => Look::Gone,
            Some(_) => Look::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::session::RtmpSession;
    use super::*;
    use crate::harness::settings;
    use crate::worker::Worker;
    use std::net::SocketAddr;
    use weir_rtmp::{Client, ClientEvent, ClientOptions};
    use weir_shard::{Event, Rig};

    struct Pair {
        rig: Rig<Worker>,
        session: RtmpSession,
        client: Client,
    }

    impl Pair {
        /// A viewer of a stream that has no publisher.
        fn waiting() -> Self {
            let mut rig = Rig::new(Worker::new(settings()));
            let mut session = RtmpSession::new(&mut rig.world, SocketAddr::from(([127, 0, 0, 1], 50_000)));
            rig.dispatch(&mut session, Event::Connected);
            let client = Client::new(ClientOptions::play("rtmp://h/live".to_owned(), "live", "nobody"), 1);
            let mut pair = Self { rig, session, client };
            while pair.exchange() {}
            assert!(pair.rig.established);
            pair
        }

        /// Carries what either side has said to the other. Whether there was anything.
        fn exchange(&mut self) -> bool {
            let said = std::mem::take(self.client.output());
            if !said.is_empty() {
                self.rig.dispatch(&mut self.session, Event::Bytes(&said));
            }
            let heard = self.rig.take_sent();
            self.client.input(&heard, &mut |_: ClientEvent<'_>| {}).unwrap();
            !said.is_empty() || !heard.is_empty()
        }

        fn idle(&self) -> Duration {
            self.rig.world.settings().patience.idle
        }
    }

    #[test]
    fn a_viewer_that_waits_for_a_publisher_is_asked_and_stays_as_long_as_it_answers() {
        let mut pair = Pair::waiting();
        let (idle, mut questions) = (pair.idle(), 0);
        for _ in 0..100 {
            pair.rig.advance(&mut pair.session, idle / 10);
            questions += usize::from(!pair.rig.sent.is_empty());
            while pair.exchange() {}
        }
        assert!(!pair.rig.closed);
        assert!((30..=40).contains(&questions), "{questions} in ten times the longest silence");
    }

    #[test]
    fn a_viewer_that_does_not_answer_is_let_go_after_the_longest_silence() {
        let mut pair = Pair::waiting();
        let idle = pair.idle();
        pair.rig.advance(&mut pair.session, idle - Duration::from_millis(1));
        assert!(!pair.rig.closed && !pair.rig.sent.is_empty());
        pair.rig.advance(&mut pair.session, Duration::from_millis(1));
        assert!(pair.rig.closed);
    }

    #[test]
    fn a_viewer_that_is_sent_media_is_not_asked() {
        let second = |n: u64| Moment::from_nanos(n * 1_000_000_000);
        let mut liveness = Liveness::new(Duration::from_secs(40), second(0));
        for n in 1..=10 {
            assert_eq!(liveness.look(second(10 * n), 1_000 * n), Look::Wait);
        }
        assert_eq!(liveness.look(second(110), 10_000), Look::Ask);
        liveness.on_asked(10_018);
        assert_eq!(liveness.look(second(120), 10_018), Look::Wait);
        assert_eq!(liveness.look(second(130), 11_000), Look::Wait, "it is sent something again");
        assert_eq!(liveness.look(second(140), 11_000), Look::Ask);
        liveness.on_asked(11_018);
        liveness.on_bytes();
        assert_eq!(liveness.look(second(150), 11_018), Look::Ask);
        assert_eq!(liveness.look(second(160), 11_018), Look::Wait);
        assert_eq!(liveness.look(second(170), 11_018), Look::Gone);
    }
}
