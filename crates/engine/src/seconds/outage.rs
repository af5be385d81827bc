//! Spans of a run in which viewers were without media, or without one of a stream's tracks: a function of what each second
//! brought.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_metrics::common::{
    AWAY, LAST_PICTURE, LAST_SOUND, MEDIA, PLAYING, STALLED, STARVING, WITHOUT_PICTURES, WITHOUT_SOUND,
};
use weir_metrics::{Gauge, Interval, Unit, several};

/// Outages that are kept of a workload: a summary of a stream that breaks every few seconds stays readable.
const MOST: usize = 100;

/// What viewers were without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutageKind {
    /// Anything at all, every viewer of the workload.
    Media,
    /// Pictures, while the stream went on.
    Pictures,
    /// Sound, while the stream went on.
    Sound,
}

/// A span in which viewers were without something that they had got before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outage {
    /// Without what.
    pub kind: OutageKind,
    /// When it came last, in seconds of the run: to the viewers that got it for the longest.
    pub from_seconds: f64,
    /// When no viewer was without it any more; none if that lasted to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_seconds: Option<f64>,
    /// The most viewers that were without it at the end of a second.
    pub viewers: u64,
    /// Viewers that were there at the end of that second.
    pub of_viewers: u64,
    /// Whether the run itself had stopped the server, or its publisher, at that time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub made_by_run: bool,
}

impl Outage {
    /// One line for people: `no picture since second 10 (20 of 20 viewers)`.
    pub fn line(&self) -> String {
        let what = match self.kind {
            OutageKind::Media => return self.blackout(),
            OutageKind::Pictures => "picture",
            OutageKind::Sound => "sound",
        };
        let from = self.from_seconds.round();
        let span = match self.until_seconds {
            None => format!("since second {from}"),
            Some(until) => format!("from second {from} to {}", until.round()),
        };
        format!("no {what} {span} ({} of {})", self.viewers, several(self.of_viewers, "viewer"))
    }

    /// `no viewer received media from 0:12 to 0:15`.
    fn blackout(&self) -> String {
        let clock = |seconds: f64| {
            let seconds = seconds.round() as u64;
            format!("{}:{:02}", seconds / 60, seconds % 60)
        };
        let span = match self.until_seconds {
            None => format!("since {}", clock(self.from_seconds)),
            Some(until) => format!("from {} to {}", clock(self.from_seconds), clock(until)),
        };
        let why =
            if self.made_by_run { ": the run itself had stopped the server or the publisher" } else { "" };
        format!("no viewer received media {span}{why}")
    }
}

/// Finds the outages of one track.
#[derive(Debug)]
pub(crate) struct TrackOutages {
    kind: OutageKind,
    /// The level of viewers without the track, and when it came last.
    gauges: [Gauge; 2],
    found: Vec<Outage>,
}

impl TrackOutages {
    /// Of pictures, and of sound.
    pub(crate) fn of_both() -> [Self; 2] {
        let of = |kind, gauges| Self { kind, gauges, found: Vec::new() };
        [
            of(OutageKind::Pictures, [WITHOUT_PICTURES, LAST_PICTURE]),
            of(OutageKind::Sound, [WITHOUT_SOUND, LAST_SOUND]),
        ]
    }

    /// Adds a second of the plan, or several that are one interval.
    pub(crate) fn add(&mut self, interval: &Interval) {
        let level = |gauge| interval.figures.gauge(gauge);
        let [viewers, last] = self.gauges.map(level);
        let of_viewers = level(PLAYING) + level(STARVING);
        let room = self.found.len() < MOST;
        match self.found.last_mut().filter(|it| it.until_seconds.is_none()) {
            Some(open) if viewers == 0 => open.until_seconds = Some(interval.key.second.into()),
            Some(open) if viewers > open.viewers => (open.viewers, open.of_viewers) = (viewers, of_viewers),
            None if viewers > 0 && room => self.found.push(Outage {
                kind: self.kind,
                from_seconds: last as f64 * Unit::Micros.scale(),
                until_seconds: None,
                viewers,
                of_viewers,
                made_by_run: false,
            }),
            _ => {}
        }
    }

    /// Those so far, in the order of time.
    pub(crate) fn found(&self) -> &[Outage] {
        &self.found
    }
}

/// The shortest silence that is an outage, in whole seconds: SRS writes once in 1.8 s at the most (`mw_latency`), between
/// which there is never more than one.
const SHORTEST: u32 = 2;
/// This many silences that begin at like distances are the rhythm in which a server writes, or a source has pictures.
const RHYTHM: usize = 3;
/// By how much those distances, and the silences, may differ, in seconds: each is known to a second.
const JITTER: f64 = 2.0;
/// The part of the distances that is alike: an outage is longer, and moves what is behind it.
const REGULAR: f64 = 0.7;

/// Finds the spans in which no viewer of a workload received media, although some were there and stood still for it.
#[derive(Debug, Default)]
pub(crate) struct Blackouts {
    /// Bytes of a second in which media came, smoothed, and those of the last second.
    usual: f64,
    last: f64,
    viewers: u64,
    /// The silence under way, how many whole seconds it has, and whether somebody stood still in it.
    open: Option<(Outage, u32, bool)>,
    found: Vec<Outage>,
    /// All silences that were long enough, whether a viewer stalled in them or not, those under way apart.
    silences: Vec<Silence>,
}

/// A time without media, in seconds of the run.
#[derive(Clone, Copy, Debug)]
struct Silence {
    from: f64,
    length: f64,
}

impl Blackouts {
    /// Adds a second of the plan, or several that are one interval.
    pub(crate) fn add(&mut self, interval: &Interval) {
        let count = |counter| interval.figures.counter(counter);
        let (begin, end, seconds) =
            (f64::from(interval.key.second), f64::from(interval.end()), interval.seconds());
        let media = count(MEDIA) as f64 / f64::from(seconds.max(1));
        // Those that look for another link wait for media as well.
        let viewers: u64 = [PLAYING, STARVING, AWAY].iter().map(|level| interval.figures.gauge(*level)).sum();
        let stalled = count(STALLED) > 0;
        // What part of a second of the usual rate this is.
        let part = |media: f64| if self.usual > 0.0 { (media / self.usual).min(1.0) } else { 1.0 };
        if media == 0.0 && viewers > 0 && self.viewers > 0 && self.usual > 0.0 {
            let from_seconds = begin - 1.0 + part(self.last);
            let (_, silent, stood) = self.open.get_or_insert((
                Outage {
                    kind: OutageKind::Media,
                    from_seconds,
                    until_seconds: None,
                    viewers,
                    of_viewers: viewers,
                    made_by_run: false,
                },
                0,
                false,
            ));
            (*silent, *stood) = (*silent + seconds, *stood || stalled);
        } else if let Some((mut outage, silent, stood)) = self.open.take() {
            // What was held up comes at once: the second has the usual rate, or more.
            outage.until_seconds = Some(if media > 0.0 { end - part(media) } else { begin });
            if silent >= SHORTEST {
                if self.silences.len() < MOST {
                    self.silences.push(Silence::of(&outage, silent));
                }
                if (stood || stalled) && self.found.len() < MOST {
                    self.found.push(outage);
                }
            }
        } else if media > 0.0 {
            self.usual = if self.usual > 0.0 { 0.75 * self.usual + 0.25 * media } else { media };
        }
        (self.last, self.viewers) = (media, viewers);
    }

    /// Those so far, in the order of time.
    pub(crate) fn found(&self) -> Vec<Outage> {
        let open = self.open.filter(|(_, silent, _)| *silent >= SHORTEST);
        let under_way = open.map(|(outage, silent, _)| Silence::of(&outage, silent));
        let stood = open.filter(|(.., stood)| *stood).map(|(outage, silent, _)| (outage, f64::from(silent)));
        let ended = self.found.iter().map(|outage| (*outage, Silence::of(outage, SHORTEST).length));
        let of_rhythm = rhythm(self.silences.iter().copied().chain(under_way));
        // A player that has just as much as comes at a time stalls for milliseconds between two of them.
        let is_longer = |(_, length): &(Outage, f64)| of_rhythm.is_none_or(|usual| *length > usual + JITTER);
        ended.chain(stood).filter(is_longer).map(|(outage, _)| outage).collect()
    }
}

impl Silence {
    /// Of an outage of at least so many whole seconds.
    fn of(outage: &Outage, whole_seconds: u32) -> Self {
        let (from, least) = (outage.from_seconds, f64::from(whole_seconds));
        Self { from, length: outage.until_seconds.map_or(least, |until| until - from) }
    }
}

/// How long silences usually are that come at like distances, if they do.
fn rhythm(silences: impl Iterator<Item = Silence>) -> Option<f64> {
    let silences: Vec<_> = silences.collect();
    let mut steps: Vec<_> = silences.windows(2).map(|pair| pair[1].from - pair[0].from).collect();
    let mut lengths: Vec<_> = silences.iter().map(|silence| silence.length).collect();
    steps.sort_by(f64::total_cmp);
    lengths.sort_by(f64::total_cmp);
    let usual = *steps.get(steps.len() / 2)?;
    let alike = steps.iter().filter(|step| (**step - usual).abs() <= JITTER / 2.0).count();
    (silences.len() >= RHYTHM && alike as f64 >= steps.len() as f64 * REGULAR)
        .then(|| lengths[lengths.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_metrics::{IntervalKey, Recorder, Schema};

    /// One second of twenty viewers.
    fn second(number: u32, media: u64, set: impl FnOnce(&mut Recorder)) -> Interval {
        let mut figures = Recorder::new(Schema::new(&[]));
        figures.count(MEDIA, media);
        figures.set(PLAYING, 20);
        set(&mut figures);
        Interval::new(IntervalKey { second: number, workload: 0, server: None }, figures)
    }

    /// What is said of seconds with this much media.
    fn said(media: &[u64]) -> Vec<String> {
        let mut blackouts = Blackouts::default();
        for (number, media) in (0..).zip(media) {
            blackouts.add(&second(number, *media, |it| it.count(STALLED, u64::from(*media == 0))));
        }
        blackouts.found().iter().map(Outage::line).collect()
    }

    #[test]
    fn a_span_without_media_for_anybody_is_one_event() {
        let steady = |from: u32, to: u32| (from..to).map(|_| 100);
        let held: Vec<u64> = steady(0, 12).chain([0, 0, 0]).chain([400]).chain(steady(0, 10)).collect();
        assert_eq!(said(&held), ["no viewer received media from 0:12 to 0:15"]);
        let lost: Vec<u64> = steady(0, 72).chain([30, 0, 0, 70]).chain(steady(0, 10)).collect();
        assert_eq!(said(&lost), ["no viewer received media from 1:12 to 1:15"]);
        let stopped: Vec<u64> = steady(0, 12).chain([0, 0, 0]).collect();
        assert_eq!(said(&stopped), ["no viewer received media since 0:12"]);
        let begins: Vec<u64> = [0, 0, 0].into_iter().chain(steady(0, 9)).collect();
        assert_eq!(said(&begins), [""; 0]);
    }

    #[test]
    fn viewers_that_have_lost_their_links_and_come_back_are_without_media_meanwhile() {
        let mut blackouts = Blackouts::default();
        for number in 0..20 {
            let is_away = (8..12).contains(&number);
            blackouts.add(&second(number, if is_away { 0 } else { 100 }, |it| {
                it.set(PLAYING, if is_away { 0 } else { 20 });
                it.set(AWAY, if is_away { 20 } else { 0 });
                it.count(STALLED, u64::from(is_away));
            }));
        }
        let [outage] = blackouts.found()[..] else { panic!() };
        assert_eq!((outage.from_seconds, outage.until_seconds, outage.viewers), (8.0, Some(12.0), 20));
    }

    #[test]
    fn the_rhythm_of_a_server_is_no_blackout() {
        let bursts = |period: u64| -> Vec<u64> {
            (0..60).map(|at| if at % period == 0 { 100 * period } else { 0 }).collect()
        };
        for period in 1..=6 {
            assert_eq!(said(&bursts(period)), [""; 0], "{period}");
        }
        // SRS: a burst in 1.8 s.
        let merged: Vec<u64> = (0..60).map(|at| if at * 10 % 18 < 10 { 180 } else { 0 }).collect();
        assert_eq!(said(&merged), [""; 0]);
        // A picture in five seconds, and players that stand still for milliseconds before two of them; then a server that is away.
        let mut slides = Blackouts::default();
        for number in 0..60 {
            let (is_away, stalls) = ((37..48).contains(&number), [5, 20, 21].contains(&number));
            let media = if number % 5 == 0 && !is_away { 500 } else { 0 };
            slides.add(&second(number, media, |it| it.count(STALLED, u64::from(stalls || is_away))));
            if number == 30 {
                assert_eq!(slides.found().len(), 0);
            }
        }
        let of_slides: Vec<_> = slides.found().iter().map(Outage::line).collect();
        assert_eq!(of_slides, ["no viewer received media from 0:36 to 0:50"]);
        let mut broken = bursts(1);
        broken[20..23].fill(0);
        broken[40..44].fill(0);
        assert_eq!(said(&broken).len(), 2);
    }

    #[test]
    fn a_track_that_has_run_out_is_told_with_the_second_and_how_many_viewers() {
        let [mut pictures, mut sound] = TrackOutages::of_both();
        for number in 0..30 {
            let of = |it: &mut Recorder| {
                it.set(WITHOUT_PICTURES, if (11..20).contains(&number) { 19 } else { 0 });
                it.set(LAST_PICTURE, if number >= 11 { 9_960_000 } else { 0 });
                it.set(WITHOUT_SOUND, u64::from(number >= 25));
                it.set(LAST_SOUND, if number >= 25 { 24_000_000 } else { 0 });
            };
            let second = second(number, 100, of);
            [&mut pictures, &mut sound].into_iter().for_each(|it| it.add(&second));
        }
        let said = |of: &TrackOutages| of.found().iter().map(Outage::line).collect::<Vec<_>>();
        assert_eq!(said(&pictures), ["no picture from second 10 to 20 (19 of 20 viewers)"]);
        assert_eq!(said(&sound), ["no sound since second 24 (1 of 20 viewers)"]);
    }
}
