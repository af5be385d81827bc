//! Chromium plays and publishes with the origin's own pages: an independent peer in both directions.

use crate::support::{Kept, play, program, shared, soon};
use crate::whip::{origin, places};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// On a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(90);

/// A browser with one page open.
struct Browser {
    _process: Kept,
    _profile: TempDir,
    lines: Receiver<String>,
}

impl Browser {
    fn open(url: &str) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let mut command = program("chromium", "chromium");
        command
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
            ])
            .args(["--allow-loopback-in-peer-connection", "--disable-background-networking"])
            .args(["--autoplay-policy=no-user-gesture-required", "--enable-logging=stderr"])
            .args(["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(url)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut process = Kept::start(&mut command);
        let said = BufReader::new(process.0.stderr.take().unwrap());
        let (sender, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in said.lines().map_while(Result::ok).filter(|line| line.contains("weir: ")) {
                let _ = sender.send(line);
            }
        });
        Self { _process: process, _profile: profile, lines }
    }

    /// Waits until the page says a number between two words that is at least so large. The last that it said.
    fn says(&self, before: &str, number: u64, after: &str) -> (u64, String) {
        let began = Instant::now();
        let mut last = String::new();
        while began.elapsed() < PATIENCE {
            let Ok(line) = self.lines.recv_timeout(Duration::from_secs(1)) else { continue };
            last = line;
            let said = last.split(before).nth(1).and_then(|rest| rest.split(after).next());
            if let Some(said) = said.and_then(|said| said.parse().ok()).filter(|said| *said >= number) {
                return (said, last);
            }
        }
        panic!("not {before}{number}{after} within {PATIENCE:?}; the page said last: {last}");
    }
}

#[test]
fn chromium_plays_a_stream_of_the_origin_by_whep_and_by_websocket() {
    let _machine = shared();
    let air = super::rtc::on_air(&[]);
    let page = format!("http://{}/live/a", air.origin.address("rtc").unwrap());
    for (number, url) in [page.clone(), format!("{page}?ws")].iter().enumerate() {
        let (_, said) = Browser::open(url).says("connected, ", 50, " frames decoded");
        assert!(said.contains(", 0 packets lost"), "{said}");
        let rtc = air.origin.rtc();
        assert_eq!(rtc.connected, number as u64 + 1);
        assert!(rtc.receiver_reports > 0 && rtc.unauthentic == 0, "{rtc:?}");
    }
}

#[test]
fn chromium_publishes_its_camera_by_whip_and_others_play_it() {
    let _machine = shared();
    let origin = origin(&[]);
    let watch = places(&origin).1;
    let address = origin.address("rtc").unwrap();
    // The viewer waits for its publisher: both start at their own pace.
    let viewer = Browser::open(&format!("http://{address}/live/a"));
    let camera = Browser::open(&format!("http://{address}/whip/live/a?seconds=30"));
    camera.says("connected, ", 1, " frames sent");
    let (_, said) = viewer.says("connected, ", 50, " frames decoded");
    assert!(said.contains(", 0 packets lost"), "{said}");
    let run = play(&watch, "-c 2 -d 5s --warmup 0s --drain 500ms");
    assert_eq!(run.well(), 2, "{:?}", run.failures());
    let total = |figure: &str| run.total(figure);
    assert_eq!(["lost", "rtc.frames_broken", "rtc.unauthentic"].map(total), [0.0; 3]);
    assert!(total("keyframes") >= 2.0 && total("frames") >= 2.0 * 40.0, "{}", total("frames"));
    assert!(total("rtc.audio_packets") >= 2.0 * 100.0, "its fake microphone beeps");
    // It begins at 300 kbit/s, and goes on only if it is told how its packets arrive.
    camera.says("it may send ", 600_000, " bit/s");
    let (frames, said) = camera.says("ended, ", 1, " frames sent");
    assert!(said.contains(", 0 packets lost"), "{said}");
    soon("the stream is off air", || origin.counts().stream("live/a").is_some_and(|stream| !stream.live));
    let intake = origin.rtc().intake;
    assert_eq!((intake.frames + intake.early, intake.lost, intake.broken), (frames, 0, 0), "{intake:?}");
    assert!(intake.early < 50 && intake.keyframes_asked >= 2, "{intake:?}");
    assert_eq!(origin.rtc().unauthentic, 0);
}
