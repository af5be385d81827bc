//! The flag that stops whatever weir is doing.

use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use weir_runner::{ErrorKind, RunError};

/// Signals nearer to each other than this are one.
const SAME_SIGNAL: Duration = Duration::from_secs(1);

/// A flag that Ctrl-C, SIGTERM or a closed terminal sets. A second signal ends weir at once, unless it follows so soon
/// that it is the same one: a shell or `timeout` may send it to weir and to weir's group.
pub(crate) fn interrupt_flag() -> Result<Arc<AtomicBool>, RunError> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    // A file that may grow no more is an error of its write, as on a full disk, and not the end of weir.
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map_err(RunError::with(ErrorKind::Internal))?;
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(RunError::with(ErrorKind::Internal))?;
    let flag = Arc::new(AtomicBool::new(false));
    let interrupt = flag.clone();
    let listen = move || {
        let mut asked: Option<Instant> = None;
        for _ in signals.forever() {
            let since = asked.get_or_insert_with(Instant::now).elapsed();
            if interrupt.swap(true, Ordering::SeqCst) && since >= SAME_SIGNAL {
                weir_runner::kill_all();
                signal_hook::low_level::exit(ErrorKind::Interrupted.code().into());
            }
        }
    };
    let thread = std::thread::Builder::new().name("weir-signals".to_owned()).spawn(listen);
    thread.map_err(RunError::with(ErrorKind::Internal))?;
    Ok(flag)
}
