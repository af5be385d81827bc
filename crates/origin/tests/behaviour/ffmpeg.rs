//! ffmpeg publishes and plays, without a word of warning.

use crate::peers::{Peer, TEST_TIMEOUT, address, identity, start, until};
use std::io::Read;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use weir_origin::{ANY_PORT, Origin, OriginConfig, RTMP};

/// A running tool, ended when it is dropped.
pub(crate) struct Tool {
    name: String,
    child: Child,
}

impl Tool {
    pub(crate) fn start(name: &str, arguments: &[&str]) -> Self {
        let child = Command::new(name)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{name}: {error}; install it: apt-get install ffmpeg nginx libnginx-mod-rtmp")
            });
        Self { name: name.to_owned(), child }
    }

    /// Waits for its end; hands out what it wrote to stdout and stderr. Neither is long here.
    pub(crate) fn finish(mut self) -> (String, String) {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break Some(status);
            }
            if began.elapsed() > 3 * TEST_TIMEOUT {
                break None;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        if status.is_none() {
            self.child.kill().unwrap();
        }
        let (mut out, mut words) = (String::new(), String::new());
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut words).unwrap();
        assert!(status.is_some_and(|status| status.success()), "{}: {status:?}\n{words}", self.name);
        (out, words)
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        // Fails only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Frames that [`publish`] sends.
pub(crate) const FRAMES: u32 = 75;

/// Publishes three seconds of H.264 and AAC, a keyframe every second.
pub(crate) fn publish(url: &str) -> Tool {
    publish_for(3, url)
}

fn publish_for(seconds: u32, url: &str) -> Tool {
    let picture = format!("testsrc2=s=160x90:r=25:d={seconds}");
    let sound = format!("sine=f=440:r=44100:d={seconds}");
    let mut arguments = vec!["-hide_banner", "-loglevel", "warning", "-nostdin", "-re"];
    arguments.extend(["-f", "lavfi", "-i", &picture, "-f", "lavfi", "-i", &sound]);
    arguments.extend(["-c:v", "libx264", "-preset", "ultrafast", "-g", "25"]);
    arguments.extend(["-pix_fmt", "yuv420p", "-c:a", "aac", "-b:a", "32k"]);
    arguments.extend(["-flvflags", "no_duration_filesize", "-f", "flv", url]);
    Tool::start("ffmpeg", &arguments)
}

/// Plays to the end and decodes; counts the video frames.
pub(crate) fn count(url: &str) -> Tool {
    let show = ["-select_streams", "v", "-show_entries", "stream=nb_read_frames", "-of", "csv=p=0"];
    let mut arguments = vec!["-hide_banner", "-loglevel", "warning", "-count_frames"];
    arguments.extend(show);
    arguments.push(url);
    Tool::start("ffprobe", &arguments)
}

/// The frames that a [`count`] came to, if it was silent otherwise.
pub(crate) fn counted(tool: Tool) -> u32 {
    let (out, words) = tool.finish();
    assert_eq!(words, "", "ffprobe warned");
    out.trim().trim_end_matches(',').parse().unwrap_or_else(|_| panic!("ffprobe said {out:?}"))
}

pub(crate) fn url(address: SocketAddr, name: &str) -> String {
    format!("rtmp://{address}/live/{name}")
}

#[test]
fn every_frame_that_is_published_is_decoded() {
    for merge in [0, 350] {
        let merge = Duration::from_millis(merge);
        let origin = start(OriginConfig { merge, ..OriginConfig::default() });
        let url = url(address(&origin), "a");
        let players = [count(&url), count(&url)];
        until("both players", || origin.counts().present() == 2);
        let (_, words) = publish(&url).finish();
        assert_eq!(words, "", "the publisher warned");
        for player in players {
            assert_eq!(counted(player), FRAMES);
        }
        let counts = origin.counts();
        assert_eq!(counts.stream("live/a").unwrap().received.video, u64::from(FRAMES));
        assert_eq!(counts.sent().video, 2 * u64::from(FRAMES));
    }
}

#[test]
fn viewers_that_come_within_a_group_of_pictures_start_at_its_keyframe() {
    // A busy machine takes seconds to start a player.
    const SECONDS: u32 = 8;
    let origin = start(OriginConfig::default());
    let url = url(address(&origin), "a");
    let publisher = publish_for(SECONDS, &url);
    let received = || origin.counts().stream("live/a").map_or(0, |stream| stream.received.video);
    let mut players = Vec::new();
    let mut starts = Vec::new();
    for frames in [30, 45] {
        until("frames", || received() >= frames);
        let mut own = Peer::player(address(&origin), "a");
        own.until("a frame", |own| {
            own.units.iter().any(|unit| unit.is_keyframe() || unit.number().is_some())
        });
        let first = own.units.iter().find(|unit| {
            weir_rtmp::flv::VideoTag::parse(&unit.head).is_ok_and(|tag| tag.is_frame())
                && unit.kind == weir_rtmp::message::MediaKind::Video
        });
        assert!(first.unwrap().is_keyframe());
        starts.push(first.unwrap().timestamp);
        players.push(count(&url));
    }
    publisher.finish();
    for (player, start) in players.into_iter().zip(starts) {
        assert!(start >= 1_000, "{start}");
        // It may have come some groups later than our own, when the machine is busy.
        let (frames, groups) = (counted(player), SECONDS - start / 1_000);
        assert!(frames % 25 == 0 && (1..=groups).contains(&(frames / 25)), "{frames} from {start} ms");
    }
}

#[test]
fn sound_alone_is_a_stream_too() {
    let origin = start(OriginConfig::default());
    let url = url(address(&origin), "a");
    let mut arguments = vec!["-hide_banner", "-loglevel", "warning"];
    arguments.extend(["-select_streams", "a", "-count_packets", "-show_entries", "stream=nb_read_packets"]);
    arguments.extend(["-of", "csv=p=0", &url]);
    let player = Tool::start("ffprobe", &arguments);
    until("the player", || origin.counts().present() == 1);
    let mut arguments = vec!["-hide_banner", "-loglevel", "warning", "-nostdin", "-re"];
    arguments.extend(["-f", "lavfi", "-i", "sine=d=2", "-c:a", "aac"]);
    arguments.extend(["-flvflags", "no_duration_filesize", "-f", "flv", &url]);
    Tool::start("ffmpeg", &arguments).finish();
    let sent = origin.counts().stream("live/a").unwrap().received.audio;
    assert!(sent > 80);
    assert_eq!(u64::from(counted(player)), sent);
}

#[test]
fn the_same_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let config = OriginConfig::default().listening_secure(&RTMP, ANY_PORT, identity(folder.path()));
    let origin = Origin::start(&config).unwrap();
    let url = format!("rtmps://{}/live/a", origin.address("rtmps").unwrap());
    let player = count(&url);
    until("the player", || origin.counts().present() == 1);
    publish(&url).finish();
    assert_eq!(counted(player), FRAMES);
}
