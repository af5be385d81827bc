//! The thread that pushes metrics to a receiver: when a run begins, every few seconds, and at the end.
//!
//! The run never waits for it; only the end of the program does, for a limited time. It must not know how a request is sent.

use crate::board::Board;
use crate::remote_write::{HEAD, Requests};
use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How often metrics are sent.
const PERIOD: Duration = Duration::from_secs(5);
/// The longest that a receiver which takes nothing is left alone: "MUST use a backoff algorithm".
const LONGEST: Duration = Duration::from_secs(60);

/// A request, as it is sent by POST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Push {
    /// Fields of its head.
    pub head: [(&'static str, &'static str); 3],
    /// Its body.
    pub body: Vec<u8>,
}

/// Sends a board's metrics until this value is gone.
#[derive(Debug)]
pub struct Pusher {
    orders: Sender<Order>,
    ended: Receiver<()>,
    warning: Arc<Warning>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Now,
    Last,
}

impl Pusher {
    /// Sends this board's metrics by `send` from now on, each series with these labels. The first error goes to `warn`.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start<E: Display>(
        board: Arc<Board>,
        labels: &[(&str, &str)],
        mut send: impl FnMut(Push) -> Result<(), E> + Send + 'static,
        warn: impl Fn(&str) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let mut requests = Requests::new(labels);
        let warning = Arc::new(Warning { was_given: AtomicBool::new(false), warn: Box::new(warn) });
        let ((orders, ordered), (ending, ended)) = (channel(), channel());
        let warned = warning.clone();
        let push = move || {
            let _ending: Sender<()> = ending;
            serve(&ordered, || {
                let body = requests.next(&board.families(), milliseconds());
                let sent = send(Push { head: HEAD, body });
                requests.is_taken(sent.is_ok());
                sent.map_err(|error| warned.give(&error.to_string())).is_ok()
            });
        };
        std::thread::Builder::new().name("weir-push".to_owned()).spawn(push)?;
        Ok(Self { orders, ended, warning })
    }

    /// Sends what there is, soon.
    pub fn push(&self) {
        // A thread that has ended sends nothing.
        let _ = self.orders.send(Order::Now);
    }

    /// Sends what there is a last time.
    pub fn push_last(&self) {
        let _ = self.orders.send(Order::Last);
    }

    /// Waits until the last was sent, but no longer than this.
    pub fn finish(self, patience: Duration) {
        self.push_last();
        if self.ended.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
            self.warning.give(&format!("the last metrics were not taken within {} s", patience.as_secs()));
        }
    }
}

/// A warning that is given once.
struct Warning {
    was_given: AtomicBool,
    warn: Box<dyn Fn(&str) + Send + Sync>,
}

impl Warning {
    fn give(&self, words: &str) {
        if !self.was_given.swap(true, Relaxed) {
            (self.warn)(words);
        }
    }
}

impl std::fmt::Debug for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Warning({})", self.was_given.load(Relaxed))
    }
}

/// Pushes as often as it is time to, until the last.
fn serve(ordered: &Receiver<Order>, mut push: impl FnMut() -> bool) {
    let mut wait = PERIOD;
    loop {
        let first = match ordered.recv_timeout(wait) {
            Ok(order) => order,
            Err(RecvTimeoutError::Timeout) => Order::Now,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        // Orders that came during a long push are one.
        let is_last = first == Order::Last || ordered.try_iter().any(|it| it == Order::Last);
        let is_taken = push();
        if is_last {
            return;
        }
        wait = next_wait(wait, is_taken);
    }
}

fn next_wait(wait: Duration, is_taken: bool) -> Duration {
    if is_taken { PERIOD } else { (wait * 2).min(LONGEST) }
}

/// Since 1970.
fn milliseconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a machine that has other things to do.
    const TEST_TIMEOUT: Duration = Duration::from_secs(60);

    #[test]
    fn metrics_are_sent_when_asked_and_at_the_end() {
        let (sent, pushes) = channel();
        let send = move |push: Push| sent.send(push);
        let pusher = Pusher::start(Arc::default(), &[], send, |words| panic!("{words}")).unwrap();
        pusher.push();
        let push = pushes.recv_timeout(TEST_TIMEOUT).unwrap();
        assert!(push.head.contains(&("Content-Encoding", "snappy")) && !push.body.is_empty());
        pusher.finish(TEST_TIMEOUT);
        assert!(pushes.try_iter().count() >= 1, "the last was not sent");
    }

    #[test]
    fn a_receiver_that_takes_nothing_is_one_warning() {
        let (asked, pushes) = channel();
        let send = move |_| {
            asked.send(()).unwrap();
            Err("connection refused")
        };
        let (warned, warnings) = channel();
        let warn = move |words: &str| warned.send(words.to_owned()).unwrap();
        let pusher = Pusher::start(Arc::default(), &[], send, warn).unwrap();
        for _ in 0..3 {
            pusher.push();
            pushes.recv_timeout(TEST_TIMEOUT).unwrap();
        }
        pusher.finish(TEST_TIMEOUT);
        assert_eq!(warnings.try_iter().collect::<Vec<_>>(), ["connection refused"]);
    }

    #[test]
    fn a_receiver_that_never_answers_holds_up_nobody() {
        let (_never, forever) = channel::<()>();
        let send = move |_| forever.recv();
        let (warned, warnings) = channel();
        let warn = move |words: &str| warned.send(words.to_owned()).unwrap();
        let pusher = Pusher::start(Arc::default(), &[], send, warn).unwrap();
        pusher.push();
        // The thread waits for an answer that does not come until this test is over.
        pusher.finish(Duration::ZERO);
        assert_eq!(warnings.try_iter().collect::<Vec<_>>(), ["the last metrics were not taken within 0 s"]);
    }

    #[test]
    fn a_receiver_that_takes_nothing_is_asked_less_and_less_often() {
        let waits: Vec<_> = std::iter::successors(Some(PERIOD), |wait| Some(next_wait(*wait, false)))
            .map(|wait| wait.as_secs())
            .take(6)
            .collect();
        assert_eq!(waits, [5, 10, 20, 40, 60, 60]);
        assert_eq!(next_wait(LONGEST, true), PERIOD);
    }
}
