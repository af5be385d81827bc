//! Threads on which stores work: whatever a store does, nothing that its server does, or does not, holds up the end. One that does not
//! answer is left behind.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How often the wish to stop is looked for.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How long a store is waited for that is opened, or that is to begin with no other batch: it says at once what is wrong, if it can.
pub(crate) const GRACE: Duration = Duration::from_millis(500);

/// How often a person is told that a store is still waited for.
const REMINDER: Duration = Duration::from_secs(10);

/// What is waited for, as a person is told.
pub(crate) const OPENING: &str = "waiting until the tables are open, and their indexes made";
pub(crate) const EMPTYING: &str = "waiting until the tables are emptied";
pub(crate) const COUNTING: &str = "waiting until the rows are counted";

/// Threads of this process on which a store works, those that were left behind included.
static STORES: AtomicUsize = AtomicUsize::new(0);

/// Threads of this process on which a store works. One that was left behind, since its server did not answer in time, may still save
/// what it was given.
pub fn working_stores() -> usize {
    STORES.load(Relaxed)
}

/// Begins a thread with a store, which may outlive whoever waits for it.
pub(crate) fn on_a_thread(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    struct Working;
    impl Drop for Working {
        fn drop(&mut self) {
            STORES.fetch_sub(1, Relaxed);
        }
    }
    STORES.fetch_add(1, Relaxed);
    let working = Working;
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        let _working = working;
        work();
    });
    thread.map(drop)
}

/// What a thread with a store reports.
pub(crate) enum Step<T> {
    /// A line that a person should read.
    Said(String),
    /// It has ended.
    Done(T),
}

/// A thread with a store, seen from outside.
pub(crate) struct StoreThread<'a, T> {
    pub(crate) progress: Receiver<Step<T>>,
    pub(crate) say: &'a dyn Fn(&str),
}

impl<T> StoreThread<'_, T> {
    /// Passes on what it has said; what it ended with, if it has.
    pub(crate) fn look(&self, patience: Duration) -> Result<Option<T>, RecvTimeoutError> {
        match self.progress.recv_timeout(patience) {
            Ok(Step::Said(line)) => {
                (self.say)(&line);
                Ok(None)
            }
            Ok(Step::Done(done)) => Ok(Some(done)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// How work of a store is waited for that has no deadline: making an index, counting or reading back a large table.
#[derive(Clone, Copy)]
pub struct Waiting<'a> {
    /// Whether it is no longer waited for: Ctrl-C, the end of a run, a coordinator that is silent.
    pub is_over: &'a dyn Fn() -> bool,
    /// Takes a line every ten seconds that says what is waited for.
    pub say: &'a dyn Fn(&str),
}

/// How the waiting ended.
pub(crate) enum ThreadOutcome<T> {
    /// The work is done.
    Done(T),
    /// It is not, and its thread was left behind.
    LeftBehind,
    /// It cannot be done.
    Panicked,
}

impl Waiting<'_> {
    /// Waits until this is so, and says every ten seconds what for; `false`: it is no longer waited for.
    pub fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) -> bool {
        is_so()
            || self.watch(what, REMINDER, |patience| {
                std::thread::sleep(patience);
                is_so()
            })
    }

    /// The same of something that itself waits for as long as it is told to.
    fn watch(&self, what: &str, reminder: Duration, mut is_so: impl FnMut(Duration) -> bool) -> bool {
        let mut reminded = Instant::now();
        while !is_so(POLL_INTERVAL) {
            if (self.is_over)() {
                return false;
            }
            if reminded.elapsed() >= reminder {
                reminded = Instant::now();
                (self.say)(what);
            }
        }
        true
    }

    /// Has this done on a thread of its own. `what` is said every ten seconds, and the work may say lines by itself.
    pub(crate) fn attend<T: Send + 'static>(
        &self,
        what: &str,
        work: impl FnOnce(&dyn Fn(&str)) -> T + Send + 'static,
    ) -> std::io::Result<ThreadOutcome<T>> {
        self.attend_reminding(what, REMINDER, work)
    }

    fn attend_reminding<T: Send + 'static>(
        &self,
        what: &str,
        reminder: Duration,
        work: impl FnOnce(&dyn Fn(&str)) -> T + Send + 'static,
    ) -> std::io::Result<ThreadOutcome<T>> {
        let (steps, progress) = channel();
        on_a_thread("weir-store", move || {
            let lines = steps.clone();
            let say = move |line: &str| {
                // Whoever has left it behind hears nothing more.
                let _ = lines.send(Step::Said(line.to_owned()));
            };
            let done = work(&say);
            let _ = steps.send(Step::Done(done));
        })?;
        let thread = StoreThread { progress, say: self.say };
        let mut attended = ThreadOutcome::LeftBehind;
        self.watch(what, reminder, |patience| match thread.look(patience) {
            Ok(None) => false,
            Ok(Some(done)) => {
                attended = ThreadOutcome::Done(done);
                true
            }
            Err(_) => {
                attended = ThreadOutcome::Panicked;
                true
            }
        });
        Ok(attended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn what_has_no_deadline_says_what_it_waits_for_and_is_left_behind_when_that_is_over() {
        let said = RefCell::new(Vec::new());
        let say = |line: &str| said.borrow_mut().push(line.to_owned());
        let has = |line: &str| said.borrow().iter().any(|it| it == line);
        let is_over = || has("begun") && has("counting");
        let waiting = Waiting { is_over: &is_over, say: &say };
        let (release, released) = channel::<()>();
        let attended = waiting.attend_reminding("counting", Duration::ZERO, move |say| {
            say("begun");
            released.recv().is_ok()
        });
        assert!(matches!(attended.unwrap(), ThreadOutcome::LeftBehind));
        said.take();
        drop(release);
        let waiting = Waiting { is_over: &|| false, say: &say };
        assert!(matches!(waiting.attend("counting", |_| 7).unwrap(), ThreadOutcome::Done(7)));
        assert!(said.take().is_empty());
    }
}
