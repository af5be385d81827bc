//! A viewer's link that is narrower than this machine's: when each packet has left it, which it drops, and whether the sender adapts to it.
//! A packet is read at once, and dated by the moment at which the link would have brought it.

use super::super::account::Numbers;
use super::super::figures::{ADAPT_TIME, ADAPTED_BYTE_RATE, LINK_DELAY, LINK_DROPPED, OVERLOADS};
use super::Receiver;
use std::time::Duration;
use weir_emulator::{EmulatedLink, Impairment, Passage};
use weir_metrics::{BitRate, Moment, Recorder};
use weir_rtc::account::{Hints, Kind, Track, TrackSettings};
use weir_rtc::estimate::Estimate;
use weir_rtc::nack::NackSettings;
use weir_rtc::reorder::{Limits, Reorder};
use weir_rtc::rtp::Packet;
use weir_setting::{BANDWIDTH as WIDTH, QUEUE};

/// What a client says that it can take as long as it does not know, where it is asked.
pub(super) const BANDWIDTH: u64 = 100_000_000;

/// A sender that has the link drop nothing for this long has adapted. One that probes for more drops something more often, or waits longer.
const SETTLED: Duration = Duration::from_secs(5);

/// A link that a viewer is given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkOptions {
    /// What it carries, in bits a second of datagrams.
    pub rate: BitRate,
    /// How long packets wait for it at the most; those that would wait longer are dropped.
    pub queue: Duration,
}

/// The link of one viewer.
pub(super) struct NarrowLink {
    options: LinkOptions,
    link: EmulatedLink,
    estimate: Estimate,
    adaptation: Adaptation,
    carried: u64,
    dropped: u64,
}

impl NarrowLink {
    pub(super) fn new(options: LinkOptions) -> Self {
        let LinkOptions { rate, queue } = options;
        let impairment = Impairment { rate: Some(rate.bps()), queue, ..Impairment::default() };
        Self {
            options,
            // It loses nothing by chance, so that any seed will do.
            link: EmulatedLink::new(impairment, 0),
            estimate: Estimate::new(BANDWIDTH),
            adaptation: Adaptation::default(),
            carried: 0,
            dropped: 0,
        }
    }

    /// A packet of this many bytes comes to the link: when it has left it; `None` if its queue has no room.
    fn cross(&mut self, now: Moment, bytes: usize, recorder: &mut Recorder) -> Option<Moment> {
        let Passage::Arrives(at) = self.link.carry(bytes, now) else {
            self.dropped += 1;
            recorder.count(LINK_DROPPED, 1);
            recorder.count(OVERLOADS, u64::from(self.adaptation.on_drop(now)));
            self.estimate.overuse();
            return None;
        };
        let delay = at.since(now);
        recorder.record(LINK_DELAY, delay.as_micros() as u64);
        self.carried += 1;
        self.estimate.arrive(now, bytes);
        if delay > self.options.queue / 2 {
            self.estimate.overuse();
        }
        Some(at)
    }

    /// What the sender is told that the link takes, once a report.
    pub(super) fn estimate(&mut self, now: Moment) -> u64 {
        self.estimate.update(now)
    }

    /// A second of a viewer that plays has ended, in which this much has crossed the link.
    pub(super) fn end_second(&mut self, end: Moment, bytes: u64, recorder: &mut Recorder) {
        if let Some(took) = self.adaptation.end_second(end, bytes) {
            recorder.record(ADAPT_TIME, took.as_micros() as u64);
        }
        self.adaptation.take_kept(|bytes| recorder.record(ADAPTED_BYTE_RATE, bytes));
    }

    /// What the end of a client reveals.
    pub(super) fn account(&self, numbers: &mut Numbers) {
        numbers.add("link.dropped", self.dropped);
        numbers.duration("link.adapt_time", self.adaptation.took);
    }

    /// What became of packets, if some were dropped: what a viewer lacks that does not begin to play may be among them.
    pub(super) fn words(&self) -> Option<String> {
        let LinkOptions { rate, queue } = self.options;
        let (dropped, all) = (self.dropped, self.carried + self.dropped);
        (dropped > 0).then(|| {
            format!(
                "no keyframe came whole over the viewer's link of {} with a queue of {} ms, which dropped {dropped} of {all} packets: \
                 ask whether the server has a lower bit rate to send, or give a wider {WIDTH} or a longer {QUEUE}",
                rate.exact(),
                queue.as_millis(),
            )
        })
    }
}

/// Whether a sender has adapted to the link: from the first packet that is dropped to the last in front of [`SETTLED`] without one.
#[derive(Clone, Debug, Default)]
struct Adaptation {
    /// The first and the last drop of those that the sender has not adapted to yet.
    drops: Option<(Moment, Moment)>,
    /// Bytes of the seconds since the last of them.
    since: Vec<u64>,
    /// How long the first adaptation took.
    took: Option<Duration>,
    /// Bytes of seconds in which the sender had adapted, not taken yet.
    kept: Vec<u64>,
}

impl Adaptation {
    /// A packet is dropped; whether the sender has to adapt from here on.
    fn on_drop(&mut self, now: Moment) -> bool {
        self.since.clear();
        match &mut self.drops {
            Some((_, last)) => {
                *last = now;
                false
            }
            drops @ None => {
                *drops = Some((now, now));
                true
            }
        }
    }

    /// A second has ended. How long the adaptation took, if it is known by now.
    fn end_second(&mut self, end: Moment, bytes: u64) -> Option<Duration> {
        let Some((first, last)) = self.drops else {
            if self.took.is_some() {
                self.kept.push(bytes);
            }
            return None;
        };
        if end.since(last) < Duration::from_secs(1) {
            // Something was dropped in it.
            return None;
        }
        self.since.push(bytes);
        if end.since(last) < SETTLED {
            return None;
        }
        self.kept.append(&mut self.since);
        self.drops = None;
        let took = last.since(first);
        self.took.get_or_insert(took);
        Some(took)
    }

    fn take_kept(&mut self, take: impl FnMut(u64)) {
        self.kept.drain(..).for_each(take);
    }
}

/// What a track of such a viewer has beside its account, which is of what the link has brought.
pub(super) struct NarrowTrack {
    /// What has come to the link: what of it is missing was lost on the way there.
    pub(super) came: Track,
    /// Until the viewer plays: what the link dropped and comes again makes its first keyframe whole, as in a browser. None where nothing is
    /// asked for again.
    order: Option<Reorder>,
}

impl NarrowTrack {
    pub(super) fn new(settings: TrackSettings) -> Self {
        let patience = settings.nack.lifetime;
        let limits = Limits { patience, ..Limits::default() };
        Self {
            // By numbers alone, whatever they carry.
            came: Track::new(TrackSettings { kind: Kind::Audio, nack: NackSettings::OFF, ..settings }),
            order: (settings.nack.tries > 0).then(|| Reorder::new(limits)),
        }
    }

    pub(super) fn order(&mut self) -> Option<&mut Reorder> {
        self.order.as_mut()
    }

    /// Whether late packets go into the pictures.
    pub(super) fn orders(&self) -> bool {
        self.order.is_some()
    }

    /// Numbers begin again: what waits is in front of none of them.
    pub(super) fn restart(&mut self) {
        if let Some(order) = &mut self.order {
            order.restart(|_| {});
        }
    }

    /// The viewer plays.
    pub(super) fn begin(&mut self) {
        self.order = None;
    }
}

impl Receiver {
    /// Whether what comes crosses a narrow link.
    #[inline]
    pub(in crate::rtc) fn has_link(&self) -> bool {
        self.link.is_some()
    }

    /// An RTP packet came to the link: when it has left it, and `None` if the link drops it.
    pub(in crate::rtc) fn cross(
        &mut self,
        now: Moment,
        bytes: &[u8],
        recorder: &mut Recorder,
    ) -> Option<Moment> {
        if let Ok(packet) = Packet::parse(bytes) {
            let payload_type = packet.payload_type();
            let track = self.tracks.iter_mut().find(|track| track.has(payload_type));
            if let Some(narrow) = track.and_then(|track| track.narrow.as_mut()) {
                narrow.came.receive(now, &packet, Hints::default());
            }
        }
        self.cross_link(now, bytes.len(), recorder)
    }

    /// The same of any packet.
    pub(in crate::rtc) fn cross_link(
        &mut self,
        now: Moment,
        bytes: usize,
        recorder: &mut Recorder,
    ) -> Option<Moment> {
        match &mut self.link {
            Some(link) => link.cross(now, bytes, recorder),
            None => Some(now),
        }
    }

    /// What the link has done to a viewer that does not begin to play.
    pub(in crate::rtc) fn link_words(&self) -> Option<String> {
        self.link.as_ref()?.words()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtc::SCHEMA;

    fn at(millis: u64) -> Moment {
        Moment::from_nanos((10_000 + millis) * 1_000_000)
    }

    fn link(rate: &str, queue: u64) -> NarrowLink {
        let options = LinkOptions { rate: rate.parse().unwrap(), queue: Duration::from_millis(queue) };
        NarrowLink::new(options)
    }

    #[test]
    fn packets_leave_one_behind_the_other_and_none_waits_for_longer_than_the_queue() {
        let (mut link, mut recorder) = (link("800kbps", 200), Recorder::new(SCHEMA));
        // A thousand bytes take 10 ms.
        let left: Vec<_> = (0..30).map(|_| link.cross(at(0), 1_000, &mut recorder)).collect();
        let expected: Vec<_> = (0..30).map(|it| (it <= 20).then_some(at(10 * (it + 1)))).collect();
        assert_eq!(left, expected);
        assert_eq!(
            link.cross(at(300), 1_000, &mut recorder),
            Some(at(310)),
            "what was not used is not saved up"
        );
        assert_eq!((recorder.counter(LINK_DROPPED), recorder.counter(OVERLOADS)), (9, 1));
        let delays = recorder.spread(LINK_DELAY);
        assert_eq!((delays.len(), delays.min() / 1_000, delays.max() / 1_000), (22, 10, 210));
        assert!(
            link.words()
                .unwrap()
                .contains("800 kbit/s with a queue of 200 ms, which dropped 9 of 31 packets")
        );
    }

    #[test]
    fn twice_the_rate_has_half_of_it_dropped_and_the_sender_told_what_came() {
        let (mut link, mut recorder) = (link("500kbps", 200), Recorder::new(SCHEMA));
        // A megabit a second for ten seconds.
        let came = (0..1_000).filter(|it| link.cross(at(it * 10), 1_250, &mut recorder).is_some()).count();
        assert!((500..=511).contains(&came), "{came}");
        assert!((424_000..=434_000).contains(&link.estimate(at(10_000))), "0.85 of what came");
        // A sender that does as it was told.
        for it in 0..100 {
            assert!(link.cross(at(10_500 + it * 25), 1_250, &mut recorder).is_some());
        }
        assert!(link.estimate(at(13_000)) > 430_000);
    }

    #[test]
    fn a_sender_has_adapted_with_the_last_drop_before_five_seconds_without_one() {
        let mut adaptation = Adaptation::default();
        let mut kept = Vec::new();
        let mut took = Vec::new();
        for second in 0..20_u64 {
            if [2, 3, 5, 14].contains(&second) {
                adaptation.on_drop(at(second * 1_000 + 500));
            }
            took.extend(
                adaptation.end_second(at((second + 1) * 1_000), second).map(|it| (second, it.as_millis())),
            );
            adaptation.take_kept(|bytes| kept.push(bytes));
        }
        // From 2.5 to 5.5 s, known 5 s later; from 14.5 s to itself.
        assert_eq!(took, [(10, 3_000), (19, 0)]);
        assert_eq!(kept, [6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 17, 18, 19]);
        assert_eq!(adaptation.took, Some(Duration::from_secs(3)));
        let mut never = Adaptation::default();
        assert_eq!((never.end_second(at(9_000), 1), never.took, never.kept), (None, None, vec![]));
    }
}
