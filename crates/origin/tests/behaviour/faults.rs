//! Each fault does what its line says, and is told of truly.

use crate::peers::{FRAME, Peer, Publisher, TEST_TIMEOUT, address, origin, until};
use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use weir_origin::Origin;
use weir_origin::fault::{Subject, What};
use weir_rtmp::ClientOptions;
use weir_testing::undisturbed;

const TICK: Duration = Duration::from_millis(2);

/// Frames 1 to `count` published and watched by `viewers` from the first on.
fn played(origin: &Origin, viewers: usize, count: u32, pause: Duration, enough: usize) -> Vec<Peer> {
    let address = address(origin);
    let mut watching: Vec<_> = (0..viewers).map(|_| Peer::player(address, "a")).collect();
    for viewer in &mut watching {
        viewer.until("consent to play", |viewer| viewer.began);
    }
    let publishing = std::thread::spawn(move || {
        let mut publisher = Publisher::begin(address, "a");
        publisher.frames(count, 25, pause);
        publisher
    });
    for viewer in &mut watching {
        viewer.until("enough frames", |viewer| viewer.numbers().len() >= enough || viewer.end.is_some());
    }
    drop(publishing.join().unwrap());
    watching
}

fn whats(origin: &Origin) -> Vec<What> {
    origin.effects().into_iter().map(|effect| effect.what).collect()
}

#[test]
fn units_are_dropped_for_the_viewer_that_was_meant() {
    let origin = origin(&["drop unit=every:10 viewer=2", "drop unit=3..4 viewer=2"]);
    let viewers = played(&origin, 3, 40, TICK, 34);
    let all: Vec<_> = (1..=40).collect();
    let meant: Vec<_> = all.iter().copied().filter(|n| n % 10 != 0 && !matches!(n, 3 | 4)).collect();
    for (n, viewer) in viewers.into_iter().enumerate() {
        let mut viewer = viewer;
        let expected = if n == 1 { &meant } else { &all };
        viewer.until("all that come", |viewer| viewer.numbers().len() >= expected.len());
        viewer.watch(Duration::from_millis(100));
        assert_eq!(viewer.numbers(), *expected);
        let counts = origin.counts();
        assert_eq!(counts.viewer(viewer.local()).unwrap().dropped.video, if n == 1 { 6 } else { 0 });
    }
    let dropped = |unit: u64| What::Dropped { unit, timestamp: (unit as i64 - 1) * i64::from(FRAME) * 1_000 };
    assert_eq!(whats(&origin), [3, 4, 10, 20, 30, 40].map(dropped));
    assert!(origin.effects().iter().all(|effect| effect.subject == Subject::Viewer(2)));
}

#[test]
fn units_of_a_stream_are_dropped_for_everyone() {
    let origin = origin(&["drop unit=5 kind=video stream=live/a"]);
    for viewer in played(&origin, 2, 10, TICK, 9) {
        assert_eq!(viewer.numbers(), [1, 2, 3, 4, 6, 7, 8, 9, 10]);
    }
    assert_eq!(origin.counts().stream("live/a").unwrap().dropped.video, 1);
}

#[test]
fn units_are_duplicated_and_swapped() {
    let origin = origin(&["duplicate unit=3", "swap unit=6"]);
    let viewers = played(&origin, 1, 10, TICK, 11);
    assert_eq!(viewers[0].numbers(), [1, 2, 3, 3, 4, 5, 7, 6, 8, 9, 10]);
    assert!(matches!(
        whats(&origin)[..],
        [What::Duplicated { unit: 3, timestamp: 80_000 }, What::Swapped { unit: 6, timestamp: 200_000 }]
    ));
}

#[test]
fn a_swapped_unit_comes_even_if_the_stream_ends() {
    let origin = origin(&["swap unit=10"]);
    let mut viewers = played(&origin, 1, 10, TICK, 9);
    viewers[0].until("the end", |viewer| viewer.ended);
    assert_eq!(viewers[0].numbers(), (1..=10).collect::<Vec<_>>());
}

#[test]
fn every_unit_is_delayed() {
    let origin = origin(&["delay 300ms viewer=2"]);
    let viewers = played(&origin, 2, 20, Duration::from_millis(20), 20);
    for number in 1..=20 {
        let (prompt, late) = (viewers[0].frame(number), viewers[1].frame(number));
        // The two are read one after the other in this thread; the origin's own word is below.
        assert!(late.at > prompt.at || number > 10, "{number}");
    }
    assert_eq!(whats(&origin), [What::Delayed]);
}

#[test]
fn a_stall_holds_everything_back_and_then_lets_it_go() {
    let origin = origin(&["stall at=200ms for=400ms every=1s"]);
    let viewers = played(&origin, 1, 150, Duration::from_millis(10), 150);
    let viewer = &viewers[0];
    assert_eq!(viewer.numbers(), (1..=150).collect::<Vec<_>>());
    let times: Vec<Instant> = (1..=150).map(|n| viewer.frame(n).at).collect();
    let longest = times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
    assert!(longest >= Duration::from_millis(350), "{longest:?}");
    let effects = origin.effects();
    assert!(effects.len() >= 2, "1.5 s have two stalls: {effects:?}");
    for effect in &effects {
        let What::Stalled { until } = effect.what else { panic!("{effect:?}") };
        assert!(until.since(effect.at) <= Duration::from_millis(400));
    }
}

#[test]
fn a_stream_stalls_before_a_unit() {
    let origin = origin(&["stall unit=10 for=500ms stream=live/a"]);
    let viewers = played(&origin, 2, 20, TICK, 20);
    for viewer in &viewers {
        let gap = viewer.frame(10).at - viewers[0].frame(9).at;
        assert!(gap >= Duration::from_millis(450), "{gap:?}");
        assert_eq!(viewer.numbers(), (1..=20).collect::<Vec<_>>());
    }
}

#[test]
fn timestamps_jump_and_stay_there() {
    let origin = origin(&["jump unit=6 by=2s viewer=1", "jump unit=11 by=-100ms stream=live/a"]);
    let viewers = played(&origin, 2, 15, TICK, 15);
    for (viewer, jump) in viewers.iter().zip([2_000, 0]) {
        for number in 1..=15 {
            let plain = i64::from((number - 1) * FRAME);
            let expected = plain + if number >= 6 { jump } else { 0 } - if number >= 11 { 100 } else { 0 };
            assert_eq!(i64::from(viewer.frame(number).timestamp), expected, "{number}");
        }
    }
    assert!(whats(&origin).contains(&What::Jumped { timestamp: 200_000, by: 2_000_000 }));
}

#[test]
fn connections_are_reset_or_closed_at_a_unit_or_a_time() {
    let origin = origin(&["reset viewers=2..3 unit=8", "close viewer=4 unit=5", "reset viewer=5 at=100ms"]);
    let mut viewers = played(&origin, 6, 100, Duration::from_millis(5), 100);
    let ends = [None, Some(ErrorKind::ConnectionReset), Some(ErrorKind::ConnectionReset)];
    let ends =
        ends.into_iter().chain([Some(ErrorKind::UnexpectedEof), Some(ErrorKind::ConnectionReset), None]);
    for (n, (viewer, end)) in viewers.iter_mut().zip(ends).enumerate() {
        assert_eq!(viewer.end, end, "viewer {}", n + 1);
    }
    assert_eq!(viewers[0].numbers().len(), 100);
    assert_eq!(viewers[3].numbers(), [1, 2, 3, 4]);
    let sent: Vec<_> = origin.counts().viewers.iter().map(|viewer| viewer.sent.video).collect();
    assert_eq!((sent[1], sent[2], sent[3]), (7, 7, 4));
    let resets = whats(&origin).iter().filter(|what| **what == What::Reset).count();
    assert_eq!((resets, whats(&origin).len()), (3, 4));
}

#[test]
fn links_are_reset_before_anything_is_asked() {
    let origin = origin(&["reset link=1 at=50ms"]);
    let mut peer = Peer::player(address(&origin), "a");
    peer.until("the reset", |peer| peer.end.is_some());
    assert_eq!(peer.end, Some(ErrorKind::ConnectionReset));
    assert_eq!(origin.effects()[0].subject, Subject::Link(1));
}

#[test]
fn requests_are_refused_in_the_words_that_were_given() {
    for (line, code, words) in [
        ("unauthorized", "NetConnection.Connect.Rejected", "authmod=adobe ] : Unauthorized"),
        ("unauthorized phase=play", "NetStream.Play.Failed", "401 Unauthorized"),
        ("reject phase=play viewer=1", "NetStream.Play.Failed", "Refused."),
        ("reject code=a.b words=not on a Sunday", "a.b", "not on a Sunday"),
    ] {
        let origin = origin(&[line]);
        let mut viewer = Peer::player(address(&origin), "a");
        viewer.until(line, |viewer| viewer.has_status(code));
        assert!(viewer.statuses.last().unwrap().1.contains(words), "{line}: {:?}", viewer.statuses);
        viewer.until("the connection's end", |viewer| viewer.end.is_some());
        assert_eq!(whats(&origin), [What::Refused]);
    }
    let origin = origin(&["unauthorized phase=publish publisher=1"]);
    let address = address(&origin);
    let options = ClientOptions::publish(format!("rtmp://{address}/live"), "live", "a");
    let mut publisher = Peer::connect(address, options);
    publisher.until("the refusal", |peer| peer.has_status("NetStream.Publish.Denied"));
    Publisher::begin(address, "a").end();
}

#[test]
fn a_silent_server_says_nothing_from_its_phase_on() {
    for (phase, received) in [("accept", 0), ("handshake", 0), ("connect", 3_073)] {
        let origin = origin(&[&format!("silent phase={phase}")]);
        let mut viewer = Peer::player(address(&origin), "a");
        until("the effect", || {
            viewer.step();
            whats(&origin) == [What::Silenced]
        });
        viewer.until("what comes before", |viewer| viewer.received >= received);
        viewer.watch(Duration::from_millis(200));
        assert_eq!(viewer.received, received, "{phase}");
        assert_eq!(viewer.end, None, "{phase}");
    }
    let origin = origin(&["silent phase=play viewer=1"]);
    let mut viewer = Peer::player(address(&origin), "a");
    viewer.until("an answer", |viewer| viewer.received > 3_073);
    viewer.watch(Duration::from_millis(300));
    assert!(!viewer.began && viewer.end.is_none());
    let mut second = Peer::player(address(&origin), "a");
    second.until("consent to play", |viewer| viewer.began);
}

#[test]
fn a_publisher_is_read_no_faster_than_said() {
    let origin = origin(&["read rate=1mbps"]);
    let mut publisher = Publisher::begin(address(&origin), "a");
    let began = Instant::now();
    for n in 0..100 {
        publisher.frame(n % 25 == 0, 1_000);
    }
    until("all frames", || origin.counts().stream("live/a").unwrap().received.video == 100);
    // 800 kbit at 1 Mbit/s, but for the first read.
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(700), "{took:?}");
    assert_eq!(whats(&origin), [What::Paced]);
}

#[test]
fn connections_are_refused() {
    let origin = origin(&["refuse"]);
    let error = TcpStream::connect_timeout(&address(&origin), TEST_TIMEOUT).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn a_thread_uses_the_cpu_that_was_said() {
    undisturbed(|| {
        let began = Instant::now();
        let _origin = origin(&["burn 300ms thread=busy-bee"]);
        let ticks = || -> Option<u64> {
            std::fs::read_dir("/proc/self/task").unwrap().flatten().find_map(|task| {
                let stat = std::fs::read_to_string(task.path().join("stat")).ok()?;
                let (name, rest) = stat.split_once(") ")?;
                name.ends_with("(busy-bee").then(|| {
                    let fields: Vec<_> = rest.split(' ').collect();
                    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
                })
            })
        };
        until("the thread", || ticks().is_some());
        std::thread::sleep(Duration::from_secs(2));
        // A hundred ticks a second (proc(5), sysconf(_SC_CLK_TCK)).
        let share = || ticks().unwrap() as f64 / 100.0 / began.elapsed().as_secs_f64();
        // What others keep it from using, it makes good.
        until("its share", || share() > 0.25);
        assert!(share() < 0.35, "{}", share());
    });
}
