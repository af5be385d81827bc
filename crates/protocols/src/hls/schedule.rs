//! What a viewer loads when: where it starts, which segments follow, and when the playlist is loaded again (RFC 8216, section 6.3).
//! A function of playlists and times; knows no link.

mod media_tags;
mod part_numbers;

use self::media_tags::MediaTags;
use self::part_numbers::KnownPart;
use super::date::Date;
use super::playlist::{LowLatency, MediaPlaylist, Part, PreloadHint, Segment, StartOffset};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::Duration;
use weir_metrics::Moment;

/// Segments whose URIs are kept: a minute of the usual ones. Those behind them are read off the playlist again.
pub(super) const MOST_QUEUED: usize = 16;

/// The same of a playlist that has ended, which players load once: four hours and a half of segments of 4 s.
pub(super) const MOST_QUEUED_OF_ENDED: usize = 4_096;

/// What the durations of parts and of their segment may differ by in playlists that round them.
const SHORTEST_REST: Duration = Duration::from_millis(20);

/// The shortest time from one request for the playlist to the next, whatever it brings: servers cut parts of 200 ms and more.
const SHORTEST_RELOAD: Duration = Duration::from_millis(50);

/// Segments that a playlist of the longest that is read can name: a jump beyond that is another stream.
const MOST_LISTED: u64 = 1 << 16;

/// A place in a stream: a Media Sequence Number, and a Part Index in that segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub(super) segment: u64,
    pub(super) part: u32,
}

impl Position {
    const fn of(segment: u64) -> Self {
        Self { segment, part: 0 }
    }
}

#[derive(Debug)]
pub(super) struct Schedule {
    /// Whether parts are loaded where a server has them.
    wants_parts: bool,
    /// Where a viewer of a recording begins, if not where that says.
    start_at: Option<Duration>,
    /// What is to be queued next; `None` before the start.
    next: Option<Position>,
    /// The first segment of the last playlist.
    first: u64,
    /// One past the last segment or part that the playlist has named.
    end: Position,
    /// One past the last that counts as announced: beyond the end where the variant before had more.
    announced: Position,
    /// Media time of the parts of the segment there that were announced, or that are before the start.
    parts_of_end: Duration,
    /// Media time of the parts of the segment that is next which were queued, or that are before the start.
    parts_of_next: Duration,
    /// The last part that was queued, of the segment that is next.
    last_queued: Option<KnownPart>,
    /// The last part that was announced, of the segment behind the last.
    last_announced: Option<KnownPart>,
    /// What is queued next does not follow on what was queued before.
    has_skipped: bool,
    queue: VecDeque<Segment>,
    target: Duration,
    /// Of the last playlist, if parts are wanted and it has some.
    low_latency: Option<LowLatency>,
    can_block: bool,
    skip_until: Option<Duration>,
    /// What tags said of the last segment that was named, which a Delta Update may leave out.
    last: Option<MediaTags>,
    /// What is to come, by the last playlist.
    hint: Option<PreloadHint>,
    /// The last answer to a request for what is to come did not help: the next request is for the playlist as it is.
    is_plain: bool,
    /// The next playlist is the first one of another variant.
    has_switched: bool,
    /// A playlist left out what the viewer does not know: the next is to be whole.
    has_to_be_whole: bool,
    /// When a playlist was last whole.
    loaded: Moment,
    /// When a playlist with something new was last whole.
    last_change: Moment,
    has_ended: bool,
    /// Whether it had when the viewer started.
    is_recording: bool,
    reload_at: Option<Moment>,
    /// No request for it is made before.
    no_reload_before: Moment,
    /// The last attempt to load the playlist brought nothing that can be used: the next has to wait, whatever is wanted of it.
    has_to_wait: bool,
}

/// What a playlist brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Update {
    /// What is to be buffered before playback starts, with the playlist that the viewer starts with.
    pub(super) starts_with: Option<Duration>,
    /// What of that lies before the place that the player begins to show: a picture to begin with may come long before.
    pub(super) lead: Duration,
    /// Whether it starts with parts.
    pub(super) starts_with_parts: bool,
    /// Media time that is new.
    pub(super) announced: Duration,
    pub(super) is_stale: bool,
    pub(super) went_back: bool,
    /// It was asked for what was to come, and came without it.
    pub(super) is_early: bool,
    /// It left out what the viewer knows.
    pub(super) is_delta: bool,
    /// Segments that had left it before they were queued, and those of which some parts had.
    pub(super) skipped: u64,
    /// About how long these were: no playlist may have named them, and those that it had are not kept.
    pub(super) skipped_media: Duration,
    /// New segments that are longer than the target duration.
    pub(super) exceeded: u64,
    /// How long ago it changed.
    pub(super) age: Duration,
    /// When the end of what it announces was captured, of one that has changed.
    pub(super) edge: Option<Date>,
}

/// What a request for a playlist asks for beside it: Delivery Directives (draft-pantos-hls-rfc8216bis-22, section 6.2.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Directives {
    /// `_HLS_msn` and `_HLS_part`: to be answered when the playlist has this.
    pub(super) until: Option<(u64, Option<u32>)>,
    /// `_HLS_skip`: to leave out what is known.
    pub(super) skips: bool,
}

/// How long the segments of a playlist are on average.
fn mean(playlist: &MediaPlaylist) -> Duration {
    playlist.duration().checked_div(playlist.segments.len() as u32).unwrap_or_default()
}

/// `count` times a duration.
fn times(each: Duration, count: u64) -> Duration {
    each.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX))
}

impl Schedule {
    pub(super) fn new(now: Moment, wants_parts: bool) -> Self {
        Self {
            wants_parts,
            start_at: None,
            next: None,
            first: 0,
            end: Position::default(),
            announced: Position::default(),
            parts_of_end: Duration::ZERO,
            parts_of_next: Duration::ZERO,
            last_queued: None,
            last_announced: None,
            has_skipped: false,
            queue: VecDeque::new(),
            target: Duration::from_secs(1),
            low_latency: None,
            can_block: false,
            skip_until: None,
            last: None,
            hint: None,
            is_plain: false,
            has_switched: false,
            has_to_be_whole: false,
            loaded: now,
            last_change: now,
            has_ended: false,
            is_recording: false,
            reload_at: None,
            no_reload_before: now,
            has_to_wait: false,
        }
    }

    /// The same, of one that begins at this place of a recording.
    pub(super) fn starting_at(self, start_at: Option<Duration>) -> Self {
        Self { start_at, ..self }
    }

    /// A viewer of a recording goes to a place of it: the segment that has it is next. What of that lies before the place, and behind it.
    pub(super) fn seek(&mut self, playlist: &MediaPlaylist, place: Duration) -> (Duration, Duration) {
        let (mut number, mut begin, mut lead, mut rest) =
            (playlist.first, Duration::ZERO, Duration::ZERO, Duration::ZERO);
        for (of, segment) in (playlist.first..).zip(&playlist.segments) {
            if begin > place {
                break;
            }
            (number, lead) = (of, place - begin);
            rest = segment.duration.saturating_sub(lead);
            begin += segment.duration;
        }
        self.queue.clear();
        (self.next, self.parts_of_next, self.last_queued) =
            (Some(Position::of(number)), Duration::ZERO, None);
        self.queue_from(playlist, Duration::ZERO, &mut Update::default());
        (lead, rest)
    }

    /// Takes a playlist that was asked for at one time, with these directives, and was whole at another.
    pub(super) fn take(
        &mut self,
        playlist: &MediaPlaylist,
        directives: Directives,
        asked: Moment,
        now: Moment,
    ) -> Update {
        self.target = playlist.target;
        (self.can_block, self.skip_until) = (playlist.can_block && self.wants_parts, playlist.skip_until);
        // A playlist that is loaded once a target duration would let a buffer of some parts run dry.
        self.low_latency = playlist.low_latency.filter(|_| self.can_block);
        self.no_reload_before = asked + SHORTEST_RELOAD;
        let playlist = self.carry_tags(playlist);
        let playlist = &*self.number_parts(playlist);
        let may_hint = self.low_latency.is_some() && !playlist.has_ended;
        self.hint = playlist.hint.clone().filter(|_| may_hint);
        let (elapsed, listed_until) = (now.since(self.loaded), self.end.segment);
        (self.loaded, self.is_plain, self.has_to_be_whole) = (now, false, false);
        let mut update = Update { is_delta: playlist.left_out > 0, ..Update::default() };
        let (end, parts_of_end) = self.end_of(playlist);
        // A server that was restarted counts from the beginning; a cache may hand out an old copy once.
        let has_switched = std::mem::take(&mut self.has_switched) && self.next.is_some();
        if has_switched {
            self.change_over(playlist, end, parts_of_end);
        }
        let lags = self.next.is_some() && end < self.end;
        update.went_back = lags;
        // A server that cuts longer segments than it says changes its playlist as seldom.
        let longest = playlist.segments.iter().map(|it| it.duration).max().unwrap_or_default();
        let patience = playlist.target.max(longest).mul_f64(2.5);
        let is_elsewhere = playlist.first.saturating_sub(self.end.segment) > MOST_LISTED;
        if update.went_back && asked.since(self.last_change) >= patience || is_elsewhere {
            (self.next, self.has_skipped) = (None, true);
            self.queue.clear();
        }
        let is_start = self.next.is_none() && end > Position::of(playlist.first);
        let known = if has_switched { self.announced } else { self.end };
        let has_changed =
            is_start || !update.went_back && end > known || playlist.has_ended && !self.has_ended;
        if has_changed {
            self.last_change = now;
            update.edge = self.edge(playlist).filter(|_| !playlist.has_ended);
        } else {
            // RFC 8216, section 6.2.1: a server changes its playlist within 1.5 target durations. What was asked for one interval later
            // has had its time.
            update.is_stale =
                !self.has_ended && self.next.is_some() && asked.since(self.last_change) >= patience;
            update.age = now.since(self.last_change);
        }
        if is_start {
            let (from, buffered, lead) = self.start(playlist);
            update.lead = lead;
            let is_first = |part: &&Part| (part.segment, part.index) == (from.segment, from.part);
            self.parts_of_end = playlist.parts.iter().find(is_first).map(|it| it.begin).unwrap_or_default();
            (self.next, self.end, self.announced) = (Some(from), from, from);
            (self.parts_of_next, self.last_queued, self.last_announced) = (self.parts_of_end, None, None);
            update.starts_with = Some(buffered);
            update.starts_with_parts = self.low_latency.is_some();
            self.is_recording = playlist.has_ended;
        }
        self.has_ended |= playlist.has_ended;
        if !update.went_back || is_start {
            self.first = playlist.first;
            self.announce(playlist, (end, parts_of_end), &mut update);
            let unqueued = listed_until.saturating_sub(self.next.map_or(0, |next| next.segment));
            let most_skipped = elapsed + longest + times(mean(playlist), unqueued);
            self.queue_from(playlist, most_skipped, &mut update);
        }
        self.has_to_wait = lags && !is_start || self.has_to_be_whole;
        let interval = match self.low_latency {
            _ if has_changed && self.can_block => SHORTEST_RELOAD,
            // It says that it holds requests, and has not: to ask again at once would be a flood. An old copy, and one that was held
            // for long, are no such answers.
            low_latency if directives.until.is_some() => {
                let interval = low_latency.map_or(self.target / 2, |it| it.part_target);
                update.is_early = !has_changed && !update.went_back && now.since(asked) < interval;
                self.has_to_wait = true;
                interval
            }
            // RFC 8216, section 6.3.4: a target duration from when it was last asked for, half of one if nothing had changed.
            _ if has_changed => self.target,
            _ => self.target / 2,
        };
        self.reload_at = (!self.has_ended || self.has_to_wait).then(|| asked + interval);
        update
    }

    /// A Delta Update may leave out the `EXT-X-MAP` and the `EXT-X-KEY` of what it names: "all Media Segment Tags applied to those Media
    /// Segments" that it skips go with them (draft-pantos-hls-rfc8216bis, section 4.4.5.2).
    fn carry_tags<'a>(&mut self, playlist: &'a MediaPlaylist) -> Cow<'a, MediaPlaylist> {
        let last = std::mem::take(&mut self.last);
        let mut playlist = Cow::Borrowed(playlist);
        if let Some(last) = last.filter(|last| playlist.left_out > 0 && last.is_lacking(&playlist)) {
            let playlist = playlist.to_mut();
            let media = playlist.parts.iter_mut().map(|it| &mut it.media).chain(&mut playlist.segments);
            media.for_each(|media| last.apply(media));
            playlist.hint.iter_mut().for_each(|hint| last.apply_to_hint(hint));
        }
        let media = playlist.parts.last().map(|it| &it.media).or(playlist.segments.last());
        self.last = media.map(MediaTags::of);
        playlist
    }

    /// One past the last segment, or part if parts are loaded, and the media time of the parts behind the last segment.
    fn end_of(&self, playlist: &MediaPlaylist) -> (Position, Duration) {
        let segment = playlist.first.saturating_add(playlist.segments.len() as u64);
        let last = playlist.parts.last().filter(|it| self.low_latency.is_some() && it.segment == segment);
        let (part, media) = last.map_or((0, Duration::ZERO), |it| (it.index.saturating_add(1), it.end()));
        (Position { segment, part }, media)
    }

    /// When the end of what a playlist announces was captured.
    fn edge(&self, playlist: &MediaPlaylist) -> Option<Date> {
        let part = playlist.parts.last().filter(|_| self.low_latency.is_some());
        let of_part = part.and_then(|it| it.media.end_date());
        playlist.segments.last().and_then(Segment::end_date).max(of_part)
    }

    /// Counts what is new.
    fn announce(
        &mut self,
        playlist: &MediaPlaylist,
        (end, parts_of_end): (Position, Duration),
        update: &mut Update,
    ) {
        let target = playlist.target.as_secs_f64();
        let known = self.announced;
        for (number, segment) in (playlist.first..).zip(&playlist.segments) {
            if number >= known.segment {
                let before = if number == known.segment { self.parts_of_end } else { Duration::ZERO };
                update.announced += segment.duration.saturating_sub(before);
                update.exceeded += u64::from(segment.duration.as_secs_f64().round() > target);
            }
        }
        self.end = self.end.max(end);
        if end > known {
            let before = if end.segment == known.segment { self.parts_of_end } else { Duration::ZERO };
            update.announced += parts_of_end.saturating_sub(before);
            (self.announced, self.parts_of_end) = (end, parts_of_end);
            self.last_announced = playlist.parts.last().filter(|_| end.part > 0).map(KnownPart::of);
        }
    }

    /// The first playlist of another variant: it may be behind the one before, and is no older for that. RFC 8216, section 4.3.3.2: "A
    /// client MUST NOT assume that segments with the same Media Sequence Number in different Media Playlists contain matching content". That
    /// is seen where the two have none in common: then what is next is as far from the end.
    fn change_over(&mut self, playlist: &MediaPlaylist, end: Position, parts_of_end: Duration) {
        if let Some(next) = &mut self.next
            && (playlist.first > self.end.segment || end.segment < self.first)
        {
            let left = self.end.segment.saturating_sub(next.segment);
            *next = Position::of(end.segment.saturating_sub(left).max(playlist.first));
            self.parts_of_next = Duration::ZERO;
            (self.announced, self.parts_of_end) = (end, parts_of_end);
        }
        self.end = Position::of(playlist.first);
    }

    /// How many segments are kept.
    fn most_queued(&self) -> usize {
        if self.has_ended { MOST_QUEUED_OF_ENDED } else { MOST_QUEUED }
    }

    /// `most_skipped`: what the last playlist had that was not queued, and what can have been made since.
    fn queue_from(&mut self, playlist: &MediaPlaylist, most_skipped: Duration, update: &mut Update) {
        let Some(mut next) = self.next else { return };
        if playlist.left_out > 0 && (next.segment < playlist.first || playlist.lacks_offset) {
            self.has_to_be_whole = true;
            return;
        }
        if next.segment < playlist.first {
            update.skipped = playlist.first - next.segment;
            let whole = times(mean(playlist), update.skipped).saturating_sub(self.parts_of_next);
            // A server that was restarted may go on with other numbers, those of its clock for example: nothing was there between them.
            update.skipped_media = if whole <= most_skipped { whole } else { Duration::ZERO };
            (next, self.has_skipped) = (Position::of(playlist.first), true);
            (self.parts_of_next, self.last_queued) = (Duration::ZERO, None);
        }
        let mut parts = playlist.parts.iter().filter(|_| self.low_latency.is_some()).peekable();
        let (count, most) = (playlist.segments.len(), self.most_queued());
        let segments = playlist.segments.iter().map(Some).chain([None]);
        for (number, segment) in (playlist.first..).zip(segments).take(count + 1) {
            if number != next.segment {
                continue;
            }
            if let Some(segment) = segment.filter(|_| next.part == 0) {
                if self.queue.len() >= most {
                    break;
                }
                let follows_skip = std::mem::take(&mut self.has_skipped);
                self.queue.push_back(Segment { follows_skip, ..segment.clone() });
                next = Position::of(number + 1);
                continue;
            }
            let (mut is_listed, mut is_cut) = (false, false);
            while let Some(part) = parts.next_if(|it| it.segment <= number) {
                is_listed |= part.segment == number;
                let is_next = part.segment == next.segment && part.index >= next.part;
                if !is_next || self.queue.len() >= most {
                    continue;
                }
                if part.index > next.part {
                    is_cut = true;
                    update.skipped_media += part.begin.saturating_sub(self.parts_of_next);
                }
                let follows_skip = std::mem::take(&mut self.has_skipped) || part.index > next.part;
                self.queue.push_back(Segment { follows_skip, ..part.media.clone() });
                next.part = part.index.saturating_add(1);
                (self.parts_of_next, self.last_queued) = (part.end(), Some(KnownPart::of(part)));
            }
            if let Some(segment) = segment.filter(|_| self.queue.len() < most) {
                // Parts leave a playlist before their segments do: what was left of this one cannot be loaded alone.
                let left = segment.duration.saturating_sub(self.parts_of_next);
                if !is_listed && left >= SHORTEST_REST {
                    is_cut = true;
                    update.skipped_media += left;
                    self.has_skipped = true;
                }
                (next, self.parts_of_next, self.last_queued) =
                    (Position::of(number + 1), Duration::ZERO, None);
            }
            update.skipped += u64::from(is_cut);
        }
        self.next = Some(next);
    }

    /// What to ask for with the next request for the playlist.
    pub(super) fn directives(&self, now: Moment) -> Directives {
        // What is there already is not asked for with what is to come: that would be held.
        let is_behind = self.next.is_none_or(|next| next < self.end) || self.has_to_be_whole;
        if is_behind || self.is_plain || self.has_ended || !self.can_block {
            return Directives::default();
        }
        // draft-pantos-hls-rfc8216bis-22, section 6.2.5.1: a client should not ask for a Delta Update unless its version of the playlist
        // is no older than half of the Skip Boundary.
        let skips = self.skip_until.is_some_and(|boundary| now.since(self.loaded) < boundary / 2);
        let part = self.low_latency.is_some().then_some(self.end.part);
        Directives { until: Some((self.end.segment, part)), skips }
    }

    /// The part to ask for before it is there, if all that the playlist names is queued or loaded.
    pub(super) fn hint(&self) -> Option<&PreloadHint> {
        let has_all = self.next.is_some_and(|next| next >= self.end) && !self.has_to_wait;
        self.hint.as_ref().filter(|_| has_all && !self.has_ended)
    }

    /// The next segment to load, which stays in the queue.
    pub(super) fn front(&self) -> Option<&Segment> {
        self.queue.front()
    }

    /// The next segment to load.
    pub(super) fn pop(&mut self) -> Option<Segment> {
        self.queue.pop_front()
    }

    /// Whether what is next can be taken from another playlist: it begins with a segment.
    pub(super) fn may_switch(&self) -> bool {
        let is_whole = self.next.is_some_and(|next| next.part == 0);
        let has_more = !self.has_ended || !self.queue.is_empty() || self.next.is_some_and(|it| it < self.end);
        is_whole && has_more && self.queue.iter().all(|it| !it.is_part)
    }

    /// The next playlist is that of another variant: what waits is read off it again.
    pub(super) fn switch(&mut self, now: Moment) {
        if let Some(next) = &mut self.next {
            next.segment = next.segment.saturating_sub(self.queue.len() as u64);
        }
        self.queue.clear();
        (self.last, self.hint, self.last_queued, self.last_announced) = (None, None, None, None);
        (self.has_switched, self.has_to_be_whole, self.has_to_wait) = (true, true, false);
        (self.last_change, self.reload_at, self.no_reload_before) = (now, Some(now), now);
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
        (self.has_to_wait, self.is_plain) = (true, true);
        self.reload_at = Some(asked + self.target / 2);
    }

    /// When to load the playlist again. A request that is held keeps its link: what is there is loaded before it, unless playlists have
    /// a link of their own.
    pub(super) fn reload_at(&self, now: Moment, has_own_link: bool) -> Option<Moment> {
        if self.can_block && !self.queue.is_empty() && !has_own_link {
            return None;
        }
        let has_more = self.next.is_some_and(|next| next < self.end);
        let at_once = self.queue.is_empty() && has_more && !self.has_to_wait;
        if at_once { Some(now.max(self.no_reload_before)) } else { self.reload_at }
    }

    /// For how long a server may hold a request for what is to come (draft-pantos-hls-rfc8216bis-22, section 6.2.5.2).
    pub(super) fn longest_hold(&self) -> Duration {
        3 * self.target
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

    /// Where a viewer begins; the media time from there on, but of a recording, and behind an `EXT-X-START`, no more than three target
    /// durations; and how much of it is not shown.
    fn start(&self, playlist: &MediaPlaylist) -> (Position, Duration, Duration) {
        // draft-pantos-hls-rfc8216bis-22, section 4.4.3.8: HOLD-BACK is at least that, and may be more.
        let least = (3 * playlist.target).max(playlist.hold_back.unwrap_or_default());
        let all: Duration = playlist.segments.iter().map(|it| it.duration).sum();
        let start_at = self.start_at.filter(|_| playlist.has_ended);
        let start = start_at.map(|offset| StartOffset { offset, from_end: false }).or(playlist.start);
        let wanted = start.map(|it| if it.from_end { it.offset } else { all.saturating_sub(it.offset) });
        if playlist.has_ended {
            let (from, media) = match wanted {
                Some(wanted) => start_with_segment(playlist, wanted.min(all), Duration::ZERO),
                None => (Position::of(playlist.first), all),
            };
            return (from, media.min(least), Duration::ZERO);
        }
        // Farther from the end than it has to be, a viewer need not load all that lies between before it plays.
        if let Some(wanted) = wanted.filter(|wanted| *wanted > least) {
            let (from, media) = start_with_segment(playlist, wanted, Duration::ZERO);
            return (from, media.min(least), Duration::ZERO);
        }
        match self.low_latency {
            Some(low_latency) => {
                let hold_back = low_latency.hold_back.max(wanted.unwrap_or_default());
                let (from, media) = start_with_parts(playlist, hold_back);
                (from, media, media.saturating_sub(hold_back))
            }
            // RFC 8216, section 6.3.3: a client starts at no segment that begins less than three target durations before the end of a
            // playlist to which more will be added.
            None => {
                let (from, media) = start_with_segment(playlist, least, Duration::ZERO);
                (from, media, Duration::ZERO)
            }
        }
    }
}

/// The last segment that begins this long before the end of the playlist, or the first, and the media time from there on; behind the
/// last segment there is `media` already.
fn start_with_segment(
    playlist: &MediaPlaylist,
    least: Duration,
    mut media: Duration,
) -> (Position, Duration) {
    for (index, segment) in playlist.segments.iter().enumerate().rev() {
        media += segment.duration;
        if media >= least {
            return (Position::of(playlist.first.saturating_add(index as u64)), media);
        }
    }
    (Position::of(playlist.first), media)
}

/// draft-pantos-hls-rfc8216bis-22, section 6.3.3: a client begins no closer to the end than PART-HOLD-BACK. The last part with a picture to
/// begin with that does not, or the segment that does not.
fn start_with_parts(playlist: &MediaPlaylist, hold_back: Duration) -> (Position, Duration) {
    let end = playlist.first.saturating_add(playlist.segments.len() as u64);
    let mut media = Duration::ZERO;
    for part in playlist.parts.iter().rev() {
        media += part.media.duration;
        if media >= hold_back && part.is_independent && (playlist.first..=end).contains(&part.segment) {
            return (Position { segment: part.segment, part: part.index }, media);
        }
    }
    let behind = playlist.parts.iter().filter(|it| it.segment == end).map(|it| it.media.duration).sum();
    start_with_segment(playlist, hold_back, behind)
}

#[cfg(test)]
mod tests;
