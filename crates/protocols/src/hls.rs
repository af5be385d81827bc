//! HTTP Live Streaming (RFC 8216; draft-pantos-hls-rfc8216bis-22): viewers of playlists and Media Segments over HTTP/1.1 and
//! HTTP/2.

mod bandwidth;
mod cache;
mod client;
mod cmcd;
mod date;
mod decryption;
mod figures;
#[cfg(any(test, feature = "fuzz"))]
pub mod harness;
mod inspector;
mod playback;
mod playlist;
mod playlist_error;
mod recent;
mod schedule;
mod seeking;
mod server_clock;
mod variables;
mod variant;

use self::variant::HlsFields;
use crate::asked;
use crate::group::Group;
use crate::http;
use crate::link::Bandwidth;
use crate::protocol::{Excess, Play, Protocol, Serve};
use crate::served_stream::ServedStream;
use crate::unfilled::SEGMENT_VIEWER;
use crate::viewer;
use std::time::Duration;
use weir_clients::{Placeholders, Scheme, ts};
use weir_metrics::Schema;

/// A playlist that does not go on is the server's fault, or its source's.
const STALE: Excess = Excess {
    counter: figures::STALE,
    beside: figures::RELOADS,
    above: 0.01,
    invalid_from: None,
    words: "{count} of {beside} reloads brought a playlist that had not changed for two and a half target durations (hls.stale): its source or its server stood still",
};

/// The same as a threshold: one reload in a hundred may come just behind an encoder that was late.
const FRESH: &str = "hls.stale.ratio <= 1%";

/// RFC 8216, section 4.3.3.1: a duration, rounded, is at most the target duration.
const EXCEEDED: Excess = Excess {
    counter: figures::TARGET_EXCEEDED,
    beside: figures::SEGMENTS,
    above: 0.0,
    invalid_from: None,
    words: "{count} segments that playlists announced were longer than the target duration (hls.target_exceeded; {beside} were loaded): players may reload too seldom; let the encoder send keyframes as often",
};

/// What is refused is never shown: nothing else tells of it where the player goes on without it.
const REFUSED: Excess = Excess {
    counter: figures::REFUSED,
    beside: figures::REQUESTS,
    above: 0.01,
    invalid_from: None,
    words: "{count} of {beside} requests for playlists and segments were refused or brought nothing (hls.refused): viewers did without that",
};

/// The same as a threshold: a viewer that is late may ask for a segment that has just left.
const SERVED: &str = "hls.refused.ratio <= 1%";

const NOT_FOUND: Excess = Excess {
    counter: figures::NOT_FOUND,
    beside: figures::SEGMENTS,
    above: 0.0,
    invalid_from: None,
    words: "{count} segments that a playlist had named were not there (404 or 410; {beside} were loaded)",
};

/// A player has the same key and shows nothing either.
const UNDECRYPTED: Excess = Excess {
    counter: figures::UNDECRYPTED,
    beside: figures::DECRYPTED,
    above: 0.0,
    invalid_from: None,
    words: "{count} segments that witnesses loaded could not be decrypted with the key that the playlist names (hls.undecrypted; {beside} could)",
};

/// Players that have more than a key may show it.
const SEALED: Excess = Excess {
    counter: figures::SEALED,
    beside: weir_metrics::common::STARTED,
    above: 0.0,
    invalid_from: None,
    words: "{count} times a playlist named segments that no key alone decrypts (SAMPLE-AES, systems of rights, parts that are ranges of a segment encrypted as a whole; hls.sealed; {beside} viewers): they are loaded, and what is in them is not known, nor latency by stamps",
};

/// Over TCP nothing is lost: it was missing when the segment was written, or before.
const LOST_PACKETS: Excess = Excess {
    counter: figures::LOST_PACKETS,
    beside: figures::INSPECTED,
    above: 0.0,
    invalid_from: None,
    words: "{count} packets were missing inside of segments by their continuity counters (hls.lost_packets; witnesses looked into {beside}): what wrote the segments left them out or never had them",
};

/// draft-pantos-hls-rfc8216bis-22, section 6.2.5.2: a server holds such a request until its playlist has what was asked for.
const EARLY: Excess = Excess {
    counter: figures::EARLY,
    beside: figures::RELOADS,
    above: 0.01,
    invalid_from: None,
    words: "{count} of {beside} reloads asked for what was to come and were answered without it (hls.early): the server says CAN-BLOCK-RELOAD=YES; players ask many times a second then",
};

/// RFC 9113, section 5.1.2: how many requests a connection carries at a time is for the server to say.
const HTTP2_WAITS: Excess = Excess {
    counter: figures::HTTP2_WAITS,
    beside: figures::HTTP2_REQUESTS,
    above: 0.0,
    invalid_from: None,
    words: "{count} of {beside} requests by HTTP/2 waited until another had ended, because the server takes no more at a time on one connection (SETTINGS_MAX_CONCURRENT_STREAMS; hls.http2_waits): stalls may come of that limit and not of a slow server",
};

/// What a date says by another clock is off by as much as the clocks are apart.
const CLOCKS_APART: Excess = Excess {
    counter: figures::CLOCKS_APART,
    beside: weir_metrics::common::STARTED,
    above: 0.0,
    invalid_from: None,
    words: "the server's clock, by the Date of its answers, is a quarter of a second or more away from this machine's for {count} of {beside} viewers (hls.clock_ahead): hls.latency and hls.edge_latency are wrong by as much if the playlists' dates are of that clock",
};

/// Playlists over HTTP and HTTPS.
pub(crate) const PROTOCOL: Protocol = Protocol {
    schemes: &SCHEMES,
    placeholders: Placeholders::STREAM,
    suffix: Some((ts::SCHEMES, ".m3u8")),
    redirects: true,
    schema: Schema::new(figures::FIGURES),
    columns: &[],
    excesses: &[
        STALE,
        EXCEEDED,
        REFUSED,
        NOT_FOUND,
        UNDECRYPTED,
        SEALED,
        LOST_PACKETS,
        EARLY,
        HTTP2_WAITS,
        CLOCKS_APART,
    ],
    datagrams: None,
    play: Some(Play {
        options: &[Group::of::<http::Fields>(), Group::of::<Bandwidth>(), Group::of::<HlsFields>()],
        asked: |_, _| asked::of_run(&asked::OF_VIEWERS_OF_SEGMENTS, &[FRESH, SERVED]),
        unfilled: |_| SEGMENT_VIEWER,
        shown: None,
        least_published: None,
        discovers: false,
        loads_ahead: true,
        served: Some(ServedStream {
            arguments: &["--segment", "1s"],
            // Viewers begin three segments of 1 s behind the end of a playlist.
            delay: Duration::from_secs(6),
            ..ServedStream::published(&SCHEMES, "/live/doctor.m3u8")
        }),
        clients: viewer::one,
        make: |making| {
            let Bandwidth { bandwidth } = making.given.read()?;
            let fields = HlsFields { bandwidth, ..making.given.read()? };
            client::play(making.urls, &making.options, &http::options(making.given)?, &fields)
        },
    }),
    publish: None,
    ingest: None,
    serve: Some(Serve {
        server: &weir_origin::HLS,
        help: "Serve streams by HLS, usually on :8080: http://HOST:PORT/app/stream.m3u8",
        needs_publishers: true,
    }),
};

const SCHEMES: [Scheme; 2] = [Scheme::tcp("http+hls", 80), Scheme::tls("https+hls", 443)];
