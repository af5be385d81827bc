//! What a viewer loads when: where it starts, which segments follow, and when the playlist is loaded again (RFC 8216, section 6.3).
//! A function of playlists and times; knows no link.

use super::playlist::{MediaPlaylist, Segment};
use std::collections::VecDeque;
use std::time::Duration;
use weir_metrics::Moment;

/// Segments whose URIs are kept: a minute of the usual ones. Those behind them are read off the playlist again.
pub(super) const MOST_QUEUED: usize = 16;

#[derive(Debug)]
pub(super) struct Schedule {
    /// The Media Sequence Number of the next segment to be queued; `None` before the start.
    next: Option<u64>,
    /// One past that of the last segment that was announced.
    end: u64,
    queue: VecDeque<Segment>,
    target: Duration,
    /// When a playlist with something new was last whole.
    last_change: Moment,
    has_ended: bool,
    /// Whether it had when the viewer started.
    is_recording: bool,
    reload_at: Option<Moment>,
    /// The last attempt to load the playlist brought nothing that can be used: the next has to wait, whatever is wanted of it.
    has_to_wait: bool,
}

/// What a playlist brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Update {
    /// What is to be buffered before playback starts, with the playlist that the viewer starts with.
    pub(super) starts_with: Option<Duration>,
    /// Media time that is new.
    pub(super) announced: Duration,
    pub(super) is_stale: bool,
    pub(super) went_back: bool,
    /// Segments that had left it before they were queued.
    pub(super) skipped: u64,
    /// New segments that are longer than the target duration.
    pub(super) exceeded: u64,
    /// How long ago it changed.
    pub(super) age: Duration,
}

impl Schedule {
    pub(super) fn new(now: Moment) -> Self {
        Self {
            next: None,
            end: 0,
            queue: VecDeque::new(),
            target: Duration::from_secs(1),
            last_change: now,
            has_ended: false,
            is_recording: false,
            reload_at: None,
            has_to_wait: false,
        }
    }

    /// Takes a playlist that was asked for at one time and whole at another.
    pub(super) fn take(&mut self, playlist: MediaPlaylist, asked: Moment, now: Moment) -> Update {
        self.target = playlist.target;
        let mut update = Update::default();
        let end = playlist.first.saturating_add(playlist.segments.len() as u64);
        // A server that was restarted counts from the beginning; a cache may hand out an old copy once.
        update.went_back = self.next.is_some() && end < self.end;
        let patience = playlist.target.mul_f64(2.5);
        if update.went_back && asked.since(self.last_change) >= patience {
            self.next = None;
            self.queue.clear();
        }
        let is_start = self.next.is_none() && !playlist.segments.is_empty();
        let has_changed =
            is_start || !update.went_back && end > self.end || playlist.has_ended && !self.has_ended;
        if has_changed {
            self.last_change = now;
        } else {
            // RFC 8216, section 6.2.1: a server changes its playlist within 1.5 target durations. What was asked for one interval later
            // has had its time.
            update.is_stale =
                !self.has_ended && self.next.is_some() && asked.since(self.last_change) >= patience;
            update.age = now.since(self.last_change);
        }
        if is_start {
            let (index, buffered) = start(&playlist);
            let from = playlist.first.saturating_add(index as u64);
            (self.next, self.end, update.starts_with) = (Some(from), from, Some(buffered));
            self.is_recording = playlist.has_ended;
        }
        self.has_ended |= playlist.has_ended;
        if !update.went_back || is_start {
            self.queue_from(playlist, end, &mut update);
        }
        // RFC 8216, section 6.3.4: a target duration from when it was last asked for, half of one if nothing had changed.
        let interval = if has_changed { self.target } else { self.target / 2 };
        self.has_to_wait = update.went_back && !is_start;
        self.reload_at = (!self.has_ended || self.has_to_wait).then(|| asked + interval);
        update
    }

    fn queue_from(&mut self, playlist: MediaPlaylist, end: u64, update: &mut Update) {
        let Some(mut next) = self.next else { return };
        update.skipped = playlist.first.saturating_sub(next);
        next = next.max(playlist.first);
        let target = playlist.target;
        for (number, segment) in (playlist.first..).zip(playlist.segments) {
            if number >= self.end {
                update.announced += segment.duration;
                update.exceeded += u64::from(segment.duration.as_secs_f64().round() > target.as_secs_f64());
            }
            if number == next && self.queue.len() < MOST_QUEUED {
                self.queue.push_back(segment);
                next = next.saturating_add(1);
            }
        }
        (self.next, self.end) = (Some(next), self.end.max(end));
    }

    /// The next segment to load.
    pub(super) fn pop(&mut self) -> Option<Segment> {
        self.queue.pop_front()
    }

    /// Segments that wait to be loaded.
    #[cfg(any(test, feature = "fuzz"))]
    pub(super) fn queued(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn has_segment(&self) -> bool {
        !self.queue.is_empty()
    }

    /// The playlist could not be loaded; what was asked for at this time.
    pub(super) fn refused(&mut self, asked: Moment) {
        self.has_to_wait = true;
        self.reload_at = Some(asked + self.target / 2);
    }

    /// When to load the playlist again.
    pub(super) fn reload_at(&self, now: Moment) -> Option<Moment> {
        let has_more = self.next.is_some_and(|next| next < self.end);
        if self.queue.is_empty() && has_more && !self.has_to_wait { Some(now) } else { self.reload_at }
    }

    /// The longest that is buffered ahead: no less than what it starts with.
    pub(super) fn most_ahead(&self) -> Duration {
        Duration::from_secs(30).max(4 * self.target)
    }

    /// Whether all that there is was queued and taken, and no more will come.
    pub(super) fn is_over(&self) -> bool {
        self.has_ended && self.queue.is_empty() && self.next.is_none_or(|next| next >= self.end)
    }

    pub(super) fn is_recording(&self) -> bool {
        self.is_recording
    }
}

/// RFC 8216, section 6.3.3: a client starts at no segment that begins less than three target durations before the end of a playlist to
/// which more will be added. The position of the last one that does not, or the first; and the media time from there on, but of a recording no more
/// than three target durations.
fn start(playlist: &MediaPlaylist) -> (usize, Duration) {
    let (least, mut media) = (3 * playlist.target, Duration::ZERO);
    if playlist.has_ended {
        let all: Duration = playlist.segments.iter().map(|it| it.duration).sum();
        return (0, all.min(least));
    }
    for (index, segment) in playlist.segments.iter().enumerate().rev() {
        media += segment.duration;
        if media >= least || index == 0 {
            return (index, media);
        }
    }
    (0, media)
}

#[cfg(test)]
mod tests {
    use super::super::playlist::Resource;
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: f64) -> Moment {
        Moment::from_nanos((seconds * 1e9) as u64 + 1_000_000_000_000)
    }

    /// Segments of two seconds each with these numbers.
    fn playlist(numbers: std::ops::Range<u64>) -> MediaPlaylist {
        let segment = |number: u64| Segment {
            resource: Resource { uri: format!("{number}.ts"), range: None },
            duration: Duration::from_secs(2),
            map: None,
            is_gap: false,
        };
        MediaPlaylist {
            target: Duration::from_secs(2),
            first: numbers.start,
            segments: numbers.map(segment).collect(),
            has_ended: false,
        }
    }

    fn queued(schedule: &mut Schedule) -> Vec<String> {
        std::iter::from_fn(|| schedule.pop()).map(|it| it.resource.uri).collect()
    }

    proptest! {
        #[test]
        fn playlists_in_any_order_keep_little_and_are_not_asked_for_at_once(playlists in prop::collection::vec(
            (prop_oneof![0..20u64, Just(u64::MAX), Just(u64::MAX - 2)], 0..40usize, any::<bool>()), 0..12,
        )) {
            let text = |(first, count, has_ended): &(u64, usize, bool)| {
                let end = if *has_ended { "#EXT-X-ENDLIST" } else { "" };
                let segments = "#EXTINF:2,\na.ts\n".repeat(*count);
                format!("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:{first}\n{segments}{end}")
            };
            crate::harness::playlists(playlists.iter().map(text).collect::<Vec<_>>().join("\0").as_bytes());
        }
    }

    #[test]
    fn a_viewer_starts_three_target_durations_from_the_end_and_takes_what_follows_once() {
        let mut schedule = Schedule::new(at(0.0));
        let update = schedule.take(playlist(10..16), at(0.0), at(0.1));
        assert_eq!(update.starts_with, Some(Duration::from_secs(6)));
        assert_eq!(update.announced, Duration::from_secs(6));
        assert_eq!(queued(&mut schedule), ["13.ts", "14.ts", "15.ts"]);
        let update = schedule.take(playlist(11..17), at(2.0), at(2.1));
        assert_eq!((update.announced, update.starts_with), (Duration::from_secs(2), None));
        assert_eq!(queued(&mut schedule), ["16.ts"]);
    }

    #[test]
    fn a_playlist_is_loaded_again_after_a_target_duration_or_half_of_one_if_it_has_not_changed() {
        let mut schedule = Schedule::new(at(0.0));
        schedule.take(playlist(0..6), at(0.0), at(0.1));
        queued(&mut schedule);
        assert_eq!(schedule.reload_at(at(0.1)), Some(at(2.0)));
        schedule.take(playlist(0..6), at(2.0), at(2.1));
        assert_eq!(schedule.reload_at(at(2.1)), Some(at(3.0)));
    }

    #[test]
    fn a_playlist_is_stale_that_was_asked_for_two_and_a_half_target_durations_after_its_last_change() {
        let mut schedule = Schedule::new(at(0.0));
        schedule.take(playlist(0..6), at(0.0), at(0.1));
        for (asked, stale) in [(2.0, false), (3.0, false), (5.09, false), (5.1, true), (6.1, true)] {
            assert_eq!(schedule.take(playlist(0..6), at(asked), at(asked + 5.0)).is_stale, stale, "{asked}");
        }
        // It goes on, and is not stale any more; nor is one that has ended.
        assert!(!schedule.take(playlist(0..7), at(7.0), at(7.1)).is_stale);
        let ended = || MediaPlaylist { has_ended: true, ..playlist(0..7) };
        schedule.take(ended(), at(8.0), at(8.1));
        assert!(!schedule.take(ended(), at(100.0), at(100.1)).is_stale);
        queued(&mut schedule);
        assert!(schedule.is_over() && !schedule.is_recording());
        assert_eq!(schedule.reload_at(at(101.0)), None);
    }

    #[test]
    fn segments_that_left_the_playlist_are_skipped_and_counted() {
        let mut schedule = Schedule::new(at(0.0));
        schedule.take(playlist(0..3), at(0.0), at(0.0));
        queued(&mut schedule);
        let update = schedule.take(playlist(5..8), at(9.0), at(9.0));
        assert_eq!((update.skipped, update.announced), (2, Duration::from_secs(6)));
        assert_eq!(queued(&mut schedule), ["5.ts", "6.ts", "7.ts"]);
    }

    #[test]
    fn an_old_copy_changes_nothing_and_a_server_that_counts_from_the_beginning_is_joined_again() {
        let mut schedule = Schedule::new(at(0.0));
        schedule.take(playlist(10..16), at(0.0), at(0.0));
        queued(&mut schedule);
        let update = schedule.take(playlist(9..15), at(2.0), at(2.0));
        assert!(update.went_back && !update.is_stale && queued(&mut schedule).is_empty());
        schedule.take(playlist(0..4), at(4.0), at(4.0));
        assert!(queued(&mut schedule).is_empty());
        let update = schedule.take(playlist(0..5), at(5.0), at(5.0));
        assert!(update.went_back && !update.is_stale);
        assert_eq!(queued(&mut schedule), ["2.ts", "3.ts", "4.ts"]);
    }

    #[test]
    fn a_recording_is_read_from_its_beginning_a_few_segments_at_a_time() {
        let mut schedule = Schedule::new(at(0.0));
        let recording = || MediaPlaylist { has_ended: true, ..playlist(0..40) };
        let update = schedule.take(recording(), at(0.0), at(0.0));
        assert_eq!((update.starts_with, update.announced.as_secs()), (Some(Duration::from_secs(6)), 80));
        let mut all = queued(&mut schedule);
        while schedule.reload_at(at(1.0)).is_some() {
            assert_eq!(schedule.take(recording(), at(1.0), at(1.0)).announced, Duration::ZERO);
            all.extend(queued(&mut schedule));
        }
        assert_eq!(all.len(), 40);
        assert!(schedule.is_over() && schedule.is_recording());
    }

    #[test]
    fn a_recording_whose_playlist_is_refused_or_shrinks_is_asked_for_at_the_usual_pace() {
        let recording = |end| MediaPlaylist { has_ended: true, ..playlist(0..end) };
        let mut schedule = Schedule::new(at(0.0));
        schedule.take(recording(40), at(0.0), at(0.0));
        queued(&mut schedule);
        assert_eq!(schedule.reload_at(at(30.0)), Some(at(30.0)));
        schedule.refused(at(30.0));
        assert_eq!(schedule.reload_at(at(30.1)), Some(at(31.0)));
        assert!(schedule.take(recording(8), at(31.0), at(31.1)).starts_with.is_some());
        let mut schedule = Schedule::new(at(0.0));
        schedule.take(recording(40), at(0.0), at(0.0));
        queued(&mut schedule);
        assert!(schedule.take(recording(8), at(1.0), at(1.1)).went_back);
        assert_eq!(schedule.reload_at(at(1.1)), Some(at(2.0)));
        assert!(!schedule.is_over());
    }
}
