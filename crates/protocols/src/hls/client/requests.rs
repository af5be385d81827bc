//! What a viewer asks for next, and on which of its connections.

use super::Viewer;
use super::link::{Link, LinkName, LoadedKey, Loading, Media, TrackName};
use super::reading::Reading;
use super::track::Track;
use crate::hls::cmcd::{self, ObjectType, Report};
use crate::hls::figures::{GAPS, HINTS_UNUSED, REQUESTS};
use crate::hls::inspector::UnitKind;
use crate::hls::playback::Playback;
use crate::hls::playlist::{PreloadHint, Segment};
use std::sync::Arc;
use std::time::Duration;
use weir_clients::{ClientPhase, End, Request, ShardRecorder};
use weir_metrics::{Failure, Moment};
use weir_shard::Context;

/// What one connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Duty {
    /// What it loads of, the one that lacks more first if it is both.
    tracks: &'static [TrackName],
    playlists: bool,
    segments: bool,
}

const ALL: &[TrackName] = &[TrackName::Main, TrackName::Sound];

impl Viewer {
    pub(super) fn link(&self, name: LinkName) -> Option<&Link> {
        match name {
            LinkName::First => Some(&self.first),
            LinkName::Second => self.second.as_deref(),
        }
    }

    pub(super) fn link_mut(&mut self, name: LinkName) -> Option<&mut Link> {
        match name {
            LinkName::First => Some(&mut self.first),
            LinkName::Second => self.second.as_deref_mut(),
        }
    }

    pub(super) fn links(&self) -> impl Iterator<Item = &Link> {
        [Some(&self.first), self.second.as_deref()].into_iter().flatten()
    }

    pub(super) fn track(&self, name: TrackName) -> Option<&Track> {
        match name {
            TrackName::Main => Some(&self.main),
            TrackName::Sound => self.sound.as_deref(),
        }
    }

    pub(super) fn track_mut(&mut self, name: TrackName) -> Option<&mut Track> {
        match name {
            TrackName::Main => Some(&mut self.main),
            TrackName::Sound => self.sound.as_deref_mut(),
        }
    }

    pub(super) fn tracks(&self) -> impl Iterator<Item = &Track> {
        [Some(&self.main), self.sound.as_deref()].into_iter().flatten()
    }

    /// Media time that is whole of all that is played beside each other.
    pub(super) fn loaded(&self) -> Duration {
        self.tracks().map(Track::shown).min().unwrap_or_default()
    }

    /// A second connection from here on, unless what one brings is measured, or narrow.
    pub(super) fn begin_second(&mut self, now: Moment) {
        let beside = || Box::new(Link::new(self.first.connection.beside(), now));
        if self.second.is_none() && self.throttle.is_none() {
            self.second = Some(beside());
        }
    }

    /// With sound apart, each has a connection; else playlists with Partial Segments have one, since the server holds them.
    fn duty(&self, link: LinkName) -> Duty {
        const PLAYLISTS: Duty = Duty { tracks: &[TrackName::Main], playlists: true, segments: false };
        const SEGMENTS: Duty = Duty { tracks: &[TrackName::Main], playlists: false, segments: true };
        const MAIN: Duty = Duty { tracks: &[TrackName::Main], playlists: true, segments: true };
        const SOUND: Duty = Duty { tracks: &[TrackName::Sound], playlists: true, segments: true };
        match (link, self.sound.is_some(), self.second.is_some()) {
            (LinkName::First, true, true) => MAIN,
            (LinkName::Second, true, _) => SOUND,
            (LinkName::First, false, true) => SEGMENTS,
            (LinkName::Second, false, _) => PLAYLISTS,
            (LinkName::First, _, false) => Duty { tracks: ALL, playlists: true, segments: true },
        }
    }

    /// Whether playlists of a track and its segments are loaded on two connections.
    fn has_own_link_for_playlists(&self) -> bool {
        self.sound.is_none() && self.second.is_some()
    }

    /// Asks for what is next on each connection on which nothing is under way.
    pub(super) fn ask(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        if self.state.phase() < ClientPhase::Requesting {
            return Ok(());
        }
        for link in [LinkName::First, LinkName::Second] {
            match self.link(link) {
                Some(it) if it.connection.is_idle() => self.ask_on(link, context)?,
                // What was named in its place is waited for.
                Some(it) if it.is_hinting() && self.main.schedule.has_segment() => {
                    self.first.connection.abort(context);
                    self.first.loading = None;
                    self.recorder(context.world).count(HINTS_UNUSED, 1);
                    self.ask_on(link, context)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn ask_on(&mut self, link: LinkName, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let now = context.now;
        let duty = self.duty(link);
        let has_own_link = self.has_own_link_for_playlists();
        let mut tracks = duty.tracks.to_vec();
        tracks.sort_by_key(|name| self.track(*name).map(|track| track.loaded));
        for name in tracks {
            let Some(track) = self.track_mut(name) else { continue };
            if duty.playlists && track.wants_playlist(now, has_own_link) {
                let directives = track.schedule.directives(now);
                let playlist = track.with_directives(directives)?;
                let loading = Loading::Playlist(directives, Vec::new());
                self.get(link, name, playlist, loading, context);
                return Ok(());
            }
            while duty.segments && self.may_load(name, now) {
                let Some(segment) = self.track_mut(name).and_then(|track| track.schedule.pop()) else {
                    break;
                };
                if segment.is_gap {
                    self.recorder(context.world).count(GAPS, 1);
                    self.miss(name, Media::of(&segment, false).announced(), context);
                    continue;
                }
                return self.load(link, name, segment, context);
            }
        }
        if has_own_link && link == LinkName::First {
            self.ask_for_hint(context)?;
        }
        Ok(())
    }

    /// Asks for the part that is to come, if all that is there was loaded.
    fn ask_for_hint(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let Some(hint) = self.main.hint().filter(|_| !self.main.schedule.has_segment()) else {
            return Ok(());
        };
        let PreloadHint { resource, is_encrypted, .. } = hint;
        let request = self.main.named(&resource)?;
        // Of which segment it is, and so its vector, is said when it is named.
        let reading = if is_encrypted { Reading::Kept(Vec::new()) } else { Reading::Clear };
        self.read_as(TrackName::Main, UnitKind::Part, reading);
        self.get(LinkName::First, TrackName::Main, request, Loading::Hint(resource, 0), context);
        Ok(())
    }

    /// Loads a segment, and before it what it takes to play it.
    pub(super) fn load(
        &mut self,
        link: LinkName,
        name: TrackName,
        segment: Segment,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        let planned = self.state.planned();
        if let Some(inspector) =
            self.inspector.as_mut().filter(|_| segment.follows_skip && name == TrackName::Main)
        {
            // That its times and its counters go on elsewhere is the viewer's doing.
            inspector.interrupt();
        }
        let Some(track) = self.track_mut(name) else { return Ok(()) };
        if segment.is_sealed {
            track.seal(context.world.of(planned));
        }
        let map = segment.map.clone().filter(|map| track.map.as_ref() != Some(map));
        let (request, loading) = if let Some(key) = track.lacking_key(&segment, map.as_ref()) {
            let resource = crate::hls::playlist::Resource { uri: key.uri.clone(), range: None };
            (track.named(&resource)?, Loading::Key(key, LoadedKey::default(), segment))
        } else if let Some(map) = map {
            let (request, reading) = (track.named(&map)?, track.map_reading(&segment));
            self.read_as(name, UnitKind::Map, reading);
            (request, Loading::Map(map, segment))
        } else {
            let (request, reading) = (track.named(&segment.resource)?, track.reading(&segment));
            let kind = if segment.is_part { UnitKind::Part } else { UnitKind::Segment };
            self.read_as(name, kind, reading);
            (request, Loading::Segment(Media::of(&segment, false), 0))
        };
        self.get(link, name, request, loading, context);
        Ok(())
    }

    /// What is asked for next is read by a witness in this way.
    fn read_as(&mut self, name: TrackName, kind: UnitKind, reading: Reading) {
        if name == TrackName::Main
            && let Some(inspector) = &mut self.inspector
        {
            self.reading = reading;
            inspector.begin(kind);
        }
    }

    fn get(
        &mut self,
        link: LinkName,
        track: TrackName,
        request: Arc<Request>,
        loading: Loading,
        context: &mut Context<'_, ShardRecorder>,
    ) {
        self.recorder(context.world).count(REQUESTS, 1);
        let request = match &self.cmcd {
            Some(cmcd) => {
                let fields = cmcd.fields(&self.report(track, &loading, context.now));
                Arc::new(request.with_fields(cmcd::PREFIX, fields))
            }
            None => request,
        };
        if let Some(at) = self.link_mut(link) {
            at.get(request, track, loading, context.now);
        }
    }

    /// What there is to say of a request and of the player.
    fn report(&self, track: TrackName, loading: &Loading, now: Moment) -> Report {
        let media = match track {
            TrackName::Sound => ObjectType::Audio,
            TrackName::Main if self.sound.is_some() => ObjectType::Video,
            TrackName::Main => ObjectType::Muxed,
        };
        let (object, duration) = match loading {
            Loading::Playlist(..) => (ObjectType::Manifest, None),
            Loading::Key(..) => (ObjectType::Key, None),
            Loading::Map(..) => (ObjectType::Initialization, None),
            Loading::Segment(of, _) => (media, Some(of.duration)),
            Loading::Hint(..) | Loading::Refusal => (media, None),
        };
        let ladder = self.ladder.as_ref().filter(|_| track == TrackName::Main && duration.is_some());
        let bandwidth = ladder.and_then(|it| Some(it.variants.get(it.current)?.bandwidth));
        let dry = self.playback.as_ref().and_then(Playback::runs_dry);
        Report {
            object,
            duration,
            bandwidth,
            buffer: dry.map(|dry| dry.since(now) + self.ahead(track)),
            is_stalled: self.playback.as_ref().is_some_and(Playback::is_stalled),
            is_live: !self.main.schedule.is_recording(),
        }
    }

    /// Whether there is room for another segment.
    fn may_load(&self, name: TrackName, now: Moment) -> bool {
        match self.playback.as_ref().and_then(Playback::runs_dry) {
            Some(_) => self.room_at(name).is_none_or(|at| at <= now),
            // Before it plays, one may not run far ahead of what it is played with.
            None => self.ahead(name) < self.most_ahead(name),
        }
    }

    fn most_ahead(&self, name: TrackName) -> Duration {
        self.track(name).map(|track| track.schedule.most_ahead()).unwrap_or_default()
    }

    /// What is whole of it beyond what is whole of all.
    fn ahead(&self, name: TrackName) -> Duration {
        self.track(name).map(Track::shown).unwrap_or_default().saturating_sub(self.loaded())
    }

    /// When there is room for another segment, if the player plays.
    pub(super) fn room_at(&self, name: TrackName) -> Option<Moment> {
        let dry = self.playback.as_ref()?.runs_dry()? + self.ahead(name);
        Some(dry - self.most_ahead(name).min(dry.since(Moment::from_nanos(0))))
    }

    /// When something is to be asked for that is not now.
    pub(super) fn ask_at(&self, now: Moment) -> Option<Moment> {
        let has_own_link = self.has_own_link_for_playlists();
        let of_link = |name: LinkName| {
            let is_free = self.link(name).is_some_and(|link| link.connection.is_idle());
            let duty = self.duty(name);
            let tracks = duty.tracks.iter().filter(move |_| is_free);
            tracks
                .filter_map(|name| {
                    let track = self.track(*name)?;
                    let reload = track.schedule.reload_at(now, has_own_link).filter(|_| duty.playlists);
                    let has_segment = duty.segments && track.schedule.has_segment();
                    let room = self.room_at(*name).filter(|_| has_segment);
                    [reload, room].into_iter().flatten().min()
                })
                .min()
        };
        if self.state.phase() < ClientPhase::Requesting {
            return None;
        }
        [LinkName::First, LinkName::Second].into_iter().filter_map(of_link).min()
    }

    /// Until when an answer that is under way may go without its first byte.
    pub(super) fn answer_due(&self, name: LinkName) -> Option<Moment> {
        let link = self.link(name)?;
        let waits = self.state.phase() == ClientPhase::Playing
            && !link.connection.is_idle()
            && !link.connection.is_answered()
            // The server does not know of it yet.
            && !link.connection.waits_for_stream();
        let (track, _) = link.loading.as_ref()?;
        // A server that holds a request answers when there is something new, or says after three target durations that there is not.
        let longest = self.track(*track).map(|track| track.schedule.longest_hold()).unwrap_or_default();
        let hold = if link.is_held() { longest } else { Duration::ZERO };
        waits.then(|| link.asked + self.timeouts.request + hold)
    }

    /// An answer has not come in time.
    pub(super) fn overdue_answer(
        &mut self,
        name: LinkName,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        if self.answer_due(name).is_none_or(|at| at > context.now) {
            return Ok(());
        }
        if self.give_up_hint(name, context) {
            return Ok(());
        }
        Err((Failure::RequestTimeout, "the server did not answer the request in time".to_owned()))
    }

    /// What was asked for as a hint does not come: it was never promised. Whether there was one on this link.
    pub(super) fn give_up_hint(&mut self, name: LinkName, context: &mut Context<'_, ShardRecorder>) -> bool {
        let Some(link) = self.link_mut(name) else { return false };
        let Some((track, Loading::Hint(resource, _))) = &link.loading else { return false };
        let (track, resource) = (*track, resource.clone());
        link.connection.abort(context);
        link.loading = None;
        if let Some(track) = self.track_mut(track) {
            track.failed_hint = Some(resource);
        }
        self.recorder(context.world).count(HINTS_UNUSED, 1);
        true
    }
}
