//! Whose turn it is: most tests share the machine, some need it quiet, few need all of it.

use std::sync::{Condvar, Mutex, PoisonError};

/// What a test asks of the machine while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Shared,
    Quiet,
    Alone,
}

/// Quiet tests at a time. Each of them keeps a tenth of a core busy, and starting its processes all of one for a moment: more
/// would see each other's starts.
const QUIET_AT_ONCE: usize = 4;

/// How many tests have the machine in each way, and how many wait for it. Those that wait to have it shared are not counted:
/// they come last.
#[derive(Clone, Copy, Debug, Default)]
struct Users {
    shared: usize,
    quiet: usize,
    alone: usize,
    quiet_waiting: usize,
    alone_waiting: usize,
}

static MACHINE: Mutex<Users> =
    Mutex::new(Users { shared: 0, quiet: 0, alone: 0, quiet_waiting: 0, alone_waiting: 0 });
static CHANGED: Condvar = Condvar::new();

/// The machine, in one of the ways, until this is dropped.
pub(crate) struct Guard(Turn);

/// For a test that runs a small load and counts.
pub(crate) fn shared() -> Guard {
    take(Turn::Shared)
}

/// For a test that measures time with a small load: beside it are only a few that do the same.
pub(crate) fn quiet() -> Guard {
    take(Turn::Quiet)
}

/// For a test that uses all of the machine, or measures how much of it a process uses.
pub(crate) fn alone() -> Guard {
    take(Turn::Alone)
}

impl Users {
    fn running(&mut self, turn: Turn) -> &mut usize {
        match turn {
            Turn::Shared => &mut self.shared,
            Turn::Quiet => &mut self.quiet,
            Turn::Alone => &mut self.alone,
        }
    }

    fn waiting(&mut self, turn: Turn) -> Option<&mut usize> {
        match turn {
            Turn::Shared => None,
            Turn::Quiet => Some(&mut self.quiet_waiting),
            Turn::Alone => Some(&mut self.alone_waiting),
        }
    }

    /// Whether one more test may begin. Whoever needs more of the machine goes first, so that the others come to their end for
    /// all of them once; quiet tests go before those that need all of it, because these follow each other anyway.
    fn admits(&self, turn: Turn) -> bool {
        let Self { shared, quiet, alone, quiet_waiting, alone_waiting } = *self;
        match turn {
            Turn::Shared => quiet + alone + quiet_waiting + alone_waiting == 0,
            Turn::Quiet => shared + alone == 0 && quiet < QUIET_AT_ONCE,
            Turn::Alone => shared + quiet + alone + quiet_waiting == 0,
        }
    }
}

fn take(turn: Turn) -> Guard {
    let mut users = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(waiting) = users.waiting(turn) {
        *waiting += 1;
    }
    // A test that is about to begin is one of those that wait, also for itself.
    let mut users = CHANGED
        .wait_while(users, |users| {
            let mut others = *users;
            if let Some(waiting) = others.waiting(turn) {
                *waiting -= 1;
            }
            !others.admits(turn)
        })
        .unwrap_or_else(PoisonError::into_inner);
    if let Some(waiting) = users.waiting(turn) {
        *waiting -= 1;
    }
    *users.running(turn) += 1;
    Guard(turn)
}

impl Drop for Guard {
    fn drop(&mut self) {
        *MACHINE.lock().unwrap_or_else(PoisonError::into_inner).running(self.0) -= 1;
        CHANGED.notify_all();
    }
}

/// What each way excludes, as tests come and go.
#[test]
fn quiet_tests_run_beside_a_few_quiet_ones_and_before_those_that_need_all_of_the_machine() {
    let users = Users::default();
    let all = [Turn::Shared, Turn::Quiet, Turn::Alone];
    let admitted = |users: Users| all.map(|turn| users.admits(turn));
    assert_eq!(admitted(users), [true; 3]);
    assert_eq!(admitted(Users { shared: 7, ..users }), [true, false, false]);
    assert_eq!(admitted(Users { quiet: 1, ..users }), [false, true, false]);
    assert_eq!(admitted(Users { quiet: QUIET_AT_ONCE, ..users }), [false; 3]);
    assert_eq!(admitted(Users { alone: 1, ..users }), [false; 3]);
    assert_eq!(admitted(Users { shared: 1, quiet_waiting: 1, ..users }), [false; 3]);
    assert_eq!(admitted(Users { quiet_waiting: 1, ..users }), [false, true, false]);
    assert_eq!(admitted(Users { alone_waiting: 1, ..users }), [false, true, true]);
}
