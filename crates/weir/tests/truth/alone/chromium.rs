//! Chromium plays and publishes with the origin's own pages: an independent peer in both directions.

use crate::rtc::{count, on_air, whep};
use crate::support::{Air, Kept, Publishing, alone, config, play, program, shared, soon};
use crate::whip::{origin, places};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::str::FromStr;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use weir_origin::{ANY_PORT, Origin, RTC};

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
            let said = between(&last, before, after).filter(|said| *said >= number);
            if let Some(said) = said {
                return (said, last);
            }
        }
        panic!("not {before}{number}{after} within {PATIENCE:?}; the page said last: {last}");
    }

    /// Waits until the browser has counted so many freezes of a second and more, and goes on for a while; the length of each
    /// in seconds. The page tells their sums once a second.
    fn freezes(&self, number: usize) -> Vec<f64> {
        let (began, mut found, mut before) = (Instant::now(), Vec::new(), None);
        let mut until = PATIENCE;
        while began.elapsed() < until {
            let Ok(line) = self.lines.recv_timeout(Duration::from_millis(200)) else { continue };
            let Some(frozen) = between::<f64>(&line, " freezes, ", " s frozen") else { continue };
            let grown = frozen - before.replace(frozen).unwrap_or(frozen);
            if grown >= 1.0 {
                found.push(grown);
            }
            if found.len() == number && until == PATIENCE {
                until = began.elapsed() + Duration::from_secs(3);
            }
        }
        found
    }
}

/// What stands between two words of a line.
fn between<T: FromStr>(line: &str, before: &str, after: &str) -> Option<T> {
    line.split(before).nth(1)?.split(after).next()?.parse().ok()
}

/// Five frames a second: an interval of 600 ms is a freeze by W3C's rule, and no neighbour on the machine makes one.
fn slow_pictures(faults: &[&str]) -> Air {
    let mut config = config(faults).listening(&RTC, ANY_PORT);
    // Pictures of a cached group come at once, and beside these intervals the first of 200 ms is a freeze.
    config.history.gop_cache = false;
    let origin = Origin::start(&config).unwrap();
    let url = format!("rtmp://{}/live/a", origin.address("rtmp").unwrap());
    let publishing = Publishing::start(&url, &["--fps", "5", "--gop", "1s"]);
    soon("the stream is on air", || origin.counts().stream("live/a").is_some_and(|stream| stream.live));
    Air::of(origin, url, publishing)
}

#[test]
fn chromium_counts_the_freezes_that_weir_counts_and_finds_them_as_long() {
    let _machine = alone();
    let air = slow_pictures(&["stall at=7s for=2s", "stall at=15s for=3s"]);
    let browser = Browser::open(&format!("http://{}/live/a", air.origin.address("rtc").unwrap()));
    browser.says("connected, ", 1, " frames decoded");
    let run = play(&whep(&air), "-c 2 -d 20s --warmup 0s --drain 500ms");
    assert_eq!(run.well(), 2, "{:?}", run.failures());
    let theirs = browser.freezes(2);
    let lengths = ["min", "max"].map(|key| run.spread("rtc.freeze_length")[key].as_f64().unwrap());
    assert_eq!(count(&run, "rtc.freezes"), 2 * 2, "{lengths:?} {theirs:?}");
    // From the frame before the stall, up to 200 ms earlier, to the frame that ends it. What waited comes at once behind a stall;
    // of that Chromium may drop some, and freeze once more until the next keyframe.
    for (stall, ours) in [2.0, 3.0].into_iter().zip(lengths) {
        let close = stall - 0.3..stall + 0.7;
        let has_it = theirs.iter().any(|theirs| close.contains(theirs));
        assert!(close.contains(&ours) && has_it, "{stall} s: {ours} s, Chromium {theirs:?} s");
    }
}

#[test]
fn chromium_plays_a_stream_of_the_origin_by_whep_and_by_websocket() {
    let _machine = shared();
    let air = on_air(&[]);
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
