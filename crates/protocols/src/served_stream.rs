//! A stream of weir's own origin that viewers of a protocol play over loopback, so that it can be measured what one of them costs.

use std::time::Duration;
use weir_clients::{Link, Scheme};

/// How `weir origin` serves viewers of a protocol a stream.
#[derive(Clone, Copy, Debug)]
pub struct ServedStream {
    /// Under which schemes the origin says that it listens.
    pub schemes: &'static [Scheme],
    /// What follows the address.
    pub place: &'static str,
    /// Where the stream comes from.
    pub source: StreamSource,
    /// What else the origin is started with.
    pub arguments: &'static [&'static str],
    /// How long the publisher is there before viewers find something to play.
    pub delay: Duration,
    /// Whether a viewer costs more than one that is sent a stream over TCP, as by datagrams; of TLS and of UDP links it is known.
    pub is_costly: bool,
}

/// Where a stream comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamSource {
    /// Published by RTMP, with AAC.
    Rtmp,
    /// The same with Opus, since nothing is transcoded.
    RtmpWithOpus,
    /// Published by SRT.
    Srt,
    /// Made by the origin itself.
    Origin,
}

impl ServedStream {
    /// Published by RTMP, a second before.
    pub(crate) const fn published(schemes: &'static [Scheme], place: &'static str) -> Self {
        let source = StreamSource::Rtmp;
        Self { schemes, place, source, arguments: &[], delay: Duration::from_secs(1), is_costly: false }
    }

    /// The scheme of links with TLS or without, under which the origin serves it.
    pub fn scheme(&self, is_tls: bool) -> Option<&'static str> {
        self.schemes.iter().find(|it| (it.link == Link::Tls) == is_tls).map(|it| it.name)
    }
}
