//! What `weir ingest` says while it runs: that it is subscribed, and how fast it saves; drawn over itself on a terminal, a line
//! every ten seconds elsewhere. It reads counts, and knows neither broker nor store.

use crate::print::note;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use weir_ingest::{Counts, Totals};

/// How often the counts are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// How soon a subscription is noticed.
const SOON: Duration = Duration::from_millis(50);

/// Looks between two lines where they are not drawn over each other.
const PLAIN_EVERY: u32 = 10;

/// The line that shows how saving goes, until it is dropped.
pub(crate) struct IngestProgress {
    bar: ProgressBar,
    ends: Option<(Sender<()>, JoinHandle<()>)>,
}

impl IngestProgress {
    /// Shows `counts`; says `subscribed` as soon as they know of a subscription.
    pub(crate) fn start(counts: Arc<Counts>, subscribed: String) -> Self {
        let is_drawn = std::io::stderr().is_terminal();
        let target =
            if is_drawn { ProgressDrawTarget::stderr_with_hz(4) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        let style = ProgressStyle::with_template("{spinner} {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        let (end, ended) = channel::<()>();
        let drawn = bar.clone();
        let show = move || {
            while counts.subscribed.load(Relaxed) == 0 {
                if ended.recv_timeout(SOON) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
            say(&drawn, &format!("weir: {subscribed}"));
            let (mut before, mut at) = (counts.totals(), Instant::now());
            for look in 1.. {
                if ended.recv_timeout(LOOK) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
                let (totals, now) = (counts.totals(), Instant::now());
                let line = line(&before, &totals, now - at);
                if is_drawn {
                    drawn.set_message(line);
                    drawn.tick();
                } else if look % PLAIN_EVERY == 0 {
                    say(&drawn, &format!("weir: {line}"));
                } else {
                    continue;
                }
                (before, at) = (totals, now);
            }
        };
        // Without a thread for it nothing is shown, and all is saved.
        let thread = std::thread::Builder::new().name("weir-progress".to_owned()).spawn(show);
        Self { bar, ends: thread.ok().map(|thread| (end, thread)) }
    }

    /// A line that stays.
    pub(crate) fn say(&self, line: &str) {
        say(&self.bar, &format!("weir: {line}"));
    }
}

impl Drop for IngestProgress {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.ends.take() {
            drop(end);
            let _ = thread.join();
        }
        self.bar.finish_and_clear();
    }
}

/// Prints a line above what is drawn.
fn say(bar: &ProgressBar, line: &str) {
    bar.suspend(|| note(line));
}

/// What happened since `before`, and in all.
fn line(before: &Totals, now: &Totals, passed: Duration) -> String {
    let seconds = passed.as_secs_f64().max(1e-3);
    let rows = (now.saved - before.saved) as f64 / seconds;
    let settled = |totals: &Totals| totals.messages - totals.left;
    let rate = settled(now).saturating_sub(settled(before)) as f64 / seconds;
    let lag = match now.left {
        0 => "none waiting".to_owned(),
        left if rate > 0.0 => format!("{left} waiting, {:.0} ms behind", left as f64 / rate * 1e3),
        left => format!("{left} waiting, none saved"),
    };
    format!(
        "{rows:.0} rows/s · {} saved in {} batches · {lag} · {} dead letters",
        now.saved, now.commits, now.dead_lettered
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_fast_rows_are_saved_and_how_far_behind() {
        let before = Totals { messages: 1_000, saved: 1_000, ..Totals::default() };
        let second = Duration::from_secs(1);
        let now = Totals { messages: 1_600, left: 100, saved: 1_500, commits: 3, ..before };
        assert_eq!(
            line(&before, &now, second),
            "500 rows/s · 1500 saved in 3 batches · 100 waiting, 200 ms behind · 0 dead letters"
        );
        let still = Totals { dead_lettered: 2, ..now };
        assert_eq!(
            line(&now, &still, second),
            "0 rows/s · 1500 saved in 3 batches · 100 waiting, none saved · 2 dead letters"
        );
        assert!(line(&now, &Totals { left: 0, ..now }, second).contains(" · none waiting · "));
    }
}
