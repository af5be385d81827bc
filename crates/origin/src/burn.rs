//! A thread that uses a known share of a core.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_shard::clock;

/// The share is used up in each of these spans.
const SPAN: Duration = Duration::from_millis(50);

/// Starts a thread named `name` that uses `share` of CPU time in every second until `stop`.
pub(crate) fn burn(name: &str, share: Duration, stop: Arc<AtomicBool>) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        let began = clock::now();
        while !stop.load(Ordering::Relaxed) {
            let elapsed = clock::now().since(began);
            // Both sides from the beginning: what one span overshoots, the next makes good.
            let owed = elapsed.as_secs_f64() * share.as_secs_f64();
            if clock::thread_cpu().as_secs_f64() < owed {
                for n in 0..10_000_u32 {
                    std::hint::black_box(n);
                }
            } else {
                std::thread::sleep(SPAN / 10);
            }
        }
    })
}
