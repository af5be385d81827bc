//! What `weir ingest` says while it runs: that it is subscribed, and how fast it saves; a table that is drawn over itself on a
//! terminal, a line every ten seconds elsewhere. It reads counts, and knows neither broker nor store.

use crate::print::note;
use crate::rows;
use crate::screen::{Screen, is_for_drawing};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use weir_ingest::{Counts, DropCause, Totals};

/// Between two drawings: also how soon a subscription is noticed.
const DRAW: Duration = Duration::from_millis(250);

/// Between two looks at how fast it goes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Between two lines where they are not drawn over each other.
const PLAIN: Duration = Duration::from_secs(10);

/// Between two lines about messages that are missing.
const GAPS: Duration = Duration::from_secs(60);

/// What an ingester is about.
pub(crate) struct Subject {
    /// What a person reads as soon as the broker has granted the subscription.
    pub(crate) subscribed: String,
    /// How the broker is called.
    pub(crate) broker: String,
    /// Whether the subscription is at QoS 0.
    pub(crate) at_most_once: bool,
}

/// What is shown of an ingester, until it is dropped.
pub(crate) struct IngestProgress {
    view: Arc<Mutex<View>>,
    ends: Option<(Sender<()>, JoinHandle<()>)>,
}

/// What stands on the terminal now.
#[derive(Default)]
struct View {
    /// None where lines are printed one below the other.
    screen: Option<Screen>,
    lines: Vec<String>,
}

impl IngestProgress {
    /// Shows `counts`, for `length` if that is known; says that it is `subscribed` as soon as they know of it.
    pub(crate) fn start(counts: Arc<Counts>, length: Option<Duration>, subject: Subject) -> Self {
        let screen = is_for_drawing().then(Screen::new);
        let view = Arc::new(Mutex::new(View { screen, lines: Vec::new() }));
        let ((end, ended), shown) = (channel(), view.clone());
        let show = move || show(&counts, length, &subject, &shown, &ended);
        // Without a thread for it nothing is shown, and all is saved.
        let thread = std::thread::Builder::new().name("weir-progress".to_owned()).spawn(show);
        Self { view, ends: thread.ok().map(|thread| (end, thread)) }
    }

    /// A line that stays.
    pub(crate) fn say(&self, line: &str) {
        locked(&self.view).say(line);
    }
}

impl Drop for IngestProgress {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.ends.take() {
            drop(end);
            // One that panicked draws no more either.
            let _ = thread.join();
        }
        locked(&self.view).clear();
    }
}

impl View {
    /// Prints a line above what is drawn.
    fn say(&mut self, line: &str) {
        if let Some(screen) = &mut self.screen {
            screen.clear();
        }
        note(format_args!("weir: {line}"));
        self.draw();
    }

    fn draw(&mut self) {
        if let Some(screen) = &mut self.screen {
            screen.draw(&self.lines);
        }
    }

    fn clear(&mut self) {
        self.lines.clear();
        self.draw();
    }
}

fn locked(view: &Mutex<View>) -> MutexGuard<'_, View> {
    view.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows what is counted until the sender of `ended` is gone.
fn show(
    counts: &Counts,
    length: Option<Duration>,
    subject: &Subject,
    view: &Mutex<View>,
    ended: &Receiver<()>,
) {
    let (began, mut is_subscribed) = (Instant::now(), false);
    let mut looked = (began, counts.totals());
    let mut pace = Pace::default();
    let mut said = began;
    // Messages that are known to be missing, and when that was said.
    let mut gaps: (u64, Option<Instant>) = (0, None);
    while ended.recv_timeout(DRAW) == Err(RecvTimeoutError::Timeout) {
        if !is_subscribed && counts.subscribed.load(Relaxed) > 0 {
            is_subscribed = true;
            locked(view).say(&subject.subscribed);
        }
        let now = Instant::now();
        if now - looked.0 >= POLL_INTERVAL {
            let totals = counts.totals();
            pace = Pace::between(&looked.1, &totals, now - looked.0);
            looked = (now, totals);
            if totals.missing > gaps.0 && gaps.1.is_none_or(|said| now - said >= GAPS) {
                gaps = (totals.missing, Some(now));
                let cause =
                    DropCause::likely(subject.at_most_once, totals.sessions_lost).after(totals.reconnects);
                locked(view).say(&counts.missing().line(&subject.broker, cause));
            }
        }
        let mut view = locked(view);
        if let Some(screen) = &view.screen
            && is_for_drawing()
        {
            let (columns, rows) = screen.size();
            // The last row is the cursor's.
            view.lines = table(now - began, length, is_subscribed, &looked.1, &pace, (columns, rows - 1));
            view.draw();
        } else if is_subscribed && now - said >= PLAIN {
            // On a terminal whose foreground is another program's by now, nothing is drawn over.
            view.screen = None;
            said = now;
            view.say(&line(&looked.1, &pace));
        }
    }
}

/// How fast it goes.
#[derive(Clone, Debug, Default)]
struct Pace {
    rows_per_second: f64,
    /// How far behind the broker the saving is; none if nothing is saved.
    behind: Option<Duration>,
}

impl Pace {
    fn between(before: &Totals, now: &Totals, passed: Duration) -> Self {
        let seconds = passed.as_secs_f64().max(1e-3);
        let settled = |totals: &Totals| totals.messages - totals.left;
        let rate = settled(now).saturating_sub(settled(before)) as f64 / seconds;
        let behind = (rate > 0.0).then(|| Duration::from_secs_f64(now.left as f64 / rate));
        Self { rows_per_second: (now.saved - before.saved) as f64 / seconds, behind }
    }

    /// What waits, and for how long.
    fn lag(&self, totals: &Totals) -> Vec<String> {
        match (totals.left, self.behind) {
            (0, _) => vec!["none waiting".to_owned()],
            (left, Some(behind)) => {
                vec![format!("{left} waiting"), format!("{:.0} ms behind", behind.as_secs_f64() * 1e3)]
            }
            (left, None) => vec![format!("{left} waiting"), "none saved".to_owned()],
        }
    }
}

/// What happened, in a line.
fn line(totals: &Totals, pace: &Pace) -> String {
    let (rows, lag) = (pace.rows_per_second, pace.lag(totals).join(", "));
    let Totals { saved, commits, dead_lettered, .. } = totals;
    format!("{rows:.0} rows/s · {saved} saved in {commits} batches · {lag} · {dead_lettered} dead letters")
}

/// The same for a terminal of this many columns and rows, with what went wrong beside it.
fn table(
    elapsed: Duration,
    length: Option<Duration>,
    is_subscribed: bool,
    totals: &Totals,
    pace: &Pace,
    (width, height): (usize, usize),
) -> Vec<String> {
    let counted = |count: u64, words: &str| (count > 0).then(|| format!("{count} {words}"));
    let waits = (!is_subscribed).then(|| "not subscribed yet".to_owned());
    let broker = [
        waits,
        counted(totals.reconnects, "reconnects"),
        counted(totals.sessions_lost, "sessions lost"),
        counted(totals.missing, "messages missing"),
    ];
    let broker: Vec<String> = broker.into_iter().flatten().collect();
    let saved = [
        format!("{:.0} rows/s", pace.rows_per_second),
        format!("{} rows", totals.saved),
        format!("{} batches", totals.commits),
    ];
    let store: Vec<String> = counted(totals.retries, "attempts made again").into_iter().collect();
    let others = [counted(totals.dead_lettered, "dead letters"), counted(totals.duplicate, "duplicates")];
    let others: Vec<String> = others.into_iter().flatten().collect();
    let lag = pace.lag(totals);
    let rows = [
        ("broker", broker.as_slice()),
        ("saved", saved.as_slice()),
        ("messages", lag.as_slice()),
        ("besides", others.as_slice()),
        ("store", store.as_slice()),
    ];
    rows::lines(rows::progress(elapsed, length, width), &rows, width, height)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_line_says_how_fast_rows_are_saved_and_how_far_behind() {
        let before = Totals { messages: 1_000, saved: 1_000, ..Totals::default() };
        let now = Totals { messages: 1_600, left: 100, saved: 1_500, commits: 3, ..before };
        assert_eq!(
            line(&now, &Pace::between(&before, &now, SECOND)),
            "500 rows/s · 1500 saved in 3 batches · 100 waiting, 200 ms behind · 0 dead letters"
        );
        let still = Totals { dead_lettered: 2, ..now };
        assert_eq!(
            line(&still, &Pace::between(&now, &still, SECOND)),
            "0 rows/s · 1500 saved in 3 batches · 100 waiting, none saved · 2 dead letters"
        );
        let settled = Totals { left: 0, ..now };
        assert!(line(&settled, &Pace::between(&now, &settled, SECOND)).contains(" · none waiting · "));
    }

    #[test]
    fn a_terminal_shows_what_is_saved_and_only_what_has_gone_wrong() {
        let before = Totals { messages: 1_000, saved: 1_000, ..Totals::default() };
        let now = Totals { messages: 1_600, left: 100, saved: 1_500, commits: 3, ..before };
        let pace = Pace::between(&before, &now, SECOND);
        let shown = |is_subscribed, length, totals: &Totals, width| {
            table(35 * SECOND, length, is_subscribed, totals, &pace, (width, 23)).join("\n")
        };
        let wrong = Totals { dead_lettered: 2, duplicate: 1, reconnects: 1, retries: 4, ..now };
        insta::assert_snapshot!(
            [
                shown(false, None, &Totals::default(), 80),
                shown(true, Some(60 * SECOND), &now, 80),
                shown(true, None, &wrong, 40),
            ]
            .join("\n\n")
        );
    }
}
