//! `weir check`: a stored transport stream or a pipe, read once from end to end.

use crate::args::Check;
use crate::exit::Exit;
use crate::interrupt::interrupt_flag;
use crate::print::AnswerOutput;
use crate::rows;
use crate::run::said;
use crate::screen::{Screen, is_for_drawing};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use weir_engine::threshold::Threshold;
use weir_metrics::several;
use weir_report::{Circumstances, StreamCheck};
use weir_runner::{ErrorKind, RunError};
use weir_ts::{Analyser, Counts, Options};

/// Bytes that one read asks for.
const READ: usize = 1 << 20;
/// What the names of totals begin with in a threshold.
const PREFIX: &str = "ts.";
/// Longest wait for a pipe before the interrupt flag is looked at again.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };
/// Between two drawings of how far it is.
const DRAW: Duration = Duration::from_millis(250);

/// Reads, counts, prints, judges.
pub(crate) fn check(args: &Check) -> Result<Exit, RunError> {
    known(&args.thresholds)?;
    let mut source = Source::open(&args.file)?;
    let interrupt = interrupt_flag()?;
    let options =
        Options { packet_size: args.packet_size, findings_per_kind: args.findings, ..Options::default() };
    let mut analyser = Analyser::new(options);
    let read = source.read_into(&mut analyser, &interrupt);
    // What the analyser holds of a packet when Ctrl-C comes, or the disk fails, is no truncated end.
    let interrupted = interrupt.load(Ordering::Relaxed);
    let whole = read.is_ok() && !interrupted;
    if whole {
        analyser.finish();
    }
    let report = analyser.report();
    if report.counts.packets == 0 && !interrupted {
        return Err(read.err().unwrap_or_else(|| no_stream(args, report.counts.bytes)));
    }
    let total = |name: &str| report.counts.get(name.strip_prefix(PREFIX)?);
    let circumstances = Circumstances {
        source: args.file.display().to_string(),
        interrupted: !whole,
        findings_per_kind: args.findings,
        thresholds: args.thresholds.iter().map(|threshold| threshold.judge_total(total)).collect(),
    };
    let failed: Vec<_> = circumstances.thresholds.iter().filter(|it| !it.passed).collect();
    let why = if interrupted {
        Some("interrupted before the end of the stream".to_owned())
    } else {
        failed
            .first()
            .map(|it| format!("{} failed: {}", several(failed.len() as u64, "threshold"), it.expression))
    };
    let passed = failed.is_empty();
    print(&StreamCheck::new(&report, circumstances), args)?;
    read?;
    let exit = match (interrupted, passed) {
        (true, _) => Exit::Failed(ErrorKind::Interrupted),
        (false, true) => Exit::Passed,
        (false, false) => Exit::Failed(ErrorKind::Thresholds),
    };
    Ok(said(exit, why))
}

/// Every threshold is about a total that is counted.
fn known(thresholds: &[Threshold]) -> Result<(), RunError> {
    let names: Vec<String> = Counts::NAMES.iter().map(|name| format!("{PREFIX}{name}")).collect();
    thresholds
        .iter()
        .try_for_each(|threshold| threshold.check_total(names.iter().map(String::as_str)))
        .map_err(RunError::with(ErrorKind::Usage))
}

fn no_stream(args: &Check, bytes: u64) -> RunError {
    let size = args.packet_size.map_or_else(|| "188, 192 or 204".to_owned(), |size| size.bytes().to_string());
    let name = Source::name(&args.file);
    RunError::new(
        ErrorKind::Internal,
        format!("{name}: no transport stream: no packets of {size} bytes in {bytes} bytes"),
    )
}

fn print(check: &StreamCheck, args: &Check) -> Result<(), RunError> {
    let asked = AnswerOutput { format: "text", json: args.json.as_deref(), quiet: args.quiet };
    asked.print(None, &|format, text, out| match format {
        "json" => check.write_json(out),
        _ => text.write_check(check, out),
    })
}

/// Where the stream comes from.
struct Source {
    name: String,
    file: File,
    /// Its length, if it is a file: then reading never waits.
    length: Option<u64>,
}

impl Source {
    fn name(path: &Path) -> String {
        if path.as_os_str() == "-" { "stdin".to_owned() } else { path.display().to_string() }
    }

    fn open(path: &Path) -> Result<Self, RunError> {
        let name = Self::name(path);
        let refuse = |cause: String| RunError::new(ErrorKind::Usage, format!("{name}: {cause}"));
        let file = if path.as_os_str() == "-" {
            let stdin = std::io::stdin();
            if stdin.is_terminal() {
                return Err(refuse("is a terminal; pipe a transport stream into weir".to_owned()));
            }
            File::from(stdin.as_fd().try_clone_to_owned().map_err(|error| refuse(error.to_string()))?)
        } else {
            File::open(path).map_err(|error| match name.contains("://") {
                true => {
                    refuse("a URL is not a file; pipe what is there: curl -s URL | weir check -".to_owned())
                }
                false => refuse(error.to_string()),
            })?
        };
        let metadata = file.metadata().map_err(|error| refuse(error.to_string()))?;
        if metadata.is_dir() {
            return Err(refuse("is a directory; give a file that holds a transport stream".to_owned()));
        }
        let length = metadata.is_file().then_some(metadata.len());
        Ok(Self { name, file, length })
    }

    /// Feeds all of it, or what comes before an interrupt or an error.
    fn read_into(&mut self, analyser: &mut Analyser, interrupt: &AtomicBool) -> Result<(), RunError> {
        let mut progress = Progress::of(self.length);
        let mut buffer = vec![0; READ];
        let mut fed = 0;
        while !interrupt.load(Ordering::Relaxed) {
            if !self.is_ready() {
                continue;
            }
            match self.file.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => {
                    analyser.feed(&buffer[..read]);
                    fed += read as u64;
                    progress.draw(fed);
                }
                Err(error)
                    if matches!(
                        error.kind(),
                        std::io::ErrorKind::Interrupted | std::io::ErrorKind::WouldBlock
                    ) => {}
                Err(error) => {
                    return Err(RunError::new(ErrorKind::Usage, format!("{}: {error}", self.name)));
                }
            }
        }
        Ok(())
    }

    /// Whether a read would return at once. A read that waits is begun again by the system when Ctrl-C comes,
    /// so that a pipe is only read when there is something in it.
    fn is_ready(&self) -> bool {
        let mut pipe = [PollFd::new(&self.file, PollFlags::IN)];
        self.length.is_some()
            || match poll(&mut pipe, Some(&POLL_INTERVAL)) {
                Ok(ready) => ready > 0,
                Err(Errno::INTR) => false,
                // What cannot be waited for is read; that says what is wrong with it.
                Err(_) => true,
            }
    }
}

/// How far a stream is read, on a terminal; nothing elsewhere. It goes when it is dropped.
struct Progress {
    screen: Option<Screen>,
    length: Option<u64>,
    began: Instant,
    /// When it is drawn again.
    next: Instant,
}

impl Progress {
    fn of(length: Option<u64>) -> Self {
        let began = Instant::now();
        Self { screen: is_for_drawing().then(Screen::new), length, began, next: began + DRAW }
    }

    /// So many bytes are read.
    fn draw(&mut self, read: u64) {
        let Some(screen) = &mut self.screen else { return };
        let now = Instant::now();
        if now >= self.next && is_for_drawing() {
            let width = screen.size().0;
            screen.draw(&[how_far(read, self.length, now - self.began, width)]);
            self.next = now + DRAW;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.screen.iter_mut().for_each(Screen::clear);
    }
}

fn how_far(read: u64, length: Option<u64>, passed: Duration, width: usize) -> String {
    let megabytes = |bytes: f64| format!("{:.1} MB", bytes * 1e-6);
    let rate = megabytes(read as f64 / passed.as_secs_f64().max(1e-3));
    let read = read as f64;
    let line = match length.map(|length| length as f64) {
        Some(length) => {
            let bar = rows::bar(read, length, width);
            format!("{bar} {} of {} · {rate}/s", megabytes(read), megabytes(length))
        }
        None => format!("{} · {rate}/s", megabytes(read)),
    };
    console::truncate_str(&line, width, "…").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_end_and_a_pipe_until_it_ends() {
        let second = Duration::from_secs(2);
        assert_eq!(
            how_far(30_000_000, Some(60_000_000), second, 40),
            "━━━━━───── 30.0 MB of 60.0 MB · 15.0 MB…"
        );
        assert_eq!(how_far(30_000_000, None, second, 80), "30.0 MB · 15.0 MB/s");
    }
}
