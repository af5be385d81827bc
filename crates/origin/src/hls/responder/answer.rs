//! A request that waits for its answer, an answer, and how much of one is sent.

use crate::hls::answer::{Range, cut, http_date};
use crate::hls::path::Resource;
use crate::hls::playlist::Directives;
use crate::hls::settings::SegmentContainer;
use crate::policy::Patience;
use std::sync::Arc;
use std::time::Duration;
use weir_metrics::Moment;
use weir_shard::clock;
use weir_web::{Message, PRODUCT, reason};

/// Bytes a second that a reader takes at the least of what it has asked for, 64 kbit/s: the slowest sound is as fast, and who is slower would
/// keep a segment for as long as it likes.
const SLOWEST_READER: u64 = 8_000;
/// How many times the patience with a reader that takes nothing a whole answer may take beside that.
const PATIENCE_WITH_ANSWERS: u32 = 4;

/// A request that cannot be answered yet.
pub(super) struct Waiting {
    pub(super) stream: Arc<str>,
    pub(super) resource: Resource,
    pub(super) directives: Directives,
    pub(super) range: Range,
    pub(super) head_only: bool,
    pub(super) keep_alive: bool,
    /// When it is refused; it is waited for a publisher without end.
    pub(super) deadline: Option<Moment>,
    /// Before this a fault allows no answer.
    pub(super) not_before: Option<Moment>,
    /// When nothing wakes it, and it is looked again.
    pub(super) look_again: Option<Moment>,
    /// Faults have decided about it.
    pub(super) is_ruled: bool,
    /// Packets that are not to be in it.
    pub(super) lost_packets: usize,
}

impl Waiting {
    /// When it is looked at again if nothing wakes it before.
    pub(super) fn due(&self) -> Option<Moment> {
        self.not_before.or(self.look_again).or(self.deadline)
    }
}

/// What a request is answered with.
pub(super) struct Answer {
    /// As HTTP/1.1 has it.
    pub(super) head: Vec<u8>,
    /// In buffers that are shared by all; none of them is empty.
    pub(super) body: Vec<Arc<[u8]>>,
    /// The media that it has, for the counts.
    pub(super) media: Option<u64>,
    /// Whether the connection goes on behind it, if it is one of HTTP/1.1.
    pub(super) keep_alive: bool,
}

impl Answer {
    /// Something of a stream, or a part of it.
    pub(super) fn body(
        resource: &Resource,
        container: SegmentContainer,
        (head_only, keep_alive): (bool, bool),
        range: Range,
        body: Vec<Arc<[u8]>>,
    ) -> Self {
        let whole = length_of(&body);
        let is_playlist = *resource == Resource::Playlist;
        // RFC 9110, section 14.2: a server may ignore a Range; those of playlists change while they are read.
        let range = if is_playlist { Range::All } else { range };
        let (status, body, content_range) = match range {
            Range::All => (200, body, None),
            Range::Of(range) => match range.within(whole) {
                Some((first, length)) => {
                    let last = first + length - 1;
                    (206, cut(body, first, length), Some(format!("bytes {first}-{last}/{whole}")))
                }
                None => (416, Vec::new(), Some(format!("bytes */{whole}"))),
            },
        };
        let length = length_of(&body);
        let head = Message::response(status)
            .field("Server", PRODUCT)
            // RFC 9110, section 6.6.1: "An origin server with a clock [...] MUST generate a Date header field in all 2xx (Successful) [...]
            // responses". Viewers tell by it what dates in playlists are worth.
            .field("Date", http_date(clock::wall_nanos() / 1_000_000_000))
            .field("Content-Type", resource.content_type(container))
            .field("Content-Length", length)
            .maybe("Content-Range", content_range)
            // What a segment is never changes; a playlist may with each request.
            .field("Cache-Control", if is_playlist { "no-cache" } else { "max-age=3600" })
            // Players in browsers load from other origins.
            .field("Access-Control-Allow-Origin", "*")
            .keep_alive(keep_alive)
            .end_of_head();
        let is_media = !is_playlist && *resource != Resource::Key;
        let media = (is_media && !head_only && status != 416).then_some(length as u64);
        let body = if head_only { Vec::new() } else { body };
        let body = body.into_iter().filter(|piece| !piece.is_empty()).collect();
        Self { head, body, media, keep_alive }
    }

    /// Nothing of a stream.
    pub(super) fn status(answer: Message, status: u16, head_only: bool, keep_alive: bool) -> Self {
        let text = format!("{}\n", reason(status));
        let head = answer
            .field("Access-Control-Allow-Origin", "*")
            .keep_alive(keep_alive)
            .field("Content-Length", text.len())
            .end_of_head();
        let body = if head_only { Vec::new() } else { vec![text.into_bytes().into()] };
        Self { head, body, media: None, keep_alive }
    }
}

/// The head of an answer with nothing but its status.
pub(super) fn words(status: u16) -> Message {
    Message::response(status).field("Server", PRODUCT)
}

fn length_of(body: &[Arc<[u8]>]) -> usize {
    body.iter().map(|piece| piece.len()).sum()
}

/// An answer under way.
pub(super) struct Sending {
    pub(super) buffers: Vec<Arc<[u8]>>,
    /// How many of them, and bytes of the next, were taken.
    pub(super) sent: (usize, usize),
    pub(super) media: Option<u64>,
    pub(super) keep_alive: bool,
    /// Since when nothing was taken.
    pub(super) blocked: Option<Moment>,
    /// When all of it has to have been taken.
    deadline: Moment,
}

impl Sending {
    /// These buffers, from now on.
    pub(super) fn new(
        buffers: Vec<Arc<[u8]>>,
        media: Option<u64>,
        keep_alive: bool,
        patience: Patience,
        now: Moment,
    ) -> Self {
        let longest = Duration::from_millis(length_of(&buffers) as u64 * 1_000 / SLOWEST_READER);
        let deadline = now + patience.viewer * PATIENCE_WITH_ANSWERS + longest;
        Self { buffers, sent: (0, 0), media, keep_alive, blocked: None, deadline }
    }

    /// When its reader is given up.
    pub(super) fn due(&self, patience: Duration) -> Moment {
        self.blocked.map_or(self.deadline, |since| self.deadline.min(since + patience))
    }

    /// Whether all of it was taken.
    pub(super) fn is_over(&self) -> bool {
        self.sent.0 == self.buffers.len()
    }

    /// Bytes of it that were not taken yet.
    pub(super) fn left(&self) -> usize {
        length_of(self.buffers.get(self.sent.0..).unwrap_or_default()) - self.sent.1
    }

    /// This many bytes were taken.
    pub(super) fn advance(&mut self, mut taken: usize) {
        while let Some(buffer) = self.buffers.get(self.sent.0) {
            let left = buffer.len() - self.sent.1;
            if taken < left {
                self.sent.1 += taken;
                return;
            }
            taken -= left;
            self.sent = (self.sent.0 + 1, 0);
        }
    }
}
