//! What a viewer does with what comes.

use super::Viewer;
use super::ladder::Ladder;
use super::link::{LinkName, Loading, Media, TrackName};
use super::reading::Reading;
use super::track::Track;
use crate::hls::bandwidth::Throughput;
use crate::hls::cache;
use crate::hls::figures::{
    ANNOUNCED, AUDIO_APART, BLOCK_TIME, CACHE_AGE, CACHE_HITS, CACHE_MISSES, DECRYPTED, DELTAS, EARLY,
    EDGE_LATENCY, FRAGMENT_GAPS, HINT_TIME, HINTS_UNUSED, INSPECTED, KEYS, LATENCY, LOADED, LOST_PACKETS,
    LOW_LATENCY, MULTIVARIANT, MULTIVARIANT_TIME, NOT_FOUND, PART_TIME, PARTS, PLAYLIST_AGE, PLAYLIST_BYTES,
    PLAYLIST_TIME, REFUSED, RELOADS, SEGMENT_TIME, SEGMENTS, SKIPPED, STALE, TARGET_EXCEEDED, TIME_JUMPS,
    UNDECRYPTED, WENT_BACK,
};
use crate::hls::inspector::AnnouncedUnit;
use crate::hls::playback::Playback;
use crate::hls::playlist::{LONGEST_PLAYLIST, MediaPlaylist, Multivariant, Playlist, Resource, Segment};
use crate::hls::schedule::{Directives, Schedule};
use crate::hls::variant::VariantChoice;
use std::sync::Arc;
use weir_clients::{Answer, ClientPhase, End, ShardRecorder, refusal};
use weir_metrics::common::{FRAMES, FRAMES_ANNOUNCED, KEYFRAMES, MEDIA, UNITS};
use weir_metrics::{Failure, Moment, Recorder};
use weir_shard::Context;
use weir_web::Response;
use weir_web::http2::MOST_AT_ONCE;

impl Viewer {
    /// Takes what a read brought: by HTTP/2 it may be of all that is asked for.
    pub(super) fn take(
        &mut self,
        link: LinkName,
        bytes: &[u8],
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        if !self.link(link).is_some_and(|at| at.connection.is_http2()) {
            return self.take_answers(link, bytes, context);
        }
        for bytes in bytes.chunks(MOST_AT_ONCE) {
            if let Some(at) = self.link_mut(link) {
                at.connection.feed(bytes);
            }
            self.take_answers(LinkName::First, &[], context)?;
            self.take_answers(LinkName::Second, &[], context)?;
        }
        Ok(())
    }

    /// Takes what has come of the answers to what one connection asks for.
    fn take_answers(
        &mut self,
        link: LinkName,
        mut bytes: &[u8],
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        loop {
            let Some(at) = self.link_mut(link) else { return Ok(()) };
            let effective = at.connection.request().cloned();
            match at.connection.take(&mut bytes, context) {
                Answer::Head(response) => self.head(link, &response, context)?,
                Answer::Piece(piece) => self.piece(link, &piece, context)?,
                Answer::End => {
                    self.rebase(link, effective);
                    self.end(link, context)?;
                }
                Answer::More => return Ok(()),
                Answer::Reset(..) if at.is_hinting() => {
                    self.give_up_hint(link, context);
                }
                Answer::Failed(failure, words) | Answer::Reset(failure, words) => {
                    return Err((failure, words));
                }
            }
        }
    }

    /// The playlist that is whole came from here.
    pub(super) fn rebase(&mut self, link: LinkName, effective: Option<Arc<weir_clients::Request>>) {
        if let Some((track, Loading::Playlist(..))) = self.link(link).and_then(|it| it.loading.as_ref()) {
            let track = *track;
            if let Some(track) = self.track_mut(track) {
                track.base = effective;
            }
        }
    }

    /// A head came, of what was asked for or of a refusal.
    fn head(
        &mut self,
        link: LinkName,
        response: &Response,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        let Some(at) = self.link_mut(link) else { return Ok(()) };
        let asked = at.asked;
        let Some(failure) = refusal(response.status) else {
            let is_playlist = matches!(at.loading, Some((_, Loading::Playlist(..))));
            self.note_head(is_playlist, asked, response, context);
            return Ok(());
        };
        let Some((name, loading)) = at.loading.take() else { return Ok(()) };
        at.loading = Some((name, Loading::Refusal));
        let planned = self.state.planned();
        let missed = match &loading {
            Loading::Segment(media, _) => Some(media.announced()),
            Loading::Map(_, segment) | Loading::Key(_, _, segment) => {
                Some(Media::of(segment, false).announced())
            }
            Loading::Playlist(..) | Loading::Hint(..) | Loading::Refusal => None,
        };
        if let Some(missed) = missed {
            self.miss(name, missed, context);
        }
        let Some(track) = self.track_mut(name) else { return Ok(()) };
        let recorder = context.world.of(planned);
        match loading {
            // Without a playlist there is nothing to play; one that was there may come back.
            Loading::Playlist(..) if !track.is_media => return Err((failure, response.said())),
            Loading::Playlist(..) => track.schedule.refused(asked),
            // It was never promised.
            Loading::Hint(resource, _) => {
                track.failed_hint = Some(resource);
                recorder.count(HINTS_UNUSED, 1);
                return Ok(());
            }
            _ => recorder.count(NOT_FOUND, u64::from(failure == Failure::StreamNotFound)),
        }
        recorder.count(REFUSED, 1);
        Ok(())
    }

    /// What the head of an answer says beside what it answers.
    fn note_head(
        &mut self,
        is_playlist: bool,
        asked: Moment,
        response: &Response,
        context: &mut Context<'_, ShardRecorder>,
    ) {
        let fields = &response.fields;
        let recorder = context.world.of(self.state.planned());
        if let Some(hit) = cache::was_hit(fields) {
            recorder.count(if hit { CACHE_HITS } else { CACHE_MISSES }, 1);
        }
        if is_playlist {
            if let Some(age) = cache::age(fields) {
                recorder.record(CACHE_AGE, age.as_micros() as u64);
            }
            let wall = |moment| (self.clock.at(moment).wall_nanos / 1_000) as i64;
            let (asked, came) = (wall(asked), wall(context.now));
            self.server_clock.take(fields, asked, came);
        }
    }

    fn piece(
        &mut self,
        link: LinkName,
        piece: &[u8],
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        let now = context.now;
        let planned = self.state.planned();
        let length = piece.len() as u64;
        let Some((track, loading)) = self.link_mut(link).and_then(|it| it.loading.as_mut()) else {
            return Ok(());
        };
        let is_main = *track == TrackName::Main;
        let begins = match loading {
            Loading::Playlist(_, text) => {
                if text.len() + piece.len() > LONGEST_PLAYLIST {
                    let words = format!("the playlist is longer than weir reads ({LONGEST_PLAYLIST} bytes)");
                    return Err((Failure::MalformedInput, words));
                }
                text.extend_from_slice(piece);
                context.world.of(planned).count(PLAYLIST_BYTES, length);
                return Ok(());
            }
            Loading::Segment(media, came) if *came == 0 && is_page(piece) => {
                let (name, announced) = (*track, media.announced());
                *loading = Loading::Refusal;
                context.world.of(planned).count(REFUSED, 1);
                self.miss(name, announced, context);
                return Ok(());
            }
            Loading::Hint(resource, came) if *came == 0 && is_page(piece) => {
                let resource = resource.clone();
                let track = *track;
                *loading = Loading::Refusal;
                context.world.of(planned).count(HINTS_UNUSED, 1);
                if let Some(track) = self.track_mut(track) {
                    track.failed_hint = Some(resource);
                }
                return Ok(());
            }
            Loading::Key(_, loaded, _) => {
                loaded.take(piece);
                return Ok(());
            }
            Loading::Segment(_, came) | Loading::Hint(_, came) => {
                *came += length;
                *came == length
            }
            Loading::Map(..) => true,
            Loading::Refusal => return Ok(()),
        };
        self.state.reach(ClientPhase::Opening, now, context.world);
        self.state.fed(now, context.world);
        context.world.of(planned).count(MEDIA, length);
        if is_main {
            if let Some(scanner) = self.scanner.as_mut().filter(|_| begins) {
                scanner.reset();
            }
            self.look(piece, context);
        }
        Ok(())
    }

    /// What was asked for is whole.
    pub(super) fn end(
        &mut self,
        link: LinkName,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        let now = context.now;
        let Some(at) = self.link_mut(link) else { return Ok(()) };
        let (asked, took) = (at.asked, now.since(at.asked).as_micros() as u64);
        let Some((track, loading)) = at.loading.take() else { return Ok(()) };
        match loading {
            Loading::Playlist(directives, text) => {
                self.playlist(track, directives, &text, (asked, took), context)?;
            }
            Loading::Key(key, loaded, segment) => {
                // Without its key a segment is of no use to a player.
                let Some(bytes) = loaded.read() else {
                    self.recorder(context.world).count(REFUSED, 1);
                    self.miss(track, Media::of(&segment, false).announced(), context);
                    return Ok(());
                };
                self.recorder(context.world).count(KEYS, 1);
                if let Some(track) = self.track_mut(track) {
                    track.take_key(key, bytes);
                }
                self.load(link, track, segment, context)?;
            }
            Loading::Map(map, segment) => {
                if track == TrackName::Main {
                    self.finish_map(context);
                }
                if let Some(track) = self.track_mut(track) {
                    track.map = Some(map);
                }
                self.load(link, track, segment, context)?;
            }
            // Nothing plays what is empty.
            Loading::Segment(media, 0) => {
                self.recorder(context.world).count(REFUSED, 1);
                self.miss(track, media.announced(), context);
            }
            Loading::Segment(media, came) => {
                let time = match media {
                    Media { is_hinted: true, .. } => HINT_TIME,
                    Media { is_part: true, .. } => PART_TIME,
                    _ => SEGMENT_TIME,
                };
                self.recorder(context.world).record(time, took);
                if track == TrackName::Main {
                    self.finish_reading(context);
                }
                self.media(track, media, context);
                self.after_seek(context);
                if track == TrackName::Main && !media.is_hinted {
                    self.adapt(came, now.since(asked), context)?;
                }
            }
            Loading::Hint(resource, came) => {
                self.recorder(context.world).record(HINT_TIME, took);
                if let Some(track) = self.track_mut(track) {
                    track.hinted = Some((resource, came));
                }
            }
            Loading::Refusal => {}
        }
        Ok(())
    }

    /// What was asked for before it was there is of this segment: a witness reads what has come of it.
    fn read_kept(&mut self, name: TrackName, segment: &Segment, context: &mut Context<'_, ShardRecorder>) {
        if name != TrackName::Main {
            return;
        }
        if segment.follows_skip {
            // It was asked for before that was known, and is read as what follows.
            self.inspector.iter_mut().for_each(|inspector| inspector.forget());
        }
        match std::mem::take(&mut self.reading) {
            Reading::Kept(bytes) => {
                self.reading = self.main.reading(segment);
                self.look(&bytes, context);
            }
            reading => self.reading = reading,
        }
    }

    /// A witness looks into the next bytes of the pictures.
    fn look(&mut self, piece: &[u8], context: &mut Context<'_, ShardRecorder>) {
        let recorder = context.world.of(self.state.planned());
        let readable = self.reading.readable(piece);
        if let Some(scanner) = &mut self.scanner {
            scanner.take(readable, context.now, &self.clock, recorder);
        }
        if let Some(inspector) = &mut self.inspector {
            inspector.take(readable);
        }
    }

    /// A Media Initialization Section is whole.
    fn finish_map(&mut self, context: &mut Context<'_, ShardRecorder>) {
        let reading = std::mem::take(&mut self.reading);
        let Some(inspector) = &mut self.inspector else { return };
        if let Reading::Encrypted(mut decryption) = reading {
            match decryption.finish() {
                Some(clear) => inspector.take(clear),
                None => context.world.of(self.state.planned()).count(UNDECRYPTED, 1),
            }
        }
        inspector.finish_map();
    }

    /// What a witness has read is whole, if it was encrypted.
    fn finish_reading(&mut self, context: &mut Context<'_, ShardRecorder>) {
        let (mut decryption, is_first_range) = match std::mem::take(&mut self.reading) {
            Reading::Encrypted(decryption) => (decryption, false),
            Reading::FirstRange(decryption) => (decryption, true),
            _ => return,
        };
        let recorder = context.world.of(self.state.planned());
        if let (Some(scanner), Some(clear)) = (&mut self.scanner, decryption.finish()) {
            scanner.take(clear, context.now, &self.clock, recorder);
            self.inspector.iter_mut().for_each(|inspector| inspector.take(clear));
            recorder.count(DECRYPTED, 1);
            if is_first_range {
                self.main.ranges_are_alone = Some(true);
            }
            return;
        }
        // The segment may be encrypted as a whole (RFC 8216, section 4.3.2.4: CBC "is restarted on each segment boundary"): a range of it is
        // of no use without what comes before it, and its key is not wrong.
        if is_first_range {
            self.main.ranges_are_alone = Some(false);
            self.main.seal(recorder);
        } else {
            recorder.count(UNDECRYPTED, 1);
        }
        // What it seemed to have is noise.
        self.inspector.iter_mut().for_each(|inspector| inspector.forget());
    }

    /// A witness has looked into all of what is whole.
    fn inspect(&mut self, media: Media, context: &mut Context<'_, ShardRecorder>) {
        let Some(inspection) = self.inspector.as_mut().and_then(|it| it.finish(media.announced())) else {
            return;
        };
        let recorder = self.recorder(context.world);
        recorder.count(INSPECTED, 1);
        recorder.count(FRAMES, inspection.frames);
        recorder.count(KEYFRAMES, inspection.keyframes);
        recorder.count(FRAMES_ANNOUNCED, inspection.announced);
        recorder.count(LOST_PACKETS, inspection.lost_packets);
        recorder.count(FRAGMENT_GAPS, inspection.fragment_gaps);
        recorder.count(TIME_JUMPS, inspection.time_jumps);
    }

    /// What was announced is not there.
    pub(super) fn miss(
        &mut self,
        name: TrackName,
        announced: AnnouncedUnit,
        context: &mut Context<'_, ShardRecorder>,
    ) {
        if let Some(inspector) = self.inspector.as_mut().filter(|_| name == TrackName::Main) {
            let frames = inspector.missed(announced);
            self.recorder(context.world).count(FRAMES_ANNOUNCED, frames);
        }
        if let Some(playback) = &mut self.playback {
            playback.miss(context.now, announced.duration, context.world.of(self.state.planned()));
            // A player that begins here lacks nothing before it has shown what it has.
            if let Some(dry) = playback.runs_dry() {
                self.state.fed(dry, context.world);
            }
        }
    }

    /// A segment or a part is whole.
    fn media(&mut self, name: TrackName, media: Media, context: &mut Context<'_, ShardRecorder>) {
        let now = context.now;
        if name == TrackName::Main {
            self.inspect(media, context);
        }
        let recorder = self.recorder(context.world);
        recorder.count(if media.is_part { PARTS } else { SEGMENTS }, 1);
        recorder.count(UNITS, 1);
        recorder.count(LOADED, media.duration.as_micros() as u64);
        self.state.reach(ClientPhase::Playing, now, context.world);
        let Some(track) = self.track_mut(name) else { return };
        track.loaded += media.duration;
        let loaded = self.loaded();
        let wall = self.clock.at(now).wall_nanos as i64;
        let recorder = context.world.of(self.state.planned());
        let Some(playback) = &mut self.playback else { return };
        playback.receive(now, loaded, recorder);
        let dry = playback.runs_dry();
        // What is shown lies before the end of what is loaded by what is in the buffer.
        if let Some((end, dry)) = media.end_date.zip(dry).filter(|_| name == TrackName::Main) {
            let ahead = self.main.shown().saturating_sub(loaded) + dry.since(now);
            let shown = end.saturating_sub(ahead.as_nanos() as i64);
            recorder.record_signed(LATENCY, wall.saturating_sub(shown).div_euclid(1_000));
        }
        // A player lacks nothing before it has shown what is in its buffer.
        self.state.fed(dry.unwrap_or(now), context.world);
    }

    /// A playlist is whole.
    fn playlist(
        &mut self,
        name: TrackName,
        directives: Directives,
        text: &[u8],
        (asked, took): (Moment, u64),
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        let variables = Arc::clone(&self.variables);
        let Some(track) = self.track_mut(name) else { return Ok(()) };
        let playlist = Playlist::parse_shared(text, &variables, track.query());
        let parsed = playlist.map_err(|error| (Failure::MalformedInput, error.to_string()))?;
        match &*parsed {
            Playlist::Media(playlist) => {
                let time = if directives.until.is_some() { BLOCK_TIME } else { PLAYLIST_TIME };
                self.recorder(context.world).record(time, took);
                self.media_playlist(name, playlist, directives, asked, context);
                if self.seeking.is_some() && playlist.has_ended {
                    self.keep_recording(name, &parsed);
                }
                self.match_hint(name, context)
            }
            Playlist::Multivariant(multivariant) => {
                let now = context.now;
                let recorder = context.world.of(self.state.planned());
                recorder.record(MULTIVARIANT_TIME, took);
                self.variant(name, multivariant, now, recorder)
            }
        }
    }

    /// A Multivariant Playlist: a viewer keeps to the variant that it chooses here.
    fn variant(
        &mut self,
        name: TrackName,
        multivariant: &Multivariant,
        now: Moment,
        recorder: &mut Recorder,
    ) -> Result<(), End> {
        let chosen = self.choice.choose(&multivariant.variants);
        let (false, TrackName::Main, Some(variant)) = (self.is_variant, name, chosen) else {
            let words = "a variant is a Multivariant Playlist itself".to_owned();
            return Err((Failure::MalformedInput, words));
        };
        recorder.count(MULTIVARIANT, 1);
        let named = |uri: &String| self.main.named(&Resource { uri: uri.clone(), range: None });
        let playlist = named(&variant.uri)?;
        if let Some(sound) = variant.audio.as_ref().map(named).transpose()? {
            recorder.count(AUDIO_APART, 1);
            let schedule = Schedule::new(now, self.low_latency).starting_at(self.start_at);
            self.sound = Some(Box::new(Track::new(sound, schedule)));
            self.begin_second(now);
        }
        if self.choice == VariantChoice::Auto {
            let base = Arc::clone(self.main.base.as_ref().unwrap_or(&self.main.playlist));
            let throughput = Throughput::default();
            // It begins with the first.
            let variants = multivariant.variants.clone();
            self.ladder = Some(Box::new(Ladder { variants, base, current: 0, throughput }));
        }
        (self.main.playlist, self.main.base) = (playlist, None);
        self.variables = Arc::new(multivariant.variables.clone());
        self.is_variant = true;
        Ok(())
    }

    fn media_playlist(
        &mut self,
        name: TrackName,
        playlist: &MediaPlaylist,
        directives: Directives,
        asked: Moment,
        context: &mut Context<'_, ShardRecorder>,
    ) {
        let now = context.now;
        self.state.reach(ClientPhase::Waiting, now, context.world);
        let Some(track) = self.track_mut(name) else { return };
        let is_reload = track.start.is_some();
        track.is_media = true;
        let update = track.schedule.take(playlist, directives, asked, now);
        if let (None, Some(start)) = (track.start, update.starts_with) {
            (track.start, track.lead) = (Some(start.saturating_sub(update.lead)), update.lead);
        }
        let wall = (self.clock.at(now).wall_nanos / 1_000) as i64;
        let skipped = match &mut self.inspector {
            Some(inspector) if name == TrackName::Main => inspector.skipped(update.skipped_media),
            _ => 0,
        };
        let recorder = self.recorder(context.world);
        recorder.count(FRAMES_ANNOUNCED, skipped);
        recorder.count(ANNOUNCED, update.announced.as_micros() as u64);
        recorder.count(SKIPPED, update.skipped);
        recorder
            .count(LOW_LATENCY, u64::from(update.starts_with_parts && !is_reload && name == TrackName::Main));
        recorder.count(DELTAS, u64::from(update.is_delta));
        recorder.count(EARLY, u64::from(update.is_early));
        recorder.count(TARGET_EXCEEDED, update.exceeded);
        if let Some(edge) = update.edge.filter(|_| name == TrackName::Main) {
            recorder.record_signed(EDGE_LATENCY, wall - edge.div_euclid(1_000));
        }
        if is_reload {
            recorder.count(RELOADS, 1);
            recorder.count(STALE, u64::from(update.is_stale));
            recorder.count(WENT_BACK, u64::from(update.went_back));
            recorder.record(PLAYLIST_AGE, update.age.as_micros() as u64);
        }
        if update.starts_with_parts {
            self.begin_second(now);
        }
        let sound = self.sound.as_ref().map(|sound| sound.start);
        let start = match (self.main.start, sound) {
            (Some(main), Some(sound)) => sound.map(|sound| sound.min(main)),
            (main, _) => main,
        };
        if let Some(start) = start.filter(|_| self.playback.is_none()) {
            self.playback = Some(Playback::new(start));
        }
    }

    /// A playlist has named what was asked for as a hint, or something else in its place.
    fn match_hint(&mut self, name: TrackName, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let Some(track) = self.track_mut(name) else { return Ok(()) };
        let Some(next) = track.schedule.front().map(|it| it.resource.clone()) else { return Ok(()) };
        if let Some((resource, came)) = track.hinted.take() {
            if resource == next && came > 0 {
                let Some(segment) = track.schedule.pop() else { return Ok(()) };
                self.read_kept(name, &segment, context);
                self.finish_reading(context);
                self.media(name, Media::of(&segment, true), context);
            } else {
                self.recorder(context.world).count(HINTS_UNUSED, 1);
            }
        }
        let Some((track, Loading::Hint(resource, came))) = &mut self.first.loading else { return Ok(()) };
        let (of, came, is_next) = (*track, *came, *resource == next);
        if of != name {
            return Ok(());
        }
        if is_next {
            let Some(segment) = self.track_mut(name).and_then(|track| track.schedule.pop()) else {
                return Ok(());
            };
            self.read_kept(name, &segment, context);
            self.first.loading = Some((name, Loading::Segment(Media::of(&segment, true), came)));
        } else {
            // The rest of it, which the server may hold, is not worth the wait.
            self.first.connection.abort(context);
            self.first.loading = None;
            self.recorder(context.world).count(HINTS_UNUSED, 1);
        }
        Ok(())
    }
}

/// Whether these first bytes are those of a page for people, which some servers send with 200 in the place of what is not there.
fn is_page(bytes: &[u8]) -> bool {
    let begins = |with: &[u8]| bytes.get(..with.len()).is_some_and(|it| it.eq_ignore_ascii_case(with));
    begins(b"<!doctype") || begins(b"<html")
}
