//! Stored streams of ffmpeg's making: what is cut out of them is what `weir check` says is missing.

use crate::support::{KilledOnDrop, interrupt, program, says, weir};
use serde_json::Value;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use tempfile::TempDir;

const PACKET: usize = 188;

/// Ten seconds of a test picture and a tone; one frame a PES packet, so that others' packets can be compared.
fn recorded(options: &[&str]) -> Vec<u8> {
    let mut ffmpeg = program("ffmpeg", "ffmpeg");
    ffmpeg.args(["-v", "error", "-f", "lavfi", "-i", "testsrc2=s=320x240:r=25:d=10", "-f", "lavfi"]);
    ffmpeg.args([
        "-i",
        "sine=r=48000:d=10",
        "-c:v",
        "libx264",
        "-preset",
        "ultrafast",
        "-b:v",
        "1M",
        "-g",
        "25",
    ]);
    ffmpeg.args(["-c:a", "mp2", "-b:a", "128k", "-metadata", "service_name=Truth", "-pes_payload_size", "0"]);
    let output = ffmpeg.args(options).args(["-f", "mpegts", "-"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn stream() -> &'static [u8] {
    static STREAM: OnceLock<Vec<u8>> = OnceLock::new();
    STREAM.get_or_init(|| recorded(&["-muxrate", "2M"]))
}

/// A file of these bytes, gone with the directory.
fn stored(bytes: &[u8]) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("stream.ts");
    std::fs::write(&path, bytes).unwrap();
    (directory, path)
}

/// What weir counts in these bytes.
fn checked(bytes: &[u8], arguments: &[&str]) -> (Option<i32>, Value) {
    let (_directory, path) = stored(bytes);
    let said = says(["check", path.to_str().unwrap(), "--json", "-"].iter().chain(arguments));
    // What failed is one line; nothing else is said.
    let lines = usize::from(said.code == Some(99));
    assert_eq!(
        (said.err.lines().count(), said.err.matches(" failed: ").count()),
        (lines, lines),
        "{}",
        said.err
    );
    (said.code, serde_json::from_str(&said.out).unwrap())
}

fn pid_of(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[1] & 0x1F, packet[2]])
}

/// The stream without those packets of a PID that are lost; a number counts the packets with a payload from 0.
fn without(stream: &[u8], pid: u16, is_lost: impl Fn(usize) -> bool) -> Vec<u8> {
    let mut seen = 0;
    let packets = stream.chunks(PACKET).filter(|packet| {
        let counts = pid_of(packet) == pid && packet[3] & 0x10 != 0;
        seen += usize::from(counts);
        !(counts && is_lost(seen - 1))
    });
    packets.flatten().copied().collect()
}

/// Packets and PID of each stream as ffprobe has them.
fn probed(path: &Path) -> Vec<(u64, u64)> {
    let mut ffprobe = program("ffprobe", "ffmpeg");
    ffprobe.args(["-v", "error", "-count_packets", "-show_streams", "-of", "json"]).arg(path);
    let output: Value = serde_json::from_slice(&ffprobe.output().unwrap().stdout).unwrap();
    let streams = output["streams"].as_array().unwrap().iter().map(|stream| {
        let id = stream["id"].as_str().unwrap().trim_start_matches("0x");
        (u64::from_str_radix(id, 16).unwrap(), stream["nb_read_packets"].as_str().unwrap().parse().unwrap())
    });
    streams.collect()
}

#[test]
fn a_whole_recording_loses_nothing_and_has_the_packets_that_ffprobe_counts() {
    let (_directory, path) = stored(stream());
    let (code, check) = checked(stream(), &["--threshold", "ts.lost_packets == 0"]);
    assert_eq!(code, Some(0));
    let counts = &check["counts"];
    assert_eq!((counts["bytes"].as_u64(), counts["packets"].as_u64()), {
        let bytes = stream().len();
        (Some(bytes as u64), Some((bytes / PACKET) as u64))
    });
    for name in
        ["gap_events", "illegal_duplicates", "skipped_bytes", "resyncs", "trailing_bytes", "crc_error"]
    {
        assert_eq!(counts[name], 0, "{name}");
    }
    for indicator in check["indicators"].as_array().unwrap().iter().filter(|it| it["priority"] == 1) {
        assert_eq!(indicator["count"], 0, "{indicator}");
    }
    let streams = probed(&path);
    assert_eq!(streams.len(), 2);
    for (pid, packets) in streams {
        let entry = check["pids"].as_array().unwrap().iter().find(|it| it["pid"] == pid).unwrap();
        assert_eq!(entry["pes_packets"], packets, "{entry}");
    }
    assert_eq!(check["services"][0]["name"], "Truth");
    let rate = check["bit_rate_bps"].as_f64().unwrap();
    assert!((1.98e6..2.02e6).contains(&rate), "{rate}");
    let length = check["duration_seconds"].as_f64().unwrap();
    assert!((length - stream().len() as f64 * 8.0 / 2e6).abs() < 0.2, "{length}");
}

#[test]
fn what_is_cut_out_of_a_recording_is_what_is_lost() {
    let cut = without(stream(), 0x100, |at| matches!(at, 50 | 200..205 | 400..414));
    assert_eq!(stream().len() - cut.len(), 20 * PACKET);
    let (code, check) = checked(&cut, &[]);
    assert_eq!(code, Some(0), "nothing was asked");
    let counts = &check["counts"];
    assert_eq!((&counts["lost_packets"], &counts["gap_events"]), (&20.into(), &3.into()));
    assert_eq!(counts["continuity_count_error"], 3);
    for pid in check["pids"].as_array().unwrap() {
        let lost = if pid["pid"] == 0x100 { 20 } else { 0 };
        assert_eq!(pid["lost_packets"], lost, "{pid}");
    }
    let gaps: Vec<_> =
        check["findings"].as_array().unwrap().iter().filter(|finding| finding["kind"] == "Gap").collect();
    assert_eq!(gaps.len(), 3);
    // The packet that each finding names is the one after the hole.
    for gap in gaps {
        let at = gap["packet"].as_u64().unwrap() as usize * PACKET;
        assert_eq!(gap["byte"], at as u64);
        assert_eq!(u64::from(pid_of(&cut[at..])), gap["pid"].as_u64().unwrap());
        assert!(gap["time_seconds"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn a_threshold_that_fails_is_99_and_one_that_is_about_nothing_is_2() {
    let cut = without(stream(), 0x100, |at| at == 50);
    let (code, check) =
        checked(&cut, &["--threshold", "ts.lost_packets == 0", "--threshold", "ts.packets > 9"]);
    assert_eq!(code, Some(99));
    let judged = &check["thresholds"];
    assert_eq!((&judged[0]["passed"], &judged[0]["value"]), (&false.into(), &1.0.into()));
    assert_eq!(judged[1]["passed"], true);

    let (_directory, path) = stored(stream());
    let path = path.to_str().unwrap();
    for (threshold, words) in [
        ("ts.lost_packet == 0", "did you mean 'ts.lost_packets'?"),
        ("lost_packets == 0", "did you mean 'ts.lost_packets'?"),
        ("ts.skipped == 0", "did you mean 'ts.skipped_bytes'?"),
        ("ts.nosuch == 0", "no figure 'ts.nosuch'; docs/method names them all"),
        ("bit_rate > 1", "no figure 'bit_rate'; docs/method names them all"),
        ("ts.packets.p99 > 1", "'p99' does not fit"),
        ("ts.packets", "no comparison"),
    ] {
        let said = says(["check", path, "--threshold", threshold]);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{threshold}: {}", said.err);
        assert!(said.err.contains(words), "{threshold}: {}", said.err);
    }
}

#[test]
fn packets_of_192_and_204_bytes_give_the_same_account() {
    let timestamped = recorded(&["-muxrate", "2M", "-mpegts_m2ts_mode", "1"]);
    let parity: Vec<u8> = stream().chunks(PACKET).flat_map(|packet| [packet, &[0x55; 16]].concat()).collect();
    for (size, bytes) in [(192, &timestamped), (204, &parity)] {
        let forced = size.to_string();
        for arguments in [&[][..], &["--packet-size", &forced]] {
            let (code, check) = checked(bytes, arguments);
            assert_eq!((code, &check["packet_size_bytes"]), (Some(0), &size.into()));
            let counts = &check["counts"];
            assert_eq!(counts["packets"], (bytes.len() / size) as u64);
            for name in ["lost_packets", "skipped_bytes", "resyncs", "trailing_bytes"] {
                assert_eq!(counts[name], 0, "{size}: {name}");
            }
        }
    }
    let (_directory, path) = stored(stream());
    let said = says(["check", path.to_str().unwrap(), "--packet-size", "200"]);
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("known: 188, 192, 204"), "{}", said.err);
}

#[test]
fn a_wrong_packet_size_is_seen_in_the_headline() {
    let (_directory, path) = stored(stream());
    let said = says(["check", path.to_str().unwrap(), "--packet-size", "192"]);
    let headline = said.out.lines().next().unwrap();
    assert_eq!(said.code, Some(0), "nothing was asked");
    let share = headline.split(" · ").nth(1).and_then(|words| words.split_once("% of the bytes skipped"));
    assert!(share.is_some_and(|(share, _)| share.parse::<f64>().unwrap() > 99.0), "{headline}");
}

#[test]
fn an_end_inside_a_packet_is_counted_and_no_loss() {
    let (code, check) = checked(&stream()[..stream().len() - 100], &[]);
    assert_eq!(code, Some(0));
    let counts = &check["counts"];
    assert_eq!((&counts["truncated_ends"], &counts["trailing_bytes"]), (&1.into(), &88.into()));
    assert_eq!(counts["lost_packets"], 0);
}

#[test]
fn a_pipe_is_read_as_a_file_is() {
    let (_directory, path) = stored(stream());
    let from_file = checked(stream(), &[]).1;
    let mut command = weir();
    command.args(["check", "-", "--json", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut checking = KilledOnDrop::start(&mut command);
    let mut stdin = checking.0.stdin.take().unwrap();
    // In pieces that have nothing to do with packets.
    for piece in stream().chunks(7_001) {
        stdin.write_all(piece).unwrap();
    }
    drop(stdin);
    let mut out = String::new();
    checking.0.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(checking.ended().code(), Some(0));
    let mut from_pipe: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(from_pipe["source"], "-");
    from_pipe["source"] = from_file["source"].clone();
    assert_eq!(from_pipe, from_file);

    let redirected =
        weir().args(["check", "-", "-q"]).stdin(std::fs::File::open(path).unwrap()).output().unwrap();
    assert_eq!((redirected.status.code(), redirected.stdout, redirected.stderr), (Some(0), vec![], vec![]));
}

#[test]
fn ctrl_c_prints_what_was_read_up_to_then() {
    let mut command = weir();
    command.args(["check", "-", "--json", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut checking = KilledOnDrop::start(&mut command);
    let mut stdin = checking.0.stdin.take().unwrap();
    let given = &stream()[..stream().len() / 2];
    stdin.write_all(given).unwrap();
    // What a pipe holds may not have been read yet; the rest has.
    interrupt(&checking.0);
    assert_eq!(checking.ended().code(), Some(105));
    drop(stdin);
    let mut out = String::new();
    checking.0.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    let check: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(check["interrupted"], true);
    let bytes = check["counts"]["bytes"].as_u64().unwrap() as usize;
    assert!((given.len() - 65_536..=given.len()).contains(&bytes), "{bytes} of {}", given.len());
    assert_eq!(check["counts"]["truncated_ends"], 0);
}

#[test]
fn a_reader_that_has_gone_is_no_error() {
    for arguments in [&[][..], &["--json", "-"]] {
        let mut command = weir();
        command.args(["check", "-"]).args(arguments).stdin(Stdio::piped());
        let mut checking = KilledOnDrop::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        drop(checking.0.stdout.take());
        checking.0.stdin.take().unwrap().write_all(stream()).unwrap();
        let mut err = String::new();
        checking.0.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert_eq!((checking.ended().code(), err.as_str()), (Some(0), ""));
    }
}

#[test]
fn what_cannot_be_read_is_2_and_what_is_no_stream_is_1_in_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("text"), "A weir is a low wall.\n".repeat(1_000)).unwrap();
    std::fs::write(path("empty"), "").unwrap();
    let place = directory.path().to_str().unwrap().to_owned();
    for (file, code, words) in [
        (path("missing.ts"), 2, "No such file"),
        (place, 2, "directory"),
        (path("text"), 1, "no transport stream: no packets of 188, 192 or 204 bytes in 22000 bytes"),
        (path("empty"), 1, "no packets of 188, 192 or 204 bytes in 0 bytes"),
    ] {
        let said = says(["check", &file]);
        assert_eq!((said.code, said.out.as_str()), (Some(code), ""), "{file}: {}", said.err);
        assert!(said.err.contains(&file) && said.err.contains(words), "{}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    }
}

#[test]
fn the_text_fits_a_terminal_and_json_goes_to_a_file_beside_it() {
    let (directory, path) = stored(&without(stream(), 0x100, |at| (50..55).contains(&at)));
    let result = directory.path().join("result.json");
    for columns in [100, 80, 40] {
        let mut command = weir();
        command.arg("check").arg(&path).arg("--json").arg(&result).env("COLUMNS", columns.to_string());
        let output = command.output().unwrap();
        let (out, err) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert_eq!((output.status.code(), err.as_str()), (Some(0), ""));
        assert!(out.lines().all(|line| line.chars().count() <= columns), "{out}");
        let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in ["5 packets lost", "Truth", "H.264", "1.4 Continuity_count_error", "lost_packets"] {
            assert!(out.contains(words), "{words} is not in {out}");
        }
    }
    let check: Value = serde_json::from_slice(&std::fs::read(&result).unwrap()).unwrap();
    let schema: Value = serde_json::from_str(&says(["schema", "check"]).out).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let wrong: Vec<_> = validator.iter_errors(&check).map(|error| error.to_string()).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(check["layout"], "weir.check/1");
}
