//! What a viewer of a transport stream measures equals what was done to it: on a made-up clock, and over sockets.

#[path = "ts/answers.rs"]
mod answers;
mod bench;
#[path = "ts/keyframes.rs"]
mod keyframes;
#[path = "ts/muxers.rs"]
mod muxers;

use bench::Bench;
use bench::transport::{BIT_RATE, Framing, PACKETS, PARAMETER_SETS, Response, Server, stream, without};
use std::time::Duration;
use weir_clients::{
    ClientFailure, Ending, HttpOptions, PlannedStart, PlayOptions, ShardRecorder, Timeouts, Turn, Workload,
    ts,
};
use weir_metrics::common::{
    ACTIVE, CONNECT, DRIFT, FIRST_BYTE, FIRST_FRAME, HANDSHAKE, MEDIA, PLAYED, PLAYING, READS, RECEIVED,
    RECOVERY, REQUEST, SOURCE, SOURCE_TIME, STALL_LENGTH, STALLED, STALLS, STARTUP, TIMESTAMP_JUMP,
    TIMESTAMP_JUMPS, UNITS, WITNESSES,
};
use weir_metrics::{Failure, Recorder, Spread};
use weir_shard::{Event, Rig, Session};
use weir_ts::mux::{AccessUnit, MuxSettings, Muxer};

const WITNESS: u32 = 0;
const CROWD: u32 = 7;
const FRAMINGS: [Framing; 3] = [Framing::Length, Framing::Chunked, Framing::Close];

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// A viewer on the rig, and what its kernel holds for it.
struct Viewer {
    rig: Rig<ShardRecorder>,
    session: Box<dyn Session<ShardRecorder>>,
    waiting: Vec<u8>,
}

impl Viewer {
    fn new(client: u32) -> Self {
        Self::beside(client, None)
    }

    /// Another viewer of a thread, or the first.
    fn beside(client: u32, recorder: Option<ShardRecorder>) -> Self {
        let options = PlayOptions { timeouts: Timeouts::all(ms(10_000)), ..PlayOptions::default() };
        let workload =
            ts::play(&["http://user:secret@127.0.0.1/x.ts".to_owned()], &options, &HttpOptions::default())
                .unwrap();
        let mut rig =
            Rig::new(recorder.unwrap_or_else(|| ShardRecorder::new([workload.schema]).keeping_endings()));
        let planned = PlannedStart { client, workload: 0, cell: 0, at: rig.now, turn: Turn::default() };
        let session = workload.start(planned, rig.now, &mut rig.world);
        let mut viewer = Self { rig, session, waiting: Vec::new() };
        viewer.dispatch(Event::Opening);
        viewer
    }

    fn connected(client: u32) -> Self {
        let mut viewer = Self::new(client);
        viewer.dispatch(Event::Connected);
        viewer
    }

    fn dispatch(&mut self, event: Event<'_>) {
        self.rig.unread = self.waiting.len();
        self.rig.dispatch(&mut *self.session, event);
        if std::mem::take(&mut self.rig.pulled) && !self.rig.closed {
            let bytes = std::mem::take(&mut self.waiting);
            self.rig.dispatch(&mut *self.session, Event::Bytes(&bytes));
        }
    }

    /// Bytes reach its kernel; it is told when enough of them wait.
    fn deliver(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
        if !self.rig.closed && !self.waiting.is_empty() && self.waiting.len() >= self.rig.low_water {
            let bytes = std::mem::take(&mut self.waiting);
            self.rig.dispatch(&mut *self.session, Event::Bytes(&bytes));
        }
    }

    fn advance(&mut self, span: Duration) {
        let end = self.rig.now + span;
        while let Some(at) = self.rig.timer.filter(|at| *at <= end && !self.rig.closed) {
            self.rig.now = self.rig.now.max(at);
            self.rig.timer = None;
            self.dispatch(Event::Timer);
        }
        self.rig.now = end;
        self.deliver(&[]);
    }

    /// The server closes the link.
    fn close(&mut self) {
        let bytes = std::mem::take(&mut self.waiting);
        if !bytes.is_empty() && !self.rig.closed {
            self.rig.dispatch(&mut *self.session, Event::Bytes(&bytes));
        }
        if !self.rig.closed {
            self.dispatch(Event::Closed { failure: Failure::ClosedByPeer, words: "" });
        }
    }

    fn outcome(&mut self) -> (Option<Ending>, Vec<ClientFailure>, Recorder) {
        let ended = self.rig.world.take_ended();
        assert!(ended.len() <= 1, "one client, one end: {ended:?}");
        let figures = self.rig.world.take_figures().remove(0);
        (ended.first().map(|(_, ending)| *ending), self.rig.world.take_failures(), figures)
    }

    /// It has failed so, with words that contain these, and left nothing behind.
    #[track_caller]
    fn assert_failed(&mut self, failure: Failure, words: &str) -> Recorder {
        let (ending, remarks, figures) = self.outcome();
        assert_eq!(ending, Some(Ending::Failed(failure)), "{remarks:?}");
        assert_eq!(figures.failures().collect::<Vec<_>>(), [(failure, 1)]);
        assert!(remarks[0].words.contains(words), "'{words}' is not in '{}'", remarks[0].words);
        assert_eq!((figures.gauge(ACTIVE), figures.gauge(PLAYING), figures.gauge(WITNESSES)), (0, 0, 0));
        assert!(self.rig.closed);
        figures
    }
}

/// A counter by its name.
fn number(figures: &Recorder, name: &str) -> u64 {
    figures.number(figures.schema().position(name).unwrap_or_else(|| panic!("{name} is no figure")))
}

/// The one value of a distribution, in milliseconds.
fn value(figures: &Recorder, spread: Spread) -> u64 {
    let histogram = figures.spread(spread);
    assert_eq!(histogram.len(), 1);
    (histogram.max() + 500) / 1_000
}

#[test]
fn each_startup_phase_is_as_long_as_the_clock_says() {
    let response = Response::ok(Framing::Chunked, stream(2));
    let mut viewer = Viewer::new(WITNESS);
    viewer.advance(ms(10));
    viewer.dispatch(Event::Connected);
    let sent = String::from_utf8(viewer.rig.take_sent()).unwrap();
    assert!(sent.starts_with("GET /x.ts HTTP/1.1\r\nHost: 127.0.0.1\r\n"), "{sent}");
    assert!(sent.contains("\r\nAuthorization: Basic dXNlcjpzZWNyZXQ=\r\n"), "{sent}");
    viewer.advance(ms(20));
    viewer.deliver(response.head().as_bytes());
    viewer.advance(ms(40));
    viewer.deliver(&response.framed(&response.body[..1]));
    viewer.advance(ms(80));
    viewer.deliver(&response.framed(&response.body[1..200_000]));
    let figures = viewer.outcome().2;
    let phases = [CONNECT, REQUEST, FIRST_BYTE, FIRST_FRAME, STARTUP].map(|spread| value(&figures, spread));
    assert_eq!(phases, [10, 20, 40, 80, 150]);
    assert_eq!(figures.spread(HANDSHAKE).len(), 0, "HTTP has none");
    assert_eq!((figures.counter(PLAYED), figures.gauge(PLAYING)), (1, 1));
}

#[test]
fn every_byte_and_packet_is_counted_once_however_the_body_is_framed_and_split() {
    for framing in FRAMINGS {
        for split in [1usize, 187, 1_000, 70_000] {
            let response = Response::ok(framing, stream(3));
            let mut wire = response.head().into_bytes();
            for piece in response.body.chunks(5_000) {
                wire.extend(response.framed(piece));
            }
            wire.extend(response.end());
            let mut viewer = Viewer::connected(WITNESS);
            for piece in wire.chunks(split) {
                viewer.deliver(piece);
            }
            viewer.close();
            let figures = viewer.assert_failed(Failure::StreamEnded, &format!("{} bytes", 3 * PACKETS * 188));
            assert_eq!(figures.counter(MEDIA), 3 * PACKETS as u64 * 188, "{framing:?} in {split}");
            assert_eq!(figures.counter(UNITS), 3 * PACKETS as u64, "{framing:?} in {split}");
            // Nobody reads behind the announced end.
            assert_eq!(figures.counter(RECEIVED), wire.len() as u64, "{framing:?} in {split}");
            for name in ["ts.lost_packets", "ts.resyncs", "ts.skipped", "ts.aribts_drops", "ts.trailing"] {
                assert_eq!(number(&figures, name), 0, "{name}");
            }
        }
    }
}

#[test]
fn what_was_cut_out_is_lost_and_nothing_else() {
    let whole = stream(5);
    let cut = without(&whole, &[(500, 1), (1_500, 5), (2_500, 15), (3_500, 1)]);
    assert_eq!(whole.len() - cut.len(), 22 * 188);
    let response = Response::ok(Framing::Close, cut);
    let mut viewer = Viewer::connected(WITNESS);
    viewer.deliver(response.head().as_bytes());
    viewer.deliver(&response.body);
    viewer.dispatch(Event::Stop);
    let figures = viewer.outcome().2;
    let counted = ["ts.lost_packets", "ts.gap_events", "ts.aribts_drops", "ts.illegal_duplicates"];
    assert_eq!(
        counted.map(|name| number(&figures, name)),
        [22, 4, 4, 0],
        "15 lost are a gap as well, although the counter stands still"
    );
    assert_eq!((number(&figures, "ts.aribts_missed"), number(&figures, "ts.lost_estimate")), (1, 22));
    assert_eq!(number(&figures, "ts.random_access_indicators"), 5);
}

#[test]
fn readers_of_one_stream_place_its_gaps_alike_and_keep_accounts() {
    let cut = without(&stream(6), &[(1_500, 2), (2_500, 5), (4_321, 1)]);
    let places = |from: usize| -> Vec<(u32, u64)> {
        let mut viewer = Viewer::connected(WITNESS);
        viewer.deliver(Response::ok(Framing::Close, Vec::new()).head().as_bytes());
        viewer.advance(ms(1_000));
        for piece in cut[from..].chunks(10_000) {
            viewer.deliver(piece);
        }
        viewer.advance(ms(1_000));
        viewer.dispatch(Event::Stop);
        let account = viewer.rig.world.take_client_records().remove(0);
        assert_eq!((account.target, account.at.since(account.since.unwrap())), (0, ms(1_000)));
        let columns = ts::COLUMNS;
        let at = |name: &str| columns.iter().position(|column| column.figure == name).unwrap();
        let number = |name: &str| account.numbers[at(name)];
        assert_eq!(number("media"), Some((cut.len() - from) as f64));
        assert_eq!((number("ts.lost_packets"), number("ts.gap_events")), (Some(8.0), Some(3.0)));
        viewer.rig.world.take_gaps().iter().map(|gap| (gap.mark, gap.place)).collect()
    };
    // One that came in later, in the middle of a packet, and reckons the clock from other references.
    let (first, second) = (places(0), places(1_000 * 188 + 77));
    assert_eq!(first.len(), 3);
    for (one, other) in first.iter().zip(&second) {
        assert_eq!(one.0, other.0);
        assert!(one.1.abs_diff(other.1) < 5_000, "{one:?} and {other:?}");
    }
}

/// Plays a minute at its own pace, in steps of 20 ms; from 20 s on it is held for 1.5 s in every 5.
fn held(client: u32) -> Recorder {
    let response = Response::ok(Framing::Chunked, stream(60));
    let mut viewer = Viewer::connected(client);
    viewer.deliver(response.head().as_bytes());
    let step = BIT_RATE as usize / 8 / 50;
    let mut sent = 0;
    for tick in 0..3_000usize {
        let due = tick * 20;
        if due < 20_000 || due % 5_000 < 3_500 {
            let until = ((tick + 1) * step).min(response.body.len());
            viewer.deliver(&response.framed(&response.body[sent..until]));
            sent = until;
        }
        viewer.advance(ms(20));
    }
    viewer.dispatch(Event::Stop);
    let (ending, _, figures) = viewer.outcome();
    assert_eq!(ending, Some(Ending::OnTime));
    figures
}

#[test]
fn a_crowd_viewer_finds_the_same_stalls_as_a_witness_with_fewer_reads() {
    let (witness, crowd) = (held(WITNESS), held(CROWD));
    assert!(witness.counter(STALLS) >= 1, "{}", witness.counter(STALLS));
    assert_eq!(witness.counter(STALLS), crowd.counter(STALLS));
    // Crowd viewers see the stream's clock at the end of what they read: to a reference's distance.
    assert!(witness.counter(STALLED).abs_diff(crowd.counter(STALLED)) <= 60_000);
    assert_eq!(witness.spread(STALL_LENGTH).len(), crowd.spread(STALL_LENGTH).len());
    assert_eq!(witness.counter(UNITS), crowd.counter(UNITS));
    assert!(crowd.counter(READS) * 4 < witness.counter(READS), "{} reads", crowd.counter(READS));
    // Held for 1.5 s, seven times; what is held last is still held at the end.
    let recovery = witness.spread(RECOVERY);
    let [least, most] = [recovery.min(), recovery.max()].map(|micros| (micros + 5_000) / 10_000);
    assert_eq!((recovery.len(), least, most), (7, 152, 152));
    assert!(crowd.spread(RECOVERY).is_empty());
    // Drift is for witnesses: what is held last is 1.48 s late.
    assert_eq!(crowd.signed(DRIFT).len(), 0);
    let highest = witness.signed(DRIFT).value_at_quantile(1.0);
    assert!((1_400_000..=1_600_000).contains(&highest), "{highest}");
    for figures in [&witness, &crowd] {
        let rate = figures.counter(SOURCE) as f64 * 8e6 / figures.counter(SOURCE_TIME) as f64;
        assert!((rate / BIT_RATE as f64 - 1.0).abs() < 0.01, "the source's rate is {rate}");
    }
}

#[test]
fn a_viewer_whose_server_sends_no_more_plays_no_more_after_its_timeout() {
    for client in [WITNESS, CROWD] {
        let response = Response::ok(Framing::Chunked, stream(6));
        let mut viewer = Viewer::connected(client);
        viewer.deliver(response.head().as_bytes());
        for piece in response.body[..5 * PACKETS * 188].chunks(BIT_RATE as usize / 8 / 50) {
            viewer.deliver(&response.framed(piece));
            viewer.advance(ms(20));
        }
        let supply = |viewer: &mut Viewer| {
            let figures = viewer.outcome().2;
            (figures.gauge(PLAYING), number(&figures, "starving"), number(&figures, "starved"))
        };
        viewer.advance(ms(9_000));
        assert_eq!(supply(&mut viewer), (1, 0, 0), "client {client}");
        viewer.advance(ms(3_100));
        assert_eq!(supply(&mut viewer), (0, 1, 1), "client {client}");
        viewer.deliver(&response.framed(&response.body[5 * PACKETS * 188..]));
        viewer.advance(ms(1_100));
        assert_eq!(supply(&mut viewer), (1, 0, 0), "client {client}");
    }
}

#[test]
fn a_clock_that_jumps_is_a_jump_of_its_size_and_no_stall() {
    let (first, second) = (stream(3), stream(9));
    // The second stream's clock begins where the first one's does: here it goes on from 6 s instead of 3 s.
    let spliced = [&first[..], &second[6 * PACKETS * 188..]].concat();
    let mut viewer = Viewer::connected(CROWD);
    viewer.deliver(Response::ok(Framing::Close, Vec::new()).head().as_bytes());
    for piece in spliced.chunks(BIT_RATE as usize / 8 / 25) {
        viewer.deliver(piece);
        viewer.advance(ms(40));
    }
    viewer.dispatch(Event::Stop);
    let figures = viewer.outcome().2;
    assert_eq!(figures.counter(TIMESTAMP_JUMPS), 1);
    let size = figures.signed(TIMESTAMP_JUMP).value_at_quantile(1.0);
    assert!((2_900_000..=3_100_000).contains(&size), "{size}");
    assert_eq!(figures.counter(STALLS), 0);
}

#[test]
fn another_stream_behind_a_silence_can_be_shown_from_its_next_random_access_point_on() {
    let (first, second) = (stream(3), stream(9));
    let mut viewer = Viewer::connected(WITNESS);
    viewer.deliver(Response::ok(Framing::Close, Vec::new()).head().as_bytes());
    let tenth = PACKETS * 188 / 10;
    for piece in first.chunks(tenth) {
        viewer.deliver(piece);
        viewer.advance(ms(100));
    }
    viewer.advance(ms(2_000));
    // It begins at 6.5 s, and has a random access point at the beginning of each second.
    for piece in second[65 * tenth..].chunks(tenth) {
        viewer.deliver(piece);
        viewer.advance(ms(100));
    }
    let figures = viewer.outcome().2;
    let recovery = figures.spread(RECOVERY);
    // From 2.9 s to 5.5 s.
    assert_eq!((recovery.len(), (recovery.max() + 5_000) / 10_000), (1, 260), "{}", recovery.max());
}

#[test]
fn counters_of_a_publication_that_begins_again_are_no_loss() {
    let tenth = PACKETS * 188 / 10;
    let lost = |pieces: &[&[u8]]| {
        let mut viewer = Viewer::connected(WITNESS);
        viewer.deliver(Response::ok(Framing::Close, Vec::new()).head().as_bytes());
        for piece in pieces.iter().flat_map(|piece| piece.chunks(tenth)) {
            viewer.deliver(piece);
            viewer.advance(ms(100));
        }
        viewer.dispatch(Event::Stop);
        number(&viewer.outcome().2, "ts.lost_packets")
    };
    // Its counters and its clock begin again, wherever the one before has ended.
    let (first, second) = (stream(3), stream(9));
    for packets in [2_950, 2_957, 2_981, 3_000] {
        assert_eq!(lost(&[&first[..packets * 188], &second]), 0, "{packets}");
    }
    // What is left out of either, and of one whose clock goes on, is lost.
    assert_eq!(lost(&[&without(&first, &[(1_000, 3)]), &second]), 3);
    assert_eq!(lost(&[&first, &without(&second, &[(4_000, 3)])]), 3);
    assert!(lost(&[&first[..2_957 * 188], &second[3_100 * 188..]]) > 0);
}

#[test]
fn a_clock_that_jumps_says_nothing_of_how_late_what_follows_is() {
    let (first, second) = (stream(3), stream(9));
    let tenth = PACKETS * 188 / 10;
    // The highest drift behind a silence of two seconds.
    let drift = |follows: &[u8]| {
        let mut viewer = Viewer::connected(WITNESS);
        viewer.deliver(Response::ok(Framing::Close, Vec::new()).head().as_bytes());
        for piece in first.chunks(tenth) {
            viewer.deliver(piece);
            viewer.advance(ms(100));
        }
        viewer.advance(ms(1_900));
        viewer.outcome();
        for piece in follows.chunks(tenth) {
            viewer.deliver(piece);
            viewer.advance(ms(100));
        }
        viewer.outcome().2.signed(DRIFT).max()
    };
    // Another publication, whose clock is ahead, or begins again: the publisher was away, and is live now.
    for (at, highest) in [(60, 150_000), (0, 150_000)] {
        let found = drift(&second[at * tenth..]);
        assert!(found < highest, "{found}");
    }
    // A stream that goes on was late by those two seconds, and is.
    let found = drift(&second[30 * tenth..]);
    assert!((1_800_000..2_200_000).contains(&found), "{found}");
}

/// SRS sends a clock reference with each keyframe and no null packets.
#[test]
fn clock_references_two_seconds_apart_are_no_jumps_and_no_stalls() {
    for client in [WITNESS, CROWD] {
        let mut muxer =
            Muxer::new(MuxSettings { audio: None, pcr_interval: 2 * 27_000_000, ..MuxSettings::default() });
        let mut viewer = Viewer::connected(client);
        viewer.deliver(Response::ok(Framing::Close, Vec::new()).head().as_bytes());
        let mut sent = 0;
        for picture in 0..1_000u64 {
            let (group, key) = (picture / 50, picture % 50 == 0);
            let length = if key { 30_000 } else { 2_000 + picture * 37 % 1_500 } * (4 + group * 7 % 3) / 4;
            let mut content: Vec<u8> = (0..length).map(|at| (at / 16 + picture) as u8 | 0x40).collect();
            if key {
                content[..PARAMETER_SETS.len()].copy_from_slice(PARAMETER_SETS);
            }
            let time = 90_000 + picture * 3_600;
            let unit = AccessUnit { pts: time, dts: time, random_access: key, bytes: &content };
            let mut bytes = Vec::new();
            muxer.video(&unit, &mut bytes);
            sent += bytes.len();
            viewer.deliver(&bytes);
            viewer.advance(ms(40));
        }
        viewer.dispatch(Event::Stop);
        let figures = viewer.outcome().2;
        assert_eq!((figures.counter(TIMESTAMP_JUMPS), figures.counter(STALLS)), (0, 0));
        assert!(number(&figures, "ts.pcr_repetition_error") >= 18);
        let rate = figures.counter(SOURCE) as f64 * 1e6 / figures.counter(SOURCE_TIME) as f64;
        assert!((rate / (sent as f64 / 40.0) - 1.0).abs() < 0.1, "{rate} of {sent} in 40 s");
        if client == WITNESS {
            let drift = figures.signed(DRIFT);
            // Within a group the time goes on with the packets, of which the keyframe has a third.
            assert!(
                drift.min() > -1_600_000 && drift.max() < 1_600_000,
                "{} to {}",
                drift.min(),
                drift.max()
            );
        }
    }
}

/// Thirty seconds of pictures and sound at this rate, null packets included, of which the elementary streams are left out
/// where `is_sent` says so; the clock goes on.
fn programme(bit_rate: u64, fps: u64, is_sent: impl Fn(bool, u64) -> bool) -> Vec<u8> {
    let mut muxer = Muxer::new(MuxSettings { bit_rate: Some(bit_rate), ..MuxSettings::default() });
    let content: Vec<u8> = (0..bit_rate / 24 / fps).map(|at| (at / 16) as u8 | 0x40).collect();
    let begun = [PARAMETER_SETS, &content[PARAMETER_SETS.len()..]].concat();
    let mut bytes = Vec::new();
    let (mut picture, mut sound) = (0u64, 0u64);
    loop {
        let (of_picture, of_sound) = (picture * 90_000 / fps, sound * 1_920);
        let is_picture = of_picture <= of_sound;
        let time = of_picture.min(of_sound);
        let at = time / 90;
        if at > 30_000 {
            bytes.truncate(bit_rate as usize / 8 * 30 / 188 * 188);
            return bytes;
        }
        let key = is_picture && picture % (2 * fps) == 0;
        let bytes_of = match (key, is_picture) {
            (true, _) => &begun[..],
            (false, true) => &content[..],
            (false, false) => &content[..content.len().min(60)],
        };
        let unit = AccessUnit { pts: 90_000 + time, dts: 90_000 + time, random_access: key, bytes: bytes_of };
        match (is_sent(is_picture, at), is_picture) {
            (true, true) => muxer.video(&unit, &mut bytes),
            (true, false) => muxer.audio(&unit, &mut bytes),
            (false, _) => {}
        }
        if is_picture { picture += 1 } else { sound += 1 }
    }
}

/// Stalls, stalled seconds, and how many are without pictures and without sound before the end, of a server that writes once in
/// `burst` milliseconds.
fn watched(client: u32, stream: &[u8], bit_rate: u64, burst: u64) -> (u64, f64, [u64; 2]) {
    let mut viewer = Viewer::connected(client);
    viewer.deliver(Response::ok(Framing::Close, Vec::new()).head().as_bytes());
    for piece in stream.chunks((bit_rate / 8 * burst / 1_000) as usize) {
        viewer.deliver(piece);
        viewer.advance(ms(burst));
    }
    let levels = |figures: &Recorder| ["without_pictures", "without_sound"].map(|name| number(figures, name));
    let figures = viewer.outcome().2;
    let (stalls, stalled, without) = (figures.counter(STALLS), figures.counter(STALLED), levels(&figures));
    viewer.dispatch(Event::Stop);
    let figures = viewer.outcome().2;
    assert_eq!(levels(&figures), [0, 0]);
    (stalls, stalled as f64 / 1e6, without)
}

#[test]
fn a_viewer_whose_pictures_or_sound_stop_stalls_although_the_clock_goes_on() {
    for (bit_rate, fps) in [(300_000, 5), (500_000, 25), (2_000_000, 50)] {
        let both = programme(bit_rate, fps, |_, _| true);
        let of_pictures = programme(bit_rate, fps, |is_picture, at| !is_picture || at < 10_000);
        let of_sound = programme(bit_rate, fps, |is_picture, at| is_picture || at < 10_000);
        let screen = programme(bit_rate, fps, |is_picture, at| !is_picture || at % 5_000 < 1_000 / fps);
        for client in [WITNESS, CROWD] {
            for burst in [40, 100, 350] {
                let seen = |stream: &[u8]| watched(client, stream, bit_rate, burst);
                let of = format!("{bit_rate} {fps} {client} {burst}");
                assert_eq!(seen(&both), (0, 0.0, [0, 0]), "{of}");
                assert_eq!(seen(&screen), (0, 0.0, [0, 0]), "{of}: a picture in 5 s");
                for (stream, without) in [(&of_pictures, [1, 0]), (&of_sound, [0, 1])] {
                    let (stalls, stalled, are_without) = seen(stream);
                    assert_eq!((stalls, are_without), (1, without), "{of}");
                    assert!((15.0..=20.5).contains(&stalled), "{of}: {stalled}");
                }
            }
        }
    }
}

/// The same stream without NAL units of H.264 of these types: their type becomes that of filler data, 12.
fn without_units(mut stream: Vec<u8>, types: &[u8]) -> Vec<u8> {
    for at in 3..stream.len() {
        if stream[at - 3..at] == [0, 0, 1] && types.contains(&(stream[at] & 0x1F)) {
            stream[at] = stream[at] & 0xE0 | 12;
        }
    }
    stream
}

#[test]
fn a_stream_without_parameter_sets_is_no_media_that_says_what_is_missing() {
    for client in [WITNESS, CROWD] {
        for (types, missing) in [(&[7, 8][..], "SPS and PPS"), (&[8], "PPS")] {
            let mut viewer = Viewer::connected(client);
            let body = without_units(stream(12), types);
            viewer.deliver(Response::ok(Framing::Close, Vec::new()).head().as_bytes());
            for piece in body.chunks(BIT_RATE as usize / 80) {
                viewer.deliver(piece);
                viewer.advance(ms(100));
            }
            let words = format!("no decoder can begin with it: without {missing} of the H.264 on PID");
            viewer.assert_failed(Failure::NoMedia, &words);
        }
    }
}

#[test]
fn a_viewer_that_must_stop_before_it_is_connected_did_not_fail() {
    let mut viewer = Viewer::new(CROWD);
    viewer.dispatch(Event::Stop);
    let (ending, _, figures) = viewer.outcome();
    assert_eq!((ending, viewer.rig.closed), (Some(Ending::OnTime), true));
    assert_eq!(figures.gauge(ACTIVE), 0);
}

/// Plays what a real server sends at once, to its end.
fn at_once(response: &Response, viewers: u32) -> (Recorder, Vec<Ending>) {
    let response = response.clone();
    let server = Server::start(move |_| response.clone());
    let players: Workload =
        ts::play(&[server.url("/x.ts")], &PlayOptions::default(), &HttpOptions::default()).unwrap();
    let mut bench = Bench::new(vec![&players]);
    bench.start(0, 0..viewers);
    let planned = PlannedStart {
        client: 0,
        workload: 0,
        cell: 0,
        at: weir_metrics::Moment::default(),
        turn: Turn::default(),
    };
    bench.run_until(Duration::from_secs(60), "all have ended", |shard| {
        shard.of(planned).number(ACTIVE.0.into()) == 0
    });
    let (mut figures, ended, _) = bench.stop();
    (figures.remove(0), ended.into_iter().map(|(_, ending)| ending).collect())
}

#[test]
fn each_of_twelve_viewers_counts_what_the_server_left_out() {
    let body = without(&stream(10), &[(1_000, 1), (2_500, 7), (4_000, 14), (7_000, 2)]);
    for framing in FRAMINGS {
        let (figures, ended) = at_once(&Response::ok(framing, body.clone()), 12);
        assert_eq!(ended, [Ending::Failed(Failure::StreamEnded); 12], "{framing:?}");
        assert_eq!(number(&figures, "ts.lost_packets"), 12 * 24, "{framing:?}");
        assert_eq!(number(&figures, "ts.gap_events"), 12 * 4);
        assert_eq!(figures.counter(UNITS), 12 * (body.len() / 188) as u64);
        assert_eq!((figures.counter(PLAYED), figures.gauge(ACTIVE)), (12, 0));
    }
}

#[test]
fn a_link_that_is_cut_is_no_end_of_the_stream() {
    let cut = Response { short: 100, ..Response::ok(Framing::Length, stream(2)) };
    let (figures, ended) = at_once(&cut, 3);
    assert_eq!(ended, [Ending::Failed(Failure::ClosedByPeer); 3]);
    assert_eq!((number(&figures, "ts.truncated_ends"), number(&figures, "ts.trailing")), (3, 3 * 88));
}
