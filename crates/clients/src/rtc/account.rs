//! What a viewer leaves behind when it ends: its own figures, one number a column.

use crate::column::{Column, ColumnPosition, ColumnUnit, Statistic};
use std::time::Duration;
use weir_rtc::account::{Loss, Track};

/// States of ICE by their usual names (W3C WebRTC section 5.6.3).
const ICE_STATES: &[&str] =
    &["new", "checking", "connected", "completed", "disconnected", "failed", "closed"];
/// States of DTLS by their usual names (section 5.5.1).
const DTLS_STATES: &[&str] = &["new", "connecting", "connected", "closed", "failed"];

/// Ways that media goes.
const PATHS: &[&str] = &["none", "UDP", "relay over TCP", "relay over TLS", "relay over UDP"];

use ColumnUnit::{BitsPerSecond, Bytes, Count, PerSecond as EverySecond, Seconds, Word};
use Statistic::{Last, Least, Mean, Most};

/// The columns, in the order of the well-known report of OvenMediaEngine's own tester, and then what it lacks.
pub const COLUMNS: &[Column] = &[
    Column::once("rtc.ice_state", "ICE Connection State", Word(ICE_STATES))
        .summed()
        .placed(ColumnPosition::Own),
    Column::once("rtc.dtls_state", "DTLS State", Word(DTLS_STATES)).summed(),
    Column::once("rtc.path", "Path", Word(PATHS)).summed(),
    Column::once("startup", "Startup", Seconds).summed(),
    Column::once("rtc.signalling_time", "· signalling", Seconds).summed(),
    Column::once("rtc.ice_time", "· ICE", Seconds).summed(),
    Column::once("rtc.dtls_time", "· DTLS", Seconds).summed(),
    Column::once("rtc.first_packet", "· first packet", Seconds).summed(),
    Column::once("rtc.first_keyframe", "· first keyframe", Seconds).summed(),
    Column::once("rtc.first_whole_frame", "· whole frame", Seconds).summed(),
    Column::of(Mean, "rtc.video_delay", "Video Delay", Seconds).summed().placed(ColumnPosition::Own),
    Column::of(Least, "rtc.video_delay", "Video Delay", Seconds),
    Column::of(Most, "rtc.video_delay", "Video Delay", Seconds).bad(),
    Column::of(Last, "rtc.video_delay", "Video Delay", Seconds),
    Column::of(Mean, "rtc.audio_delay", "Audio Delay", Seconds).summed(),
    Column::of(Least, "rtc.audio_delay", "Audio Delay", Seconds),
    Column::of(Most, "rtc.audio_delay", "Audio Delay", Seconds),
    Column::of(Last, "rtc.audio_delay", "Audio Delay", Seconds),
    Column::once("burst", "Burst at the start", Seconds).summed(),
    Column::once("rtc.gop", "GOP", Count).summed(),
    Column::of(Mean, "rtc.fps", "FPS", EverySecond).summed().placed(ColumnPosition::Own),
    Column::of(Least, "rtc.fps", "FPS", EverySecond),
    Column::of(Most, "rtc.fps", "FPS", EverySecond),
    Column::of(Mean, "rtc.rate", "BPS", BitsPerSecond).summed().placed(ColumnPosition::Own),
    Column::of(Least, "rtc.rate", "BPS", BitsPerSecond),
    Column::of(Most, "rtc.rate", "BPS", BitsPerSecond),
    Column::sum("rtc.bytes", "Bytes", Bytes).summed(),
    Column::sum("rtc.packets", "Packets", Count).summed().placed(ColumnPosition::Own),
    Column::sum("lost", "Packet Losses", Count).summed().placed(ColumnPosition::Below).bad(),
    Column::sum("rtc.gaps", "Gaps", Count).summed(),
    Column::sum("reordered", "Reordered", Count).summed(),
    Column::sum("duplicate", "Duplicate", Count).summed(),
    Column::sum("rtc.recovered", "Recovered", Count).summed(),
    Column::sum("frames", "Frames", Count).summed().placed(ColumnPosition::Own),
    Column::sum("rtc.frames_complete", "· complete", Count).summed(),
    Column::sum("rtc.frames_broken", "· broken", Count).summed().placed(ColumnPosition::Below).bad(),
    Column::once("keyframes", "Keyframes", Count),
    Column::of(Least, "rtc.keyframe_interval", "Keyframe Interval", Seconds),
    Column::of(Most, "rtc.keyframe_interval", "Keyframe Interval", Seconds),
    Column::sum("rtc.silent_seconds", "Seconds at 0", Count).summed(),
    Column::sum("rtc.freezes", "Freezes", Count).summed(),
    Column::sum("rtc.frozen", "Frozen", Seconds).summed().bad(),
    Column::of(Most, "rtc.freeze_length", "Longest freeze", Seconds),
    Column::of(Mean, "rtc.video_jitter", "Video Jitter", Seconds).summed(),
    Column::of(Most, "rtc.video_jitter", "Video Jitter", Seconds),
    Column::of(Mean, "rtc.audio_jitter", "Audio Jitter", Seconds).summed(),
    Column::of(Most, "rtc.audio_jitter", "Audio Jitter", Seconds),
    Column::of(Mean, "rtc.round_trip", "Round Trip", Seconds).summed(),
    Column::of(Least, "rtc.round_trip", "Round Trip", Seconds),
    Column::of(Most, "rtc.round_trip", "Round Trip", Seconds),
    Column::of(Mean, "latency", "Latency", Seconds).summed(),
    Column::of(Least, "latency", "Latency", Seconds),
    Column::of(Most, "latency", "Latency", Seconds),
    Column::sum("rtc.nacks", "Packets asked for", Count),
    Column::sum("rtc.plis", "Keyframes asked for", Count),
    Column::sum("rtc.video_packets", "Video packets", Count),
    Column::sum("rtc.video_bytes", "Video bytes", Bytes),
    Column::sum("rtc.video_lost", "Video losses", Count),
    Column::sum("rtc.video_gaps", "Video gaps", Count),
    Column::of(Most, "rtc.video_gap_length", "Longest video gap", Count),
    Column::sum("rtc.video_reordered", "Video reordered", Count),
    Column::sum("rtc.video_duplicate", "Video duplicate", Count),
    Column::sum("rtc.video_recovered", "Video recovered", Count),
    Column::sum("rtc.audio_packets", "Audio packets", Count),
    Column::sum("rtc.audio_bytes", "Audio bytes", Bytes),
    Column::sum("rtc.audio_lost", "Audio losses", Count),
    Column::sum("rtc.audio_gaps", "Audio gaps", Count),
    Column::of(Most, "rtc.audio_gap_length", "Longest audio gap", Count),
    Column::sum("rtc.audio_reordered", "Audio reordered", Count),
    Column::sum("rtc.audio_duplicate", "Audio duplicate", Count),
    Column::sum("rtc.audio_recovered", "Audio recovered", Count),
    Column::sum("link.dropped", "Dropped by the link", Count),
    Column::once("link.adapt_time", "Time to adapt", Seconds),
];

/// The numbers of one viewer.
#[derive(Clone, Debug)]
pub(super) struct Numbers(Vec<Option<f64>>);

/// Values of which mean and extremes are kept, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extent {
    count: u64,
    sum: i64,
    least: i64,
    most: i64,
}

impl Extent {
    pub(super) fn add(&mut self, micros: i64) {
        (self.least, self.most) = match self.count {
            0 => (micros, micros),
            _ => (self.least.min(micros), self.most.max(micros)),
        };
        self.sum = self.sum.saturating_add(micros);
        self.count += 1;
    }
}

/// The least and the most of a quantity in any whole second, and the total.
#[derive(Clone, Copy, Debug, Default)]
struct PerSecond {
    least: u64,
    most: u64,
    total: u64,
}

/// Frames and bytes of whole seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rates {
    seconds: u64,
    silent: u64,
    frames: PerSecond,
    bytes: PerSecond,
}

impl Rates {
    pub(super) fn second(&mut self, frames: u64, bytes: u64) {
        let first = self.seconds == 0;
        for (all, this) in [(&mut self.frames, frames), (&mut self.bytes, bytes)] {
            all.least = if first { this } else { all.least.min(this) };
            all.most = all.most.max(this);
            all.total += this;
        }
        self.silent += u64::from(frames == 0);
        self.seconds += 1;
    }
}

impl Numbers {
    /// Nothing was measured.
    pub(super) fn new() -> Self {
        Self(vec![None; COLUMNS.len()])
    }

    pub(super) fn take(self) -> Vec<Option<f64>> {
        self.0
    }

    /// Sets a number. Of a figure that has no such column nothing is kept.
    pub(super) fn put(&mut self, figure: &str, statistic: Statistic, number: impl Into<Option<f64>>) {
        let is_it = |column: &Column| column.figure == figure && column.statistic == statistic;
        if let Some(cell) = COLUMNS.iter().position(is_it).and_then(|at| self.0.get_mut(at)) {
            *cell = number.into();
        }
    }

    /// Adds to a count.
    pub(super) fn add(&mut self, figure: &str, number: u64) {
        let is_it = |column: &Column| column.figure == figure && column.statistic == Statistic::Sum;
        if let Some(cell) = COLUMNS.iter().position(is_it).and_then(|at| self.0.get_mut(at)) {
            *cell = Some(cell.unwrap_or_default() + number as f64);
        }
    }

    pub(super) fn duration(&mut self, figure: &str, duration: Option<Duration>) {
        self.put(figure, Statistic::Once, duration.map(|it| it.as_secs_f64()));
    }

    /// A state, by its name.
    pub(super) fn word(&mut self, figure: &str, word: &str) {
        let column = COLUMNS.iter().find(|column| column.figure == figure);
        if let Some(Column { unit: Word(words), .. }) = column {
            let position = words.iter().position(|known| *known == word);
            self.put(figure, Statistic::Once, position.map(|at| at as f64));
        }
    }

    pub(super) fn extent(&mut self, figure: &str, extent: &Extent) {
        if extent.count == 0 {
            return;
        }
        self.put(figure, Mean, extent.sum as f64 / extent.count as f64 * 1e-6);
        self.put(figure, Least, extent.least as f64 * 1e-6);
        self.put(figure, Most, extent.most as f64 * 1e-6);
    }

    /// What whole seconds brought.
    pub(super) fn rates(&mut self, rates: &Rates, has_video: bool) {
        let Rates { seconds, silent, frames, bytes } = *rates;
        if seconds == 0 {
            return;
        }
        let of = |it: PerSecond| {
            [(Mean, it.total as f64 / seconds as f64), (Least, it.least as f64), (Most, it.most as f64)]
        };
        for (statistic, number) in of(bytes) {
            self.put("rtc.rate", statistic, number * 8.0);
        }
        if has_video {
            of(frames).into_iter().for_each(|(statistic, number)| self.put("rtc.fps", statistic, number));
            self.add("rtc.silent_seconds", silent);
        }
    }

    /// The account of a track, and what of it was lost on its way. Keyframes are those of the whole track only if all could be `seen`.
    pub(super) fn track(
        &mut self,
        track: &mut Track,
        loss: &Loss,
        is_video: bool,
        seen: bool,
        requests: u64,
    ) {
        let counts = track.counts();
        let kind = if is_video { "video" } else { "audio" };
        for (name, total, number) in [
            ("packets", "rtc.packets", counts.packets),
            ("bytes", "rtc.bytes", counts.bytes),
            ("lost", "lost", loss.lost()),
            ("gaps", "rtc.gaps", loss.gaps),
            ("reordered", "reordered", counts.reordered),
            ("duplicate", "duplicate", counts.duplicate),
            ("recovered", "rtc.recovered", counts.recovered),
        ] {
            self.add(&format!("rtc.{kind}_{name}"), number);
            self.add(total, number);
        }
        let longest = loss.gap_lengths.classes().filter(|(_, _, count)| *count > 0).last();
        self.put(&format!("rtc.{kind}_gap_length"), Most, longest.map(|(from, _, _)| from as f64));
        let delay = format!("rtc.{kind}_delay");
        let drift = track.drift();
        let seconds = |micros: Option<i64>| micros.map(|it| it as f64 * 1e-6);
        self.put(&delay, Mean, drift.mean_micros().map(|it| it * 1e-6));
        self.put(&delay, Least, seconds(drift.least_micros()));
        self.put(&delay, Most, seconds(drift.most_micros()));
        self.put(&delay, Last, seconds(drift.last_micros()));
        self.add("rtc.nacks", track.nack().asked());
        if !is_video {
            return;
        }
        let (frames, freezes, keyframes) = (track.frames(), track.freezes(), track.keyframes());
        self.add("frames", frames.received);
        self.add("rtc.frames_complete", frames.complete);
        self.add("rtc.frames_broken", frames.broken);
        self.add("rtc.freezes", freezes.count());
        self.add("rtc.plis", requests);
        self.put("rtc.frozen", Statistic::Sum, freezes.total().as_secs_f64());
        self.put("rtc.freeze_length", Most, (freezes.count() > 0).then(|| freezes.longest().as_secs_f64()));
        if seen && keyframes.count() > 0 {
            self.put("keyframes", Statistic::Once, keyframes.count() as f64);
            self.put("rtc.gop", Statistic::Once, frames.received as f64 / keyframes.count() as f64);
            let interval = "rtc.keyframe_interval";
            self.put(interval, Least, keyframes.shortest_interval().map(|it| it.as_secs_f64()));
            self.put(interval, Most, keyframes.longest_interval().map(|it| it.as_secs_f64()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn columns_have_names_of_their_own_and_those_of_a_figure_stand_together() {
        let keys: BTreeSet<String> = COLUMNS.iter().map(Column::key).collect();
        assert_eq!(keys.len(), COLUMNS.len());
        let mut figures: Vec<&str> = COLUMNS.iter().map(|column| column.figure).collect();
        figures.dedup();
        let apart: BTreeSet<&str> = figures.iter().copied().collect();
        assert_eq!(apart.len(), figures.len());
    }

    #[test]
    fn a_second_without_a_frame_stays_in_the_minimum() {
        let mut rates = Rates::default();
        [(30, 1_000), (0, 0), (30, 2_000)]
            .into_iter()
            .for_each(|(frames, bytes)| rates.second(frames, bytes));
        let mut numbers = Numbers::new();
        numbers.rates(&rates, true);
        let numbers = numbers.take();
        let of = |key: &str| numbers[COLUMNS.iter().position(|it| it.key() == key).unwrap()];
        assert_eq!(
            (of("rtc.fps_mean"), of("rtc.fps_min"), of("rtc.fps_max")),
            (Some(20.0), Some(0.0), Some(30.0))
        );
        assert_eq!((of("rtc.rate_mean_bps"), of("rtc.silent_seconds")), (Some(8_000.0), Some(1.0)));
    }
}
