//! Requests that wait for their answers (MQTT 5 section 4.10): a publisher that names a Response Topic subscribes to it, and knows an
//! answer by its Correlation Data.

use crate::mqtt::figures::{ANSWERS, ROUND_TRIP, STRANGE_ANSWERS};
use std::collections::VecDeque;
use std::time::Duration;
use weir_metrics::{Moment, Recorder};
use weir_mqtt::ClientEvent;

/// Requests that may wait, 24 bytes each: as many as packet identifiers. Of more, the oldest has no answer.
const MOST_WAITING: usize = 65_536;

/// Bytes of the Correlation Data: the publisher and the number of its message.
pub(super) const CORRELATION: usize = 16;

/// The requests of one publisher.
#[derive(Debug)]
pub(super) struct Requests {
    pub(super) topic: String,
    publisher: u64,
    /// How long an answer may take.
    timeout: Duration,
    /// In the order of their numbers. Those with an answer go once they are the first.
    waiting: VecDeque<Request>,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    number: u64,
    sent: Moment,
    has_answer: bool,
}

impl Requests {
    pub(super) fn new(topic: String, publisher: u64, timeout: Duration) -> Self {
        Self { topic, publisher, timeout, waiting: VecDeque::new() }
    }

    /// What the answer to a message is to carry.
    pub(super) fn correlation(publisher: u64, number: u64) -> [u8; CORRELATION] {
        let mut bytes = [0; CORRELATION];
        bytes[..8].copy_from_slice(&publisher.to_be_bytes());
        bytes[8..].copy_from_slice(&number.to_be_bytes());
        bytes
    }

    /// A request was sent; how many others have no answer by that.
    pub(super) fn sent(&mut self, number: u64, now: Moment) -> u64 {
        let mut given_up = 0;
        if self.waiting.len() >= MOST_WAITING {
            given_up = u64::from(self.waiting.pop_front().is_some_and(|oldest| !oldest.has_answer));
        }
        self.waiting.push_back(Request { number, sent: now, has_answer: false });
        given_up
    }

    /// How long ago the request was sent that this answers. `None`: it has its answer, or none was waited for any more, or it is not
    /// this publisher's.
    pub(super) fn answered(&mut self, correlation: Option<&[u8]>, now: Moment) -> Option<Duration> {
        let (publisher, number) = correlation?.split_first_chunk::<8>()?;
        let number = u64::from_be_bytes(number.try_into().ok()?);
        if u64::from_be_bytes(*publisher) != self.publisher {
            return None;
        }
        let at = self.waiting.binary_search_by_key(&number, |request| request.number).ok()?;
        let request = self.waiting.get_mut(at).filter(|request| !request.has_answer)?;
        request.has_answer = true;
        let took = now.since(request.sent);
        while self.waiting.front().is_some_and(|first| first.has_answer) {
            self.waiting.pop_front();
        }
        Some(took)
    }

    /// Lets go of those that have waited for too long; how many there were.
    pub(super) fn expire(&mut self, now: Moment) -> u64 {
        let mut expired = 0;
        while let Some(first) = self.waiting.front()
            && (first.has_answer || first.sent + self.timeout <= now)
        {
            expired += u64::from(!first.has_answer);
            self.waiting.pop_front();
        }
        expired
    }

    /// When the first has waited for too long.
    pub(super) fn deadline(&self) -> Option<Moment> {
        self.waiting.front().map(|first| first.sent + self.timeout)
    }

    /// Whether an answer is waited for.
    pub(super) fn are_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Lets go of all; how many had no answer.
    pub(super) fn end(&mut self) -> u64 {
        self.waiting.drain(..).filter(|request| !request.has_answer).count() as u64
    }
}

impl Requests {
    /// What the broker has sent: an answer, or something else on its topic.
    pub(super) fn on_event(&mut self, event: &ClientEvent<'_>, now: Moment, recorder: &mut Recorder) {
        let (ClientEvent::Message(message) | ClientEvent::MessageBegin { message, .. }) = event else {
            return;
        };
        match self.answered(message.publish.properties.correlation_data(), now) {
            Some(took) => {
                recorder.count(ANSWERS, 1);
                recorder.record(ROUND_TRIP, took.as_micros() as u64);
            }
            None => recorder.count(STRANGE_ANSWERS, 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Moment {
        Moment::default() + Duration::from_millis(milliseconds)
    }

    fn requests(numbers: u64) -> Requests {
        let mut requests = Requests::new("r".to_owned(), 7, Duration::from_secs(1));
        (0..numbers).for_each(|number| assert_eq!(requests.sent(number, at(number * 100)), 0));
        requests
    }

    #[test]
    fn an_answer_is_known_by_its_correlation_data_and_counts_once() {
        let mut requests = requests(3);
        let of = |number| Requests::correlation(7, number);
        assert_eq!(requests.answered(Some(&of(1)), at(150)), Some(Duration::from_millis(50)));
        assert_eq!(requests.answered(Some(&of(1)), at(160)), None, "it has its answer");
        assert_eq!(requests.answered(Some(&of(0)), at(300)), Some(Duration::from_millis(300)));
        assert_eq!(requests.answered(Some(&of(0)), at(301)), None);
        for strange in
            [&of(3)[..], &Requests::correlation(8, 2), &of(2)[..15], &[&of(2)[..], b"x"].concat(), b""]
        {
            assert_eq!(requests.answered(Some(strange), at(300)), None, "{strange:?}");
        }
        assert_eq!(requests.answered(None, at(300)), None);
        assert!(requests.are_waiting());
        assert_eq!(requests.answered(Some(&of(2)), at(1_199)), Some(Duration::from_millis(999)));
        assert!(!requests.are_waiting() && requests.end() == 0);
    }

    #[test]
    fn what_has_waited_for_too_long_has_no_answer() {
        let mut requests = requests(3);
        assert_eq!(
            requests.answered(Some(&Requests::correlation(7, 1)), at(250)).map(|it| it.as_millis()),
            Some(150)
        );
        assert_eq!(requests.deadline(), Some(at(1_000)));
        assert_eq!(requests.expire(at(999)), 0);
        assert_eq!(requests.expire(at(1_100)), 1, "the one behind it has its answer");
        assert_eq!(requests.answered(Some(&Requests::correlation(7, 0)), at(1_101)), None, "too late");
        assert_eq!(requests.end(), 1);
        let mut many = Requests::new(String::new(), 7, Duration::from_secs(1));
        let given_up: u64 = (0..MOST_WAITING as u64 + 5).map(|number| many.sent(number, at(0))).sum();
        assert_eq!((given_up, many.end()), (5, MOST_WAITING as u64));
    }
}
