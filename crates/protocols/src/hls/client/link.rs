//! One connection of a viewer, and what is under way on it.

use crate::hls::date::Date;
use crate::hls::decryption::KeyBytes;
use crate::hls::playlist::{Key, Resource, Segment};
use crate::hls::schedule::Directives;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use weir_clients::{HttpConnection, Request};
use weir_metrics::Moment;

/// The connections of a viewer: links of HTTP/1.1, or streams of one of HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkName {
    First,
    /// The one beside it: of sound that is apart, or else of playlists with Partial Segments.
    Second,
}

/// What a viewer plays beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrackName {
    Main,
    /// Sound that has a playlist of its own.
    Sound,
}

pub(super) struct Link {
    pub(super) connection: HttpConnection,
    /// What is under way, and what it is of.
    pub(super) loading: Option<(TrackName, Loading)>,
    /// When that was asked for.
    pub(super) asked: Moment,
}

/// What is known of a segment or a part that is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Media {
    pub(super) duration: Duration,
    pub(super) is_part: bool,
    /// When its end was captured.
    pub(super) end_date: Option<Date>,
    /// It was asked for before it was there.
    pub(super) is_hinted: bool,
    /// The Media Sequence Number of its segment.
    pub(super) number: u64,
    /// It has other timestamps than what comes before it.
    pub(super) is_discontinuous: bool,
}

/// What is under way.
#[derive(Debug)]
pub(super) enum Loading {
    /// A playlist, what it was asked for with, and what of it has come.
    Playlist(Directives, Vec<u8>),
    /// A key, what of it has come, and the segment that it is for.
    Key(Arc<Key>, LoadedKey, Segment),
    /// A Media Initialization Section, and the segment behind it.
    Map(Arc<Resource>, Segment),
    /// A segment or a part, and how much of it has come.
    Segment(Media, u64),
    /// A part that no playlist has named yet, and how much of it has come.
    Hint(Resource, u64),
    /// An answer without any of them, to its end.
    Refusal,
}

/// What of a key has come. It is a secret, and is in no output.
#[derive(Default)]
pub(super) struct LoadedKey(Vec<u8>);

impl LoadedKey {
    /// No more than tells that it is too long.
    pub(super) fn take(&mut self, piece: &[u8]) {
        let room = (KeyBytes::LENGTH + 1).saturating_sub(self.0.len());
        self.0.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    pub(super) fn read(&self) -> Option<KeyBytes> {
        KeyBytes::read(&self.0)
    }
}

impl fmt::Debug for LoadedKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "LoadedKey({} bytes)", self.0.len())
    }
}

impl Link {
    pub(super) fn new(connection: HttpConnection, now: Moment) -> Self {
        Self { connection, loading: None, asked: now }
    }

    pub(super) fn get(&mut self, request: Arc<Request>, track: TrackName, loading: Loading, now: Moment) {
        self.loading = Some((track, loading));
        self.asked = now;
        self.connection.get(request);
    }

    /// Whether a playlist is under way that the server may hold until there is something new, or a part that is to come.
    pub(super) fn is_held(&self) -> bool {
        match &self.loading {
            Some((_, Loading::Playlist(directives, _))) => directives.until.is_some(),
            Some((_, Loading::Hint(..))) => true,
            // It was asked for as one, and named since.
            Some((_, Loading::Segment(media, _))) => media.is_hinted,
            _ => false,
        }
    }

    /// Whether nothing is under way that a viewer waits for.
    pub(super) fn is_idle(&self) -> bool {
        self.connection.is_idle() || self.is_hinting()
    }

    /// Whether a part is under way that no playlist has named yet.
    pub(super) fn is_hinting(&self) -> bool {
        matches!(self.loading, Some((_, Loading::Hint(..))))
    }

    /// Whether something is under way on a link that is there.
    pub(super) fn is_loading(&self) -> bool {
        !self.connection.is_idle() && self.connection.is_up()
    }
}
