//! Why an answer cannot be played as a playlist.

use thiserror::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum PlaylistError {
    #[error("the answer is no playlist: it does not begin with #EXTM3U")]
    NoPlaylist,
    #[error("the answer is an HTML page: the URL leads to a page for people, or to one that asks to log in")]
    Page,
    #[error("the playlist is not text in UTF-8")]
    NotText,
    #[error("the playlist names no segment, no variant and no target duration")]
    Empty,
    #[error("the playlist has segments and no EXT-X-TARGETDURATION")]
    NoTargetDuration,
    #[error("the playlist has a segment without a duration that can be believed (EXTINF)")]
    Duration,
    #[error("the playlist's Media Sequence Numbers go beyond 64 bits")]
    Sequence,
    #[error("the playlist defines or uses a variable in a way that players refuse (EXT-X-DEFINE)")]
    Variable,
}
