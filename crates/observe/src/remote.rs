//! A machine that is asked over HTTP, by a thread of its own: never one that makes load, and never the one
//! that waits for a second to end.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::machine::{MachinePoint, MachineSample, MachineValues};
use crate::node_exporter::{self, NodeExporter};
use crate::prometheus::{Due, Prometheus};
use crate::{Interfaces, MachineError, MachineFacts};
use weir_http::HttpTrust;

/// Longest wait for the points that are still to come when the run is over.
const LAST_WORDS: Duration = Duration::from_secs(6);
/// What is kept of a failure.
const WORDS: usize = 200;

/// A machine whose figures are collected from now on, until this is dropped.
#[derive(Debug)]
pub struct Remote {
    facts: MachineFacts,
    news: Receiver<News>,
    /// Dropped to ask for the end.
    stop: Option<Sender<()>>,
}

/// What a thread has read.
#[derive(Debug)]
pub(crate) enum News {
    Point { at: Instant, seconds: f64, values: MachineValues, gap: Option<String> },
    Failure(String),
}

impl Remote {
    /// A node_exporter, scraped once a second from now on. A URL without a path means `/metrics`.
    pub fn node_exporter(url: &str, interfaces: Interfaces, trust: &HttpTrust) -> Result<Self, MachineError> {
        let source = NodeExporter::new(url, interfaces, trust)?;
        Self::start(source.facts(), |news, stop| scrape(source, &news, &stop))
    }

    /// A Prometheus, asked from now on for a point each `step` (a second at the least), of the one machine
    /// that it collects from, or of the one whose label `instance` is this.
    pub fn prometheus(
        url: &str,
        instance: Option<&str>,
        interfaces: Interfaces,
        step: Duration,
        trust: &HttpTrust,
    ) -> Result<Self, MachineError> {
        let source = Prometheus::new(url, instance, interfaces, step, trust)?;
        Self::start(source.facts().clone(), |news, stop| ask(source, &news, &stop))
    }

    /// What is collected, and how.
    pub fn facts(&self) -> &MachineFacts {
        &self.facts
    }

    pub(crate) fn start(
        facts: MachineFacts,
        work: impl FnOnce(Sender<News>, Receiver<()>) + Send + 'static,
    ) -> Result<Self, MachineError> {
        let (sender, news) = channel();
        let (stop, stopped) = channel();
        thread::Builder::new().name("weir-machine".to_owned()).spawn(move || work(sender, stopped)).map_err(
            |error| MachineError::Thread {
                address: facts.address.clone().unwrap_or_default(),
                words: error.to_string(),
            },
        )?;
        Ok(Self { facts, news, stop: Some(stop) })
    }

    /// What came since the last call, on a clock that shows `now_ns` now.
    pub(crate) fn sample(&mut self, now_ns: u64) -> MachineSample {
        let mut sample = MachineSample::default();
        let now = Instant::now();
        loop {
            match self.news.try_recv() {
                Ok(news) => sample.take(news, now, now_ns),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return sample,
            }
        }
    }

    /// Asks for what is still to come and waits for it, a few seconds at most.
    pub(crate) fn last_sample(&mut self, now_ns: u64) -> MachineSample {
        self.stop = None;
        let mut sample = MachineSample::default();
        let now = Instant::now();
        loop {
            match self.news.recv_timeout(LAST_WORDS.saturating_sub(now.elapsed())) {
                Ok(news) => sample.take(news, now, now_ns),
                Err(RecvTimeoutError::Disconnected) => return sample,
                Err(RecvTimeoutError::Timeout) => {
                    sample.failure = Some("no answer to the last question".to_owned());
                    return sample;
                }
            }
        }
    }
}

impl MachineSample {
    fn take(&mut self, news: News, now: Instant, now_ns: u64) {
        match news {
            News::Point { at, seconds, values, gap } => {
                // One that came after `now` was read is a little later than it.
                let at_ns = match now.checked_duration_since(at) {
                    Some(ago) => now_ns.saturating_sub(nanoseconds(ago)),
                    None => now_ns.saturating_add(nanoseconds(at.duration_since(now))),
                };
                self.points.push(MachinePoint { at_ns, seconds, values });
                self.failure = None;
                self.gap = gap.map(short).or(self.gap.take());
            }
            News::Failure(words) => self.failure = Some(short(words)),
        }
    }
}

fn short(words: String) -> String {
    if words.chars().count() > WORDS { words.chars().take(WORDS).collect() } else { words }
}

fn nanoseconds(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// Waits until `moment`; false if the end was asked for, or the receiver is gone.
pub(crate) fn sleep_until(moment: Instant, stop: &Receiver<()>) -> bool {
    let left = moment.saturating_duration_since(Instant::now());
    matches!(stop.recv_timeout(left), Err(RecvTimeoutError::Timeout))
}

fn scrape(mut source: NodeExporter, news: &Sender<News>, stop: &Receiver<()>) {
    let mut next = Instant::now() + node_exporter::PERIOD;
    while sleep_until(next, stop) {
        let heard = match source.scrape() {
            Ok((at, seconds, values)) => News::Point { at, seconds, values, gap: None },
            Err(words) => News::Failure(words),
        };
        if news.send(heard).is_err() {
            return;
        }
        // A slow answer costs its own seconds, not the ones after them.
        next += node_exporter::PERIOD;
        while next < Instant::now() {
            next += node_exporter::PERIOD;
        }
    }
}

fn ask(mut source: Prometheus, news: &Sender<News>, stop: &Receiver<()>) {
    let seconds = source.facts().step_seconds;
    loop {
        let goes_on = sleep_until(Instant::now() + source.pause(), stop);
        match source.ask(!goes_on) {
            Ok(points) => {
                for Due { at, values, gap } in points {
                    if news.send(News::Point { at, seconds, values, gap }).is_err() {
                        return;
                    }
                }
            }
            Err(words) => {
                if news.send(News::Failure(words)).is_err() {
                    return;
                }
            }
        }
        if !goes_on {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_put_on_the_callers_clock() {
        let now = Instant::now() + Duration::from_secs(10);
        let mut sample = MachineSample::default();
        let point = |at| News::Point { at, seconds: 1.0, values: MachineValues::default(), gap: None };
        sample.take(News::Failure("x".repeat(1000)), now, 5_000);
        assert_eq!(sample.failure.as_ref().map(String::len), Some(WORDS));
        sample.take(point(now - Duration::from_nanos(1_000)), now, 5_000);
        sample.take(point(now + Duration::from_nanos(1)), now, 5_000);
        assert_eq!(sample.points.iter().map(|point| point.at_ns).collect::<Vec<_>>(), [4_000, 5_001]);
        assert_eq!(sample.failure, None, "it answers again");
    }

    #[test]
    fn the_last_words_are_waited_for_and_a_thread_that_hangs_is_not() {
        let facts = MachineFacts::of_this_machine(Interfaces::default());
        let work = |news: Sender<News>, stop: Receiver<()>| {
            assert!(!sleep_until(Instant::now() + Duration::from_secs(60), &stop));
            let values = MachineValues::default();
            let _ = news.send(News::Point { at: Instant::now(), seconds: 1.0, values, gap: None });
        };
        let mut remote = Remote::start(facts, work).unwrap();
        assert_eq!(remote.sample(0), MachineSample::default());
        let last = remote.last_sample(1_000_000_000);
        assert_eq!((last.points.len(), last.failure), (1, None));
    }
}
