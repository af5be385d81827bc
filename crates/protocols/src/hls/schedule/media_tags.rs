//! What tags say of a segment that stand before it, and that a Delta Update may leave out.

use crate::hls::playlist::{Key, MediaPlaylist, PreloadHint, Resource, Segment};
use std::sync::Arc;

/// The tags of the last segment or part that a playlist named.
#[derive(Clone, Debug)]
pub(super) struct MediaTags {
    map: Option<Arc<Resource>>,
    map_key: Option<Arc<Key>>,
    key: Option<Arc<Key>>,
    is_sealed: bool,
}

impl MediaTags {
    pub(super) fn of(segment: &Segment) -> Self {
        Self {
            map: segment.map.clone(),
            map_key: segment.map_key.clone(),
            key: segment.key.clone(),
            is_sealed: segment.is_sealed,
        }
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.key.is_some() || self.is_sealed
    }

    /// Whether a playlist names something without one of these.
    pub(super) fn is_lacking(&self, playlist: &MediaPlaylist) -> bool {
        let lacks = |media: &Segment| {
            self.map.is_some() && media.map.is_none() || self.is_encrypted() && !media.names_key
        };
        playlist.parts.iter().map(|it| &it.media).chain(&playlist.segments).any(lacks)
            || playlist.hint.as_ref().is_some_and(|hint| {
                self.map.is_some() && hint.map.is_none() || self.is_encrypted() && !hint.names_key
            })
    }

    /// Says of a segment what its playlist does not.
    pub(super) fn apply(&self, media: &mut Segment) {
        if media.map.is_none() {
            media.map.clone_from(&self.map);
            media.map_key.clone_from(&self.map_key);
        }
        if !media.names_key {
            media.key.clone_from(&self.key);
            (media.is_sealed, media.names_key) = (self.is_sealed, true);
        }
    }

    /// Says of what is to come next what its playlist does not.
    pub(super) fn apply_to_hint(&self, hint: &mut PreloadHint) {
        if hint.map.is_none() {
            hint.map.clone_from(&self.map);
        }
        if !hint.names_key {
            hint.is_encrypted = self.is_encrypted();
        }
    }
}
