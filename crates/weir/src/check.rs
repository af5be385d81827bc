//! `weir check`: a stored transport stream or a pipe, read once from end to end.

use crate::args::Check;
use crate::exit::{Exit, Failure};
use crate::interrupt::interrupt_flag;
use crate::print::{text, written};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::fs::File;
use std::io::{BufWriter, ErrorKind, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_engine::threshold::Threshold;
use weir_report::{Circumstances, StreamCheck};
use weir_ts::{Analyser, Counts, Options};

/// Bytes that one read asks for.
const READ: usize = 1 << 20;
/// What the names of totals begin with in a threshold.
const PREFIX: &str = "ts.";
/// Longest wait for a pipe before the interrupt flag is looked at again.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };

/// Reads, counts, prints, judges.
pub(crate) fn check(args: &Check) -> Result<Exit, Failure> {
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
    let passed = circumstances.thresholds.iter().all(|threshold| threshold.passed);
    print(&StreamCheck::new(&report, circumstances), args)?;
    read?;
    Ok(match (interrupted, passed) {
        (true, _) => Exit::Interrupted,
        (false, true) => Exit::Passed,
        (false, false) => Exit::Thresholds,
    })
}

/// Every threshold is about a total that is counted.
fn known(thresholds: &[Threshold]) -> Result<(), Failure> {
    let names: Vec<String> = Counts::NAMES.iter().map(|name| format!("{PREFIX}{name}")).collect();
    thresholds
        .iter()
        .try_for_each(|threshold| threshold.check_total(names.iter().map(String::as_str)))
        .map_err(Failure::with(Exit::Usage))
}

fn no_stream(args: &Check, bytes: u64) -> Failure {
    let size = args.packet_size.map_or_else(|| "188, 192 or 204".to_owned(), |size| size.bytes().to_string());
    let name = Source::name(&args.file);
    Failure::new(
        Exit::Internal,
        format!("{name}: no transport stream: no packets of {size} bytes in {bytes} bytes"),
    )
}

fn print(check: &StreamCheck, args: &Check) -> Result<(), Failure> {
    let json = args.json.as_deref();
    let mut bytes = Vec::new();
    if json == Some(Path::new("-")) {
        check.write_json(&mut bytes).map_err(Failure::with(Exit::Internal))?;
    } else if !args.quiet {
        text().write_check(check, &mut bytes).map_err(Failure::with(Exit::Internal))?;
    }
    written(std::io::stdout().lock().write_all(&bytes))?;
    if let Some(path) = json.filter(|path| *path != Path::new("-")) {
        let mut file = BufWriter::new(File::create(path).map_err(|error| Failure::of_file(path, &error))?);
        check
            .write_json(&mut file)
            .and_then(|()| file.flush())
            .map_err(|error| Failure::of_file(path, &error))?;
    }
    Ok(())
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

    fn open(path: &Path) -> Result<Self, Failure> {
        let name = Self::name(path);
        let refuse = |cause: String| Failure::new(Exit::Usage, format!("{name}: {cause}"));
        let file = if path.as_os_str() == "-" {
            let stdin = std::io::stdin();
            if stdin.is_terminal() {
                return Err(refuse("is a terminal; pipe a transport stream into weir".to_owned()));
            }
            File::from(stdin.as_fd().try_clone_to_owned().map_err(|error| refuse(error.to_string()))?)
        } else {
            File::open(path).map_err(|error| refuse(error.to_string()))?
        };
        let metadata = file.metadata().map_err(|error| refuse(error.to_string()))?;
        let length = metadata.is_file().then_some(metadata.len());
        Ok(Self { name, file, length })
    }

    /// Feeds all of it, or what comes before an interrupt or an error.
    fn read_into(&mut self, analyser: &mut Analyser, interrupt: &AtomicBool) -> Result<(), Failure> {
        let progress = progress(self.length);
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
                    progress.set_position(fed);
                }
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
                Err(error) => {
                    progress.finish_and_clear();
                    return Err(Failure::new(Exit::Usage, format!("{}: {error}", self.name)));
                }
            }
        }
        progress.finish_and_clear();
        Ok(())
    }

    /// Whether a read would return at once. A read that waits is begun again by the system when Ctrl-C comes,
    /// so that a pipe is only read when there is something in it.
    fn is_ready(&self) -> bool {
        let mut pipe = [PollFd::new(&self.file, PollFlags::IN)];
        self.length.is_some()
            || match poll(&mut pipe, Some(&PATIENCE)) {
                Ok(ready) => ready > 0,
                Err(Errno::INTR) => false,
                // What cannot be waited for is read; that says what is wrong with it.
                Err(_) => true,
            }
    }
}

/// A bar on a terminal, drawn four times a second; nothing elsewhere.
fn progress(length: Option<u64>) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let template = match length {
        Some(_) => "{bar:20} {decimal_bytes} of {decimal_total_bytes} · {decimal_bytes_per_sec}",
        None => "{decimal_bytes} · {decimal_bytes_per_sec}",
    };
    let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr_with_hz(4));
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style.progress_chars("━╸─"));
    bar
}
