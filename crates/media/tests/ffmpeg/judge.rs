//! ffmpeg and ffprobe as judges. A missing one fails the test.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use weir_media::{Frame, Source, Track, append_adts, append_annex_b};

/// Runs a program and returns what it said on stdout and stderr.
///
/// # Panics
///
/// When it is missing or fails.
pub(crate) fn run(program: &str, arguments: &[&str]) -> (String, String) {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}; apt-get install ffmpeg"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{program} {arguments:?}: {stderr}");
    (stdout, stderr)
}

/// ffmpeg with arguments split at spaces; fails on any warning.
pub(crate) fn ffmpeg(arguments: &str) {
    let mut all = vec!["-nostdin", "-hide_banner", "-y", "-v", "warning"];
    all.extend(arguments.split_whitespace());
    let (_, warnings) = run("ffmpeg", &all);
    assert_eq!(warnings, "", "ffmpeg {arguments}");
}

/// Decodes a file from start to end; fails on any warning. The file comes through a pipe, because of a
/// plain file of AAC ffmpeg warns that it can only estimate the duration.
pub(crate) fn decode(path: &Path) {
    let input = File::open(path).unwrap();
    let output = Command::new("ffmpeg")
        .args("-hide_banner -v warning -probesize 100M -i pipe:0 -f null -".split(' '))
        .stdin(input)
        .output()
        .unwrap_or_else(|error| panic!("ffmpeg: {error}; apt-get install ffmpeg"));
    let warnings = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && warnings.is_empty(), "{}: {warnings}", path.display());
}

/// The lines of ffprobe's compact output for these entries.
pub(crate) fn ffprobe(path: &Path, arguments: &str) -> Vec<String> {
    let mut all = vec!["-v", "error", "-probesize", "100M", "-of", "csv=p=0"];
    all.extend(arguments.split_whitespace());
    let path = path.display().to_string();
    all.push(&path);
    let (lines, errors) = run("ffprobe", &all);
    assert_eq!(errors, "", "ffprobe {arguments} {path}");
    lines.lines().filter(|line| !line.is_empty()).map(|line| line.trim_end_matches(',').to_owned()).collect()
}

/// What a source gave, as `.h264` and `.aac` files, and frame by frame without payloads.
pub(crate) struct WrittenFile {
    pub(crate) video: PathBuf,
    pub(crate) audio: PathBuf,
    pub(crate) frames: Vec<Frame>,
    pub(crate) video_bytes: u64,
    pub(crate) audio_bytes: u64,
}

/// Writes a source's frames up to `duration` into `directory`, after `each` has seen them.
pub(crate) fn write(
    source: &mut impl Source,
    duration: Duration,
    directory: &Path,
    mut each: impl FnMut(&mut Frame),
) -> WrittenFile {
    let (video, audio) = (directory.join("video.h264"), directory.join("audio.aac"));
    let create = |path: &Path| BufWriter::new(File::create(path).unwrap());
    let (mut video_file, mut audio_file) = (create(&video), create(&audio));
    let mut written = WrittenFile { video, audio, frames: Vec::new(), video_bytes: 0, audio_bytes: 0 };
    let mut frame = Frame::empty();
    let mut bytes = Vec::new();
    loop {
        source.next(&mut frame).unwrap();
        if frame.decode_time >= duration {
            return written;
        }
        each(&mut frame);
        bytes.clear();
        match frame.track {
            Track::Video => {
                append_annex_b(source.video_config().unwrap(), &frame, &mut bytes);
                video_file.write_all(&bytes).unwrap();
                written.video_bytes += frame.payload.len() as u64;
            }
            Track::Audio => {
                append_adts(source.audio_config().unwrap(), &frame, &mut bytes);
                audio_file.write_all(&bytes).unwrap();
                written.audio_bytes += frame.payload.len() as u64;
            }
        }
        written.frames.push(Frame { payload: Vec::new(), ..frame.clone() });
    }
}
