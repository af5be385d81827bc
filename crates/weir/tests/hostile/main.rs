//! Peers that mean harm: hostile clients of each of the origin's listeners, hostile servers for each of weir's clients.
//!
//! A row is an attack, and what weir may spend on it. Memory is the most that the process has ever had (`VmHWM`); time is
//! the processor time that it used, which does not depend on how busy the machine is. Nothing is asked of a wall clock
//! but that things end at all. What the limits are is written down in SECURITY.md.

mod clients;
mod files;
mod process;
mod rtmp;
mod servers;
mod srt;
mod witness;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs rows side by side, six at a time (most of a row is waiting), and tells of all that failed.
fn all<R: Sync>(rows: &[R], name: impl Fn(&R) -> &'static str + Sync, run: impl Fn(&R) + Sync) {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // Its own message is printed where it panics.
                    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(row))).is_err() {
                        failed.lock().unwrap().push(name(row));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "failed: {failed:?}");
}
