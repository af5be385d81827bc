//! A viewer of a recording that goes to another place.

use super::Viewer;
use super::link::{LinkName, Loading, TrackName};
use crate::hls::figures::{SEEK_TIME, SEEKS};
use crate::hls::playlist::{MediaPlaylist, Playlist};
use std::sync::Arc;
use std::time::Duration;
use weir_clients::ShardRecorder;
use weir_metrics::Moment;
use weir_shard::Context;

/// The least that is whole before a player shows something.
const SHORTEST_START: Duration = Duration::from_millis(1);

impl Viewer {
    /// When it goes to another place.
    pub(super) fn seek_at(&self) -> Option<Moment> {
        self.seeking.as_ref()?.due()
    }

    /// Goes to another place, if that is due: what is buffered and what is under way is of no use there.
    pub(super) fn seek(&mut self, context: &mut Context<'_, ShardRecorder>) {
        let now = context.now;
        if self.seek_at().is_none_or(|due| due > now) {
            return;
        }
        let playlists: Vec<_> = self.tracks().filter_map(|track| track.recording.clone()).collect();
        let is_loading = self.links().any(|link| matches!(link.loading, Some((_, Loading::Playlist(..)))));
        let Some(seeking) = &mut self.seeking else { return };
        // Of a variant that it changes to nothing is known before its playlist has come.
        if is_loading || playlists.len() != 1 + usize::from(self.sound.is_some()) {
            return seeking.put_off(now);
        }
        let Some(whole) = playlists.iter().filter_map(media).map(MediaPlaylist::duration).min() else {
            return;
        };
        let place = seeking.go(whole, now);
        for name in [LinkName::First, LinkName::Second] {
            if let Some(link) = self.link_mut(name)
                && link.loading.take().is_some()
            {
                link.connection.abort(context);
            }
        }
        let mut start = Duration::MAX;
        for (name, playlist) in [TrackName::Main, TrackName::Sound].into_iter().zip(&playlists) {
            if let (Some(track), Some(playlist)) = (self.track_mut(name), media(playlist)) {
                let (lead, shown) = track.schedule.seek(playlist, place);
                (track.loaded, track.lead) = (Duration::ZERO, lead);
                start = start.min(shown);
            }
        }
        self.inspector.iter_mut().for_each(|inspector| inspector.interrupt());
        // Whether it starves is counted from here: what was there sufficed.
        self.state.fed(now, context.world);
        let recorder = context.world.of(self.state.planned());
        recorder.count(SEEKS, 1);
        if let Some(playback) = &mut self.playback {
            playback.restart(start.max(SHORTEST_START), now, recorder);
        }
    }

    /// A playlist that has ended was read, of a viewer that seeks. A stream that has ended before its eyes is no recording.
    pub(super) fn keep_recording(&mut self, name: TrackName, playlist: &Arc<Playlist>) {
        if let Some(track) = self.track_mut(name).filter(|track| track.schedule.is_recording()) {
            track.recording = Some(Arc::clone(playlist));
        }
    }

    /// A segment of a recording is whole, and the player may play.
    pub(super) fn after_seek(&mut self, context: &mut Context<'_, ShardRecorder>) {
        let plays = self.playback.as_ref().is_some_and(|playback| playback.runs_dry().is_some());
        let Some(seeking) = self.seeking.as_mut().filter(|_| plays && self.main.recording.is_some()) else {
            return;
        };
        if let Some(waited) = seeking.plays(context.now) {
            self.recorder(context.world).record(SEEK_TIME, waited.as_micros() as u64);
        }
    }
}

fn media(playlist: &Arc<Playlist>) -> Option<&MediaPlaylist> {
    match &**playlist {
        Playlist::Media(playlist) => Some(playlist),
        Playlist::Multivariant(_) => None,
    }
}
