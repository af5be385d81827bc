//! One ffmpeg: an elementary stream goes in, and a line for each decoded frame comes out.

use super::queue::Queue;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{PoisonError, mpsc};
use std::thread;
use std::time::Duration;

/// How long an ffmpeg may take for what still waits when its stream has ended: twice what the queue holds of most streams.
const END_TIMEOUT: Duration = Duration::from_secs(8);
/// Bytes of a line that are looked at.
const LONGEST_LINE: usize = 256;
/// The most pixels of a picture: 8192 × 4352, the largest of H.264 and H.265 (level 6.2). More is refused by ffmpeg.
const MOST_PIXELS: &str = "35651584";

/// A stream that ffmpeg has a demultiplexer for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamFormat {
    /// H.264 in a byte stream.
    H264,
    /// H.265 in a byte stream.
    H265,
    /// VP8 in IVF.
    Vp8,
    /// VP9 in IVF.
    Vp9,
    /// AV1 in IVF.
    Av1,
    /// AAC in ADTS.
    Adts,
}

impl StreamFormat {
    /// The name that ffmpeg has for it.
    fn name(self) -> &'static str {
        match self {
            Self::H264 => "h264",
            Self::H265 => "hevc",
            Self::Vp8 | Self::Vp9 | Self::Av1 => "ivf",
            Self::Adts => "aac",
        }
    }

    fn is_video(self) -> bool {
        self != Self::Adts
    }
}

/// Where the programs are.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    nice: PathBuf,
    ffmpeg: PathBuf,
    /// See [`END_TIMEOUT`].
    pub(super) end_timeout: Duration,
}

impl Programs {
    /// Those in PATH; `None` if one of them is not there.
    pub(super) fn find() -> Option<Self> {
        let path = std::env::var_os("PATH")?;
        let places: Vec<PathBuf> = std::env::split_paths(&path).filter(|place| place.is_absolute()).collect();
        let find = |name: &str| places.iter().map(|place| place.join(name)).find(|file| file.is_file());
        Some(Self { nice: find("nice")?, ffmpeg: find("ffmpeg")?, end_timeout: END_TIMEOUT })
    }

    #[cfg(test)]
    pub(super) fn of(nice: &str, ffmpeg: &str) -> Self {
        Self { nice: nice.into(), ffmpeg: ffmpeg.into(), end_timeout: END_TIMEOUT }
    }

    /// The lowest priority, one thread, and nothing but the pipe: no network, no file, no guess of what comes.
    fn command(&self, format: StreamFormat) -> Command {
        let mut command = Command::new(&self.nice);
        command.args(["-n", "19"]).arg(&self.ffmpeg);
        command.args(["-nostdin", "-hide_banner", "-loglevel", "repeat+level+warning"]);
        command.args(["-protocol_whitelist", "pipe", "-threads", "1", "-f", format.name()]);
        if format.is_video() {
            // Frames are shown in the order of the standard, however far apart, and each has a time of its own: none is left out.
            command.args(["-max_pixels", MOST_PIXELS]);
            if matches!(format, StreamFormat::H264 | StreamFormat::H265) {
                command.args(["-strict", "1", "-framerate", "25"]);
            }
            // With another size the filter would begin to count again, and all that comes would be before what has come.
            command.args(["-reinit_filter", "0", "-i", "pipe:0"]);
            // As far apart as what comes out is to be, whatever rate the stream says that it has: ffmpeg would leave out what is too much for
            // that.
            command.args(["-map", "0:v:0", "-vf", "settb=1/25,setpts=N", "-r", "25"]);
        } else {
            command.args(["-i", "pipe:0", "-map", "0:a:0"]);
        }
        command.args(["-f", "framecrc", "pipe:1"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C is for weir, which ends the stream: what was handed in is decoded to its end.
        command.process_group(0);
        command
    }
}

/// What became of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcome {
    /// `None`: ffmpeg did not run to its end, which says nothing of the stream.
    pub(super) counted: Option<DecodedCounts>,
    /// Frames for which there was no room.
    pub(super) left_out: u64,
    /// CPU time of ffmpeg.
    pub(super) cpu: Duration,
}

/// What ffmpeg made of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DecodedCounts {
    pub(super) handed_in: u64,
    /// Frames that came out, without those that ffmpeg calls corrupt.
    pub(super) decoded: u64,
    /// Lines about errors.
    pub(super) errors: u64,
    /// Width and height of its pictures.
    pub(super) size: (u32, u32),
}

/// Decodes what comes through the queue, to its end.
pub(super) fn decode(programs: &Programs, format: StreamFormat, queue: &Queue) -> Outcome {
    let Ok(mut child) = programs.command(format).spawn() else {
        queue.desert();
        queue.wait_for_end();
        return Outcome::default();
    };
    let running = Running::new(child.id());
    let (frames, complaints) = thread::scope(|scope| {
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut input), Some(output), Some(errors)) = pipes else { unreachable!("all are piped") };
        scope.spawn(move || {
            // It may end before its stream does.
            while let Some(bytes) = queue.take() {
                if input.write_all(&bytes).is_err() {
                    break;
                }
            }
            queue.desert();
        });
        let (done, is_done) = mpsc::channel();
        let frames = scope.spawn(move || {
            let mut frames = Frames::default();
            for_each_line(output, |line| frames.take(line));
            // The other end waits for it, or has given up.
            let _ = done.send(());
            frames
        });
        let complaints = scope.spawn(move || {
            let mut complaints = Complaints::default();
            for_each_line(errors, |line| complaints.take(line));
            complaints
        });
        queue.wait_for_end();
        if is_done.recv_timeout(programs.end_timeout).is_err() {
            // One that has ended meanwhile cannot be killed any more.
            let _ = child.kill();
        }
        (frames.join().unwrap_or_default(), complaints.join().unwrap_or_default())
    });
    let cpu = cpu_time(&child);
    drop(running);
    let status = child.wait().ok();
    let (handed_in, left_out) = queue.counts();
    let decoded = frames.count.saturating_sub(complaints.corrupt);
    let counted = DecodedCounts { handed_in, decoded, errors: complaints.errors, size: frames.size };
    Outcome { counted: complaints.judge(status, &frames).then_some(counted), left_out, cpu }
}

/// A process among [`super::decoder_processes`], up to its end.
struct Running(u32);

impl Running {
    fn new(pid: u32) -> Self {
        super::RUNNING.lock().unwrap_or_else(PoisonError::into_inner).push(pid);
        Self(pid)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        super::RUNNING.lock().unwrap_or_else(PoisonError::into_inner).retain(|pid| *pid != self.0);
    }
}

/// Calls `each` with the beginning of each line.
fn for_each_line(mut from: impl Read, mut each: impl FnMut(&str)) {
    let mut buffer = [0; 4096];
    let mut line = Vec::with_capacity(LONGEST_LINE);
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        for &byte in &buffer[..count] {
            if byte == b'\n' {
                each(&String::from_utf8_lossy(&line));
                line.clear();
            } else if line.len() < LONGEST_LINE {
                line.push(byte);
            }
        }
    }
}

/// What ffmpeg wrote of the frames: `#dimensions 0: 1280x720`, and a line for each.
#[derive(Clone, Copy, Debug, Default)]
struct Frames {
    count: u64,
    size: (u32, u32),
}

impl Frames {
    fn take(&mut self, line: &str) {
        if !line.starts_with('#') {
            self.count += u64::from(!line.is_empty());
        } else if let Some(size) = line.strip_prefix("#dimensions 0: ").and_then(|it| it.split_once('x')) {
            self.size = (size.0.parse().unwrap_or(0), size.1.parse().unwrap_or(0));
        }
    }
}

/// What ffmpeg complained of.
#[derive(Clone, Copy, Debug, Default)]
struct Complaints {
    errors: u64,
    /// Frames that were put together in spite of errors.
    corrupt: u64,
    /// This ffmpeg was built without what it needs.
    lacks: bool,
}

/// What ffmpeg says, in one version or another, where it has no decoder or none that needs no hardware.
const LACKS: [&str; 6] = [
    "Unknown input format",
    "Unknown decoder",
    "Unrecognized option",
    "Decoder (codec",
    "no decoder found",
    "hardware accelerated AV1",
];

impl Complaints {
    fn take(&mut self, line: &str) {
        self.errors += u64::from(line.contains("[error]") || line.contains("[fatal]"));
        self.corrupt += u64::from(line.contains("corrupt decoded frame"));
        self.lacks |= LACKS.iter().any(|words| line.contains(words));
    }

    /// Whether what came out says something of the stream.
    fn judge(&self, status: Option<ExitStatus>, frames: &Frames) -> bool {
        // By a signal: it was killed, by weir or for want of memory.
        status.is_some_and(|status| status.code().is_some()) && !(self.lacks && frames.count == 0)
    }
}

/// CPU time of a process that has ended and was not waited for, or of one that runs (proc_pid_stat(5), fields 14 and 15).
fn cpu_time(child: &Child) -> Duration {
    let stat = std::fs::read_to_string(Path::new("/proc").join(child.id().to_string()).join("stat"));
    let ticks = stat.ok().and_then(|text| {
        let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
        let mut next = || fields.next()?.parse::<u64>().ok();
        Some(next()? + next()?)
    });
    // The kernel counts in hundredths of a second here, whatever its own tick (USER_HZ).
    Duration::from_millis(ticks.unwrap_or_default() * 10)
}

#[cfg(test)]
mod tests {
    use super::super::queue;
    use super::*;

    #[test]
    fn lines_are_counted_however_long_they_are() {
        let text = format!("#dimensions 0: 1280x720\n0, 0, 0, 1, 5, 0x9\n{}\n\n0, 1", "x".repeat(100_000));
        let mut frames = Frames::default();
        for_each_line(text.as_bytes(), |line| frames.take(line));
        // The last one has no end.
        assert_eq!((frames.count, frames.size), (2, (1280, 720)));
        let mut complaints = Complaints::default();
        for line in [
            "[h264 @ 0x55] [error] left block unavailable for requested intra mode",
            "[warning] pipe:0: corrupt decoded frame in stream 0",
            "[h264 @ 0x55] [warning] Increasing reorder buffer to 1",
        ] {
            complaints.take(line);
        }
        assert_eq!((complaints.errors, complaints.corrupt, complaints.lacks), (1, 1, false));
    }

    #[test]
    fn a_program_that_cannot_be_begun_counts_nothing_and_ends_with_its_stream() {
        let (mut feed, queue) = queue::new();
        feed.put(vec![1, 2, 3], 1, true);
        drop(feed);
        let outcome = decode(&Programs::of("/nowhere/nice", "/nowhere/ffmpeg"), StreamFormat::H264, &queue);
        assert_eq!(outcome.counted, None);
    }
}
