//! Shaka Packager cuts what ffmpeg encodes, nginx serves it, and weir plays it by the defaults: two variants with their sound apart, in
//! each container, clear and encrypted.

use crate::hls::nothing_is_missing;
use crate::support::{Run, measure, packager};
use std::path::Path;
use std::process::{Command, Stdio};
use weir_runner::ErrorKind::Invalid;
use weir_testing::{KilledOnDrop, Nginx, program, undisturbed};

const KEY: &[u8; 16] = b"0sixteen secrets";

/// What the packager makes of a `protection_scheme`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Clear,
    /// `aes128`: whole segments, `METHOD=AES-128`, with one `IV` for the playlist. It is for transport streams only, by the packager's
    /// help: of fragmented MPEG-4 each segment has all of those before it again, and weir counts that as jumps in time.
    Aes128,
    /// `cbcs`: samples, `METHOD=SAMPLE-AES`, which weir counts and does not decrypt. Pictures in fragmented MPEG-4 can be counted all the
    /// same; a transport stream has stream types of its own for it, and is not read.
    Cbcs,
}

/// One of the two variants: its name, the size of its pictures and their rate.
const VARIANTS: [(&str, &str, &str); 2] = [("low", "160x90", "100k"), ("high", "320x180", "600k")];

/// ffmpeg, that encodes a variant with its sound.
fn encoder((_, size, rate): (&str, &str, &str), seconds: u32) -> Command {
    let mut command = program("ffmpeg", "ffmpeg");
    let (pictures, sound) =
        (format!("testsrc2=size={size}:rate=25:duration={seconds}"), format!("sine=duration={seconds}"));
    command.args(["-v", "error", "-f", "lavfi", "-i", &pictures, "-f", "lavfi", "-i", &sound]);
    command.args(["-c:v", "libx264", "-preset", "ultrafast", "-bf", "2", "-g", "25", "-b:v", rate]);
    command.args(["-c:a", "aac", "-b:a", "32k", "-f", "mpegts"]);
    command
}

/// The packager, that cuts `low` and `high` of a folder into another.
fn packaging(from: &Path, to: &Path, container: &str, scheme: Scheme) -> Command {
    let mut command = packager();
    command.current_dir(to).stdout(Stdio::null()).stderr(Stdio::null());
    for (name, source, stream, more) in [
        ("low", "low", "video", ""),
        ("high", "high", "video", ""),
        ("sound", "high", "audio", ",hls_group_id=sound,hls_name=sound"),
    ] {
        let segments = match (container, stream) {
            ("ts", "audio") => format!("segment_template={name}$Number$.aac"),
            ("ts", _) => format!("segment_template={name}$Number$.ts"),
            _ => format!("init_segment={name}.mp4,segment_template={name}$Number$.m4s"),
        };
        let source = from.join(source);
        command.arg(format!(
            "in={},stream={stream},{segments},playlist_name={name}.m3u8{more}",
            source.display()
        ));
    }
    command.args(["--hls_master_playlist_output", "all.m3u8"]);
    if scheme != Scheme::Clear {
        let hex: String = KEY.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = if scheme == Scheme::Aes128 { "aes128" } else { "cbcs" };
        command.args(["--enable_raw_key_encryption", "--protection_scheme", name, "--clear_lead", "0"]);
        command.args(["--keys", &format!("label=:key_id={hex}:key={hex}"), "--hls_key_uri", "a.key"]);
        std::fs::write(to.join("a.key"), KEY).unwrap();
    }
    command
}

/// Viewers of the variant with the lowest and with the highest `BANDWIDTH`, one after the other.
fn watch(nginx: &Nginx, name: &str, seconds: &str) -> [Run; 2] {
    ["lowest", "highest"].map(|variant| {
        let url = nginx.playlist(&format!("{name}/all"));
        let run = measure(&format!(
            "warmup: 0s\nworkloads: [{{play: '{url}', variant: {variant}, clients: 2, duration: {seconds}}}]"
        ));
        assert_eq!(run.total("played"), 2.0, "{name}: {:#}", run.summary["verdict"]);
        // 98: weir was the limit, and the run says nothing of nginx.
        assert!([None, Some(Invalid)].contains(&run.missed), "{name}: {:?}", run.failures());
        for figure in ["stalls", "starved", "hls.stale", "hls.refused", "hls.skipped", "hls.went_back"] {
            assert_eq!(run.total(figure), 0.0, "{name}: {figure}");
        }
        assert_eq!((run.total("hls.multivariant"), run.total("hls.audio_apart")), (2.0, 2.0), "{name}");
        if name.ends_with("ts-Cbcs") {
            assert_eq!(run.total("hls.inspected"), 0.0, "{name}");
        } else {
            nothing_is_missing(&run);
        }
        run
    })
}

/// What is encrypted is decrypted where a key alone does that, and named where it does not. Pictures and sound each have a key to load.
fn is_read(name: &str, scheme: Scheme, run: &Run) {
    let [keys, decrypted, undecrypted, sealed, inspected] =
        ["hls.keys", "hls.decrypted", "hls.undecrypted", "hls.sealed", "hls.inspected"]
            .map(|figure| run.total(figure));
    let expected = match scheme {
        Scheme::Clear => (0.0, 0.0, 0.0),
        Scheme::Aes128 => (4.0, inspected, 0.0),
        Scheme::Cbcs => (0.0, 0.0, 4.0),
    };
    assert_eq!((keys, decrypted, sealed), expected, "{name}");
    assert_eq!(undecrypted, 0.0, "{name}");
}

/// Pictures in a file, as ffprobe counts them.
fn pictures(file: &Path) -> f64 {
    let mut command = program("ffprobe", "ffmpeg");
    command.args(["-v", "error", "-select_streams", "v:0", "-count_packets"]);
    command.args(["-show_entries", "stream=nb_read_packets", "-of", "csv=p=0"]).arg(file);
    let counted = String::from_utf8(command.output().unwrap().stdout).unwrap();
    counted.split([',', '\n']).next().unwrap().trim().parse().unwrap()
}

#[test]
fn recordings_that_shaka_packager_cut_are_played_frame_by_frame() {
    undisturbed(|| {
        let (nginx, material) = (Nginx::start(), tempfile::tempdir().unwrap());
        let encoders = VARIANTS.map(|variant| {
            let mut command = encoder(variant, 8);
            KilledOnDrop::start(command.arg(material.path().join(variant.0)))
        });
        for mut encoder in encoders {
            assert!(encoder.ended().success());
        }
        let frames = VARIANTS.map(|(name, ..)| pictures(&material.path().join(name)));
        assert_eq!(frames, [200.0; 2]);
        std::thread::scope(|scope| {
            for (container, scheme) in [
                ("ts", Scheme::Clear),
                ("ts", Scheme::Aes128),
                ("ts", Scheme::Cbcs),
                ("mp4", Scheme::Clear),
                ("mp4", Scheme::Cbcs),
            ] {
                let (nginx, material) = (&nginx, material.path());
                scope.spawn(move || {
                    let name = format!("{container}-{scheme:?}");
                    let place = nginx.hls().join(&name);
                    std::fs::create_dir(&place).unwrap();
                    let mut packaging = packaging(material, &place, container, scheme);
                    packaging.args(["--segment_duration", "2", "--hls_playlist_type", "VOD"]);
                    assert!(packaging.status().unwrap().success(), "{name}");
                    let runs = watch(nginx, &name, "11s");
                    for run in &runs {
                        let frames = if name == "ts-Cbcs" { 0.0 } else { 2.0 * 200.0 };
                        assert_eq!(run.total("frames"), frames, "{name}");
                        assert_eq!(run.total("frames_announced"), frames, "{name}");
                        is_read(&name, scheme, run);
                    }
                    let [low, high] = runs.map(|run| run.total("media"));
                    assert!(high > 2.0 * low, "{name}: {low} and {high}");
                });
            }
        });
    });
}
