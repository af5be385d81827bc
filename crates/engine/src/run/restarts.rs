//! The restarts of a scenario, at their times while a run goes on: a thread ends servers and starts them again, and reports
//! when. How a server is ended and started is for the implementation of [`Servers`].

use crate::record::event::EventLine;
use crate::run::coordinator_message::CoordinatorMessage;
use crate::scenario::Restart;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;
use weir_metrics::Moment;
use weir_shard::clock;

/// How often the request to stop is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How long after its start a server may not be seen among the processes yet: a census of them is taken every few seconds.
const UNSEEN: Duration = Duration::from_secs(5);

/// The servers that the scenario's own steps have started.
pub trait Servers: Send {
    /// Ends the server of this program, by SIGKILL if it is to be killed; returns when it has ended.
    ///
    /// # Errors
    /// It was not there any more.
    fn stop(&mut self, program: &str, kill: bool) -> Result<(), String>;

    /// Starts it again.
    ///
    /// # Errors
    /// The system's words.
    fn start(&mut self, program: &str) -> Result<(), String>;
}

/// Until when the watched target may be away, because the scenario says so.
#[derive(Clone, Debug, Default)]
pub(crate) struct Absence(Arc<AtomicU64>);

impl Absence {
    fn until(&self, moment: Moment) {
        self.0.store(moment.as_nanos(), Ordering::SeqCst);
    }

    /// Whether a target that is not there at this moment is away by the scenario's will.
    pub(crate) fn covers(&self, now: Moment) -> bool {
        now.as_nanos() < self.0.load(Ordering::SeqCst)
    }
}

/// What the thread needs.
pub(crate) struct RestartScript {
    pub(crate) restarts: Vec<Restart>,
    pub(crate) servers: Box<dyn Servers>,
    pub(crate) origin: Moment,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) absence: Absence,
    pub(crate) reports: Sender<CoordinatorMessage>,
}

impl RestartScript {
    /// Does one after the other. A run that ends before the time of one leaves it out.
    pub(crate) fn run(mut self) {
        for (number, restart) in (0..).zip(std::mem::take(&mut self.restarts)) {
            if !self.wait_until(self.origin + restart.at.get()) {
                return;
            }
            if let Err(words) = self.restart(number, &restart) {
                let at_seconds = clock::now().since(self.origin).as_secs_f64();
                self.send(EventLine::Trouble { at_seconds, words });
                return;
            }
        }
    }

    fn restart(&mut self, number: u16, restart: &Restart) -> Result<(), String> {
        let server = restart.restart.clone();
        self.absence.until(Moment::from_nanos(u64::MAX));
        let (origin, at) = (self.origin, clock::now());
        let seconds = |moment: Moment| moment.since(origin).as_secs_f64();
        let line = |started: Option<Moment>| EventLine::Restart {
            at_seconds: seconds(at),
            number,
            server: server.clone(),
            started_seconds: started.map(seconds),
        };
        self.send(line(None));
        self.servers.stop(&server, restart.kill)?;
        // A run that is stopped meanwhile ends with its servers there.
        self.wait_until(at + restart.down());
        let started = clock::now();
        self.servers.start(&server)?;
        self.absence.until(clock::now() + UNSEEN);
        self.send(line(Some(started)));
        Ok(())
    }

    /// Whether the moment came before the run was stopped.
    fn wait_until(&self, moment: Moment) -> bool {
        loop {
            let left = moment.since(clock::now());
            if self.stop.load(Ordering::Relaxed) {
                return false;
            }
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(POLL_INTERVAL));
        }
    }

    fn send(&self, line: EventLine) {
        // The coordinator of a run that is over receives nothing more.
        let _ = self.reports.send(CoordinatorMessage::Event(line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, channel};

    /// Servers that take down what is done to them, and can fail.
    struct Noted(Sender<String>, bool);

    impl Servers for Noted {
        fn stop(&mut self, program: &str, kill: bool) -> Result<(), String> {
            let _ = self.0.send(format!("{} {program}", if kill { "kill" } else { "end" }));
            if self.1 { Err("it was gone".to_owned()) } else { Ok(()) }
        }

        fn start(&mut self, program: &str) -> Result<(), String> {
            let _ = self.0.send(format!("start {program}"));
            Ok(())
        }
    }

    fn script(fails: bool) -> (RestartScript, Receiver<String>, Receiver<CoordinatorMessage>) {
        let ((notes, noted), (reports, received)) = (channel(), channel());
        let restart = |at: &str, kill| Restart {
            at: at.parse().unwrap(),
            restart: "broker".to_owned(),
            down: Some("30ms".parse().unwrap()),
            kill,
        };
        let script = RestartScript {
            restarts: vec![restart("0s", false), restart("50ms", true)],
            servers: Box::new(Noted(notes, fails)),
            origin: clock::now(),
            stop: Arc::default(),
            absence: Absence::default(),
            reports,
        };
        (script, noted, received)
    }

    fn lines(received: Receiver<CoordinatorMessage>) -> Vec<EventLine> {
        let line = |message| match message {
            CoordinatorMessage::Event(line) => line,
            other => panic!("{other:?}"),
        };
        received.into_iter().map(line).collect()
    }

    #[test]
    fn a_server_is_ended_and_started_again_at_its_times_and_not_sooner() {
        let (script, noted, received) = script(false);
        let absence = script.absence.clone();
        assert!(!absence.covers(clock::now()));
        script.run();
        assert!(absence.covers(clock::now()), "it may be a moment until it is seen");
        let done: Vec<_> = noted.into_iter().collect();
        assert_eq!(done, ["end broker", "start broker", "kill broker", "start broker"]);
        let lines = lines(received);
        let [_, first, _, second] = &lines[..] else { panic!("{lines:?}") };
        for (line, number, begin) in [(first, 0, 0.0), (second, 1, 0.05)] {
            let EventLine::Restart { at_seconds, number: which, started_seconds: Some(started), .. } = line
            else {
                panic!("{line:?}")
            };
            assert!(*which == number && *at_seconds >= begin && *started >= at_seconds + 0.03, "{line:?}");
        }
    }

    #[test]
    fn a_run_that_is_stopped_restarts_nothing_more_and_a_server_that_is_gone_is_trouble() {
        let (stopped, noted, _) = script(false);
        stopped.stop.store(true, Ordering::Relaxed);
        stopped.run();
        assert_eq!(noted.into_iter().count(), 0);
        let (failing, noted, received) = script(true);
        failing.run();
        assert_eq!(noted.into_iter().count(), 1);
        assert!(matches!(&lines(received)[..], [EventLine::Restart { .. }, EventLine::Trouble { words, .. }]
            if words == "it was gone"));
    }
}
