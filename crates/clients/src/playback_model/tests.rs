mod tracks;

use super::*;
use proptest::prelude::*;
use weir_metrics::Schema;
use weir_metrics::common::{STALL_LENGTH, STALLED, STALLED_VIEWERS, STALLS};

/// A frame on its way: when it arrives, and what it is.
type Arrival = (Moment, ReceivedFrame);

/// A viewer and what its kernel holds for it.
struct Reader {
    playback: PlaybackModel,
    waiting: Vec<Arrival>,
    recorder: Recorder,
    reads: Vec<Moment>,
}

impl Reader {
    /// Drives a viewer as a shard does: arrivals first, then deadlines.
    fn run(reading: Reading, number: u32, arrivals: &[Arrival], end: Moment) -> Self {
        let second = Duration::from_secs(1);
        let playout = Playout::new(second, second / 2);
        let mut reader = Self {
            playback: PlaybackModel::new(reading, number, Timeline::new(1_000, 32), playout, arrivals[0].0),
            waiting: Vec::new(),
            recorder: Recorder::new(Schema::new(&[])),
            reads: Vec::new(),
        };
        for &(now, seen) in arrivals {
            reader.pass_until(now);
            reader.waiting.push((now, seen));
            reader.wake(now);
        }
        reader.pass_until(end);
        reader.read(end);
        reader.playback.leave(end, &mut reader.recorder);
        reader
    }

    /// What arrives after `from` and up to `to`, when everything is read: the edge of a window. Says how many bytes
    /// came, and takes what was recorded.
    fn window(&mut self, arrivals: &[Arrival], from: Moment, to: Moment) -> (u64, Recorder) {
        let mut bytes = 0;
        for &(now, seen) in arrivals.iter().filter(|(at, _)| from < *at && *at <= to) {
            bytes += u64::from(seen.bytes);
            self.pass_until(now);
            self.waiting.push((now, seen));
            self.wake(now);
        }
        self.pass_until(to);
        self.read(to);
        (bytes, self.recorder.take())
    }

    /// All deadlines before `now`.
    fn pass_until(&mut self, now: Moment) {
        while let Some(next) = self.playback.poll_timeout().filter(|next| *next < now) {
            if self.playback.handle_timeout(next, self.unread(), &mut self.recorder) {
                self.read(next);
            }
            self.wake(next);
        }
    }

    /// The kernel says that enough waits.
    fn wake(&mut self, now: Moment) {
        let bytes = self.unread();
        if bytes > 0 && bytes >= self.playback.batch() {
            self.read(now);
        }
    }

    fn unread(&self) -> usize {
        self.waiting.iter().map(|(_, seen)| seen.bytes as usize).sum()
    }

    fn read(&mut self, now: Moment) {
        let waiting = std::mem::take(&mut self.waiting);
        let empty = waiting.is_empty();
        if !empty {
            self.reads.push(now);
        }
        for (_, seen) in waiting {
            self.playback.frame(now, seen, &mut self.recorder);
        }
        self.playback.end_of_read(now, empty, &mut self.recorder);
    }
}

/// Frames of 40 ms from a moment on, every twenty-fifth a keyframe, with timestamps from 0; the first of them is number
/// `first` of its group.
fn publication(begin_millis: u64, frames: u64, first: u64) -> Vec<Arrival> {
    let frame = |number: u64| {
        let keyframe = (number + first).is_multiple_of(25);
        let seen = ReceivedFrame { track: Track::Video, timestamp: 40 * number, bytes: 1_000, keyframe };
        (Moment::default() + Duration::from_millis(begin_millis + 40 * number), seen)
    };
    (0..frames).map(frame).collect()
}

/// The times without frames that a witness saw, in milliseconds.
fn recoveries(arrivals: &[Arrival]) -> Vec<u64> {
    let end = arrivals.last().unwrap().0;
    let reader = Reader::run(Reading::Witness, 0, arrivals, end);
    let histogram = reader.recorder.spread(RECOVERY);
    let values = histogram.iter_recorded().map(|value| (value.value_iterated_to() + 500) / 1_000);
    values.collect()
}

#[test]
fn a_publisher_that_comes_again_ends_a_silence_with_its_first_keyframe() {
    let first = publication(0, 50, 0);
    // The last frame came at 1,960 ms.
    assert_eq!(recoveries(&[first.clone(), publication(3_000, 50, 0)].concat()), [1_040]);
    // It begins with the last five of a group of pictures.
    assert_eq!(recoveries(&[first.clone(), publication(3_000, 50, 20)].concat()), [1_240]);
    // Too short to be a silence, and too few frames to be missed.
    assert_eq!(recoveries(&[first.clone(), publication(2_400, 50, 0)].concat()), [0; 0]);
    assert_eq!(recoveries(&first), [0; 0]);
}

#[test]
fn a_viewer_is_not_behind_for_good_because_a_publisher_was_away() {
    let arrivals = [publication(0, 250, 0), publication(11_200, 250, 0)].concat();
    let mut reader = Reader::run(Reading::Witness, 0, &arrivals, arrivals[499].0);
    // At most the look in the middle of the silence sees it.
    let drift = reader.recorder.take();
    assert!(drift.signed(DRIFT).value_at_quantile(0.99).abs() < 50_000, "{:?}", drift.signed(DRIFT).max());
}

#[test]
fn a_keyframe_after_a_second_silence_ends_the_first() {
    // One frame of the new publication, and then nothing for 600 ms up to its first keyframe.
    let mut again = publication(3_000, 50, 20);
    again.drain(1..5);
    for (at, _) in &mut again[1..] {
        *at = *at + Duration::from_millis(400);
    }
    assert_eq!(recoveries(&[publication(0, 50, 0), again].concat()), [1_640]);
}

#[test]
fn a_server_that_falls_silent_and_goes_on_shows_the_next_frame() {
    let mut frames = publication(0, 100, 0);
    for (at, _) in &mut frames[60..] {
        *at = *at + Duration::from_millis(700);
    }
    assert_eq!(recoveries(&frames), [740]);
}

#[test]
fn one_frame_a_second_is_no_silence() {
    let slow = |(at, seen): Arrival| {
        let at = Moment::from_nanos(at.as_nanos() * 25);
        (at, ReceivedFrame { timestamp: seen.timestamp * 25, ..seen })
    };
    let frames: Vec<_> = publication(0, 20, 0).into_iter().map(slow).collect();
    assert_eq!(recoveries(&frames[1..]), [0; 0]);
}

/// Frames of 40 ms, each held for some time, in order.
fn arrivals(delays: &[u16], sizes: &[u32]) -> Vec<Arrival> {
    let mut arrivals = Vec::new();
    let mut now = Moment::default();
    for (frame, delay) in delays.iter().enumerate() {
        let due = Moment::from_nanos((frame as u64 * 40 + 1_000) * 1_000_000);
        now = now.max(due + Duration::from_millis(u64::from(*delay)));
        let seen = ReceivedFrame {
            track: Track::Video,
            timestamp: frame as u64 * 40,
            bytes: sizes[frame % sizes.len()],
            keyframe: frame % 50 == 0,
        };
        arrivals.push((now, seen));
    }
    arrivals
}

proptest! {
    #[test]
    fn batches_find_the_stalls_that_single_reads_find(
        // Now and then a frame is held for up to 4 s, and those behind it with it.
        delays in prop::collection::vec(prop_oneof![30 => 0u16..30, 1 => 0u16..4_000], 100..800),
        sizes in prop::collection::vec(2_000u32..6_000, 1..60),
        number in any::<u32>(),
    ) {
        let arrivals = arrivals(&delays, &sizes);
        let end = arrivals[arrivals.len() - 1].0 + Duration::from_secs(5);
        let witness = Reader::run(Reading::Witness, number, &arrivals, end);
        let crowd = Reader::run(Reading::Crowd, number, &arrivals, end);
        for figure in [STALLS, STALLED, STALLED_VIEWERS, SOURCE, SOURCE_FRAMES, SOURCE_TIME, TIMESTAMP_JUMPS] {
            prop_assert_eq!(witness.recorder.counter(figure), crowd.recorder.counter(figure));
        }
        prop_assert_eq!(witness.recorder.spread(STALL_LENGTH), crowd.recorder.spread(STALL_LENGTH));
        prop_assert!(witness.recorder.counter(STALLS) > 0, "nothing comes for the last five seconds");
        prop_assert_eq!(witness.recorder.counter(STALLED_VIEWERS), 1, "however often it stalled");
        prop_assert!(crowd.reads.len() <= witness.reads.len());
    }
}

proptest! {
    #[test]
    fn what_came_by_the_clock_is_what_came_less_what_a_server_sent_at_once(
        // Frames of 40 ms that a server has kept, how late each of the others is, and how long the viewer stays.
        kept in 1usize..100,
        delays in prop::collection::vec(0u64..20, 1..30),
        sizes in prop::collection::vec(900u32..1_100, 1..60),
        stays in 500u64..6_000,
        number in any::<u32>(),
    ) {
        let start = Moment::from_nanos(7_000_000_000);
        let end = start + Duration::from_millis(stays);
        let late = (kept..).map(|frame| ((frame - kept) as u64 + 1) * 40 + delays[frame % delays.len()]);
        let times = std::iter::repeat_n(0, kept).chain(late).enumerate();
        let arrivals: Vec<Arrival> = times
            .map(|(frame, at)| {
                let frame = ReceivedFrame {
                    track: Track::Video,
                    timestamp: frame as u64 * 40,
                    bytes: sizes[frame % sizes.len()],
                    keyframe: frame % 50 == 0,
                };
                (frame, start + Duration::from_millis(at))
            })
            .map(|(frame, at)| (at, frame))
            .take_while(|(at, _)| *at < end)
            .collect();
        for reading in [Reading::Witness, Reading::Crowd] {
            let reader = Reader::run(reading, number, &arrivals, end);
            let came = (reader.playback.bytes - u64::from(reader.playback.first)) as f64;
            let by_the_clock = came - reader.recorder.counter(AHEAD) as f64;
            // 25 frames of 1,000 bytes a second, one of them more or less, and a tenth for sizes that repeat.
            let expected = 25.0 * stays as f64;
            prop_assert!((by_the_clock - expected).abs() <= 2_500.0 + expected / 10.0, "{reading:?}: {by_the_clock} of {expected}");
            let frames = (reader.playback.frames - 1) as f64 - reader.recorder.counter(FRAMES_AHEAD) as f64;
            prop_assert!((frames - expected / 1e3).abs() <= 2.5, "{reading:?}: {frames} of {}", expected / 1e3);
        }
    }

    #[test]
    fn a_server_that_catches_up_sends_nothing_ahead(
        // Now and then a frame is held for up to 4 s, and those behind it with it.
        delays in prop::collection::vec(prop_oneof![30 => Just(0u16), 1 => 0u16..4_000], 100..400),
        number in any::<u32>(),
    ) {
        let arrivals = arrivals(&delays, &[1_000]);
        for reading in [Reading::Witness, Reading::Crowd] {
            let reader = Reader::run(reading, number, &arrivals, arrivals[arrivals.len() - 1].0);
            // If the first frame is the one that is held, those behind it come before their time.
            let held = if delays[0] == 0 { 0 } else { u64::from(delays[0]) / 40 + 1 };
            prop_assert!(reader.recorder.counter(AHEAD) <= held * 1_000, "{reading:?}");
        }
    }
}

/// A keyframe is as much as a second of the rest, so that by whole groups a window of 3 s has 20 % too much or too
/// little.
#[test]
fn a_viewer_that_keeps_up_gets_what_is_expected_of_it_in_any_window() {
    let sizes: Vec<u32> = (0..50).map(|frame| if frame == 0 { 25_000 } else { 1_000 }).collect();
    let arrivals = arrivals(&[7; 600], &sizes);
    let second = Duration::from_secs(1);
    for reading in [Reading::Witness, Reading::Crowd] {
        for length in [1, 2, 3, 5, 7] {
            let playout = Playout::new(second, second / 2);
            let start = arrivals[0].0;
            let mut reader = Reader {
                playback: PlaybackModel::new(reading, 5, Timeline::new(1_000, 32), playout, start),
                waiting: Vec::new(),
                recorder: Recorder::new(Schema::new(&[])),
                reads: Vec::new(),
            };
            let mut from = start + Duration::from_millis(2_990);
            reader.window(&arrivals, Moment::default(), from);
            for _ in 0..3 {
                let (bytes, figures) = reader.window(&arrivals, from, from + second * length);
                let expected = figures.counter(SOURCE) as f64 * 1e6 / figures.counter(SOURCE_TIME) as f64
                    * f64::from(length);
                let ratio = bytes as f64 / expected;
                assert!((0.999..=1.001).contains(&ratio), "{reading:?}, {length} s: {ratio}");
                from = from + second * length;
            }
        }
    }
}

#[test]
fn neighbours_read_together_and_others_at_other_times() {
    let sizes: Vec<u32> =
        (0..50).map(|frame| if frame == 0 { 9_000 } else { 700 + frame % 7 * 100 }).collect();
    let arrivals = arrivals(&[0; 500], &sizes);
    let (settled, end) = (arrivals[0].0 + Duration::from_secs(8), arrivals[499].0);
    let late = |number: u32| {
        // They come one after another.
        let from = number as usize % 100;
        let reads = Reader::run(Reading::Crowd, number, &arrivals[from..], end).reads;
        reads.into_iter().filter(|at| settled < *at && *at < end).collect::<Vec<_>>()
    };
    assert!((9..=10).contains(&late(0).len()), "in 12 s, once in 1.28 s: {:?}", late(0));
    assert!((1..TOGETHER).all(|number| late(number) == late(0)));
    let mut phases: Vec<_> = (0..16).map(|block| late(block * TOGETHER)[0]).collect();
    phases.sort_unstable();
    let most_at_once = phases.chunk_by(|a, b| a == b).map(<[Moment]>::len).max();
    assert!(most_at_once <= Some(2), "{phases:?}");
}

#[test]
fn a_batch_is_about_two_seconds_of_the_stream() {
    for (size, expected) in
        [(50, 4_096), (1_160, 58_000), (12_000, 65_536), (40_000, 100_000), (400_000, 196_608)]
    {
        let reader =
            Reader::run(Reading::Crowd, 0, &arrivals(&[0; 200], &[size]), Moment::from_nanos(9_000_000_000));
        let batch = reader.playback.batch as f64 / f64::from(expected);
        assert!((0.65..=1.5).contains(&batch), "{size}: {}", reader.playback.batch);
    }
}
