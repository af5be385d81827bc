//! SRT in live mode (draft-sharabayko-srt-01): callers that play and publish MPEG-TS, as libsrt and ffmpeg do.

mod address;
mod caller;
mod figures;
mod material;
mod payloads;
mod play;
mod publish;

use self::address::SrtFields;
pub use self::address::passphrase;
use crate::asked;
use crate::comeback::Reconnect;
use crate::content::{self, Content, Stamp};
use crate::group::Group;
use crate::mpegts::{UNKNOWN_LOSSES, WHOLE};
use crate::protocol::{DatagramCounts, Excess, Play, Protocol, Publish, Serve};
use crate::served_stream::{ServedStream, StreamSource};
use crate::unfilled::{PUBLISHER, TS_VIEWER};
use crate::viewer::{self, Viewer};
use weir_clients::{Link, Placeholders, Scheme, ts};

/// Asked of publishers by default: the server acknowledges what it is sent while a copy is kept, for a second or 1.25 latencies.
const ACKNOWLEDGED: &str = "srt.send_dropped == 0";

/// What is dropped is missing in the stream; whether the server, the path or the latency is to blame, its viewers cannot know.
const DROPPED: Excess = Excess {
    counter: figures::DROPPED,
    beside: figures::RECEIVED,
    above: 0.0,
    invalid_from: None,
    words: "{count} packets had not come when their time was over (srt.dropped), beside {beside} that came: the path loses more than the latency has time to repair; ask for three to four round trips (srt.round_trip) of it with {srt_latency}",
};

/// Packets that the keys do not open are dropped like lost ones.
const UNDECRYPTED: Excess = Excess {
    counter: figures::UNDECRYPTED,
    beside: figures::RECEIVED,
    above: 0.0,
    invalid_from: None,
    words: "{count} packets could not be decrypted, beside {beside} that came: the server uses keys that it has not announced",
};

/// The server had sent them; what is missing then is no loss of the server or of the path.
const DISCARDED: Excess = Excess {
    counter: figures::DISCARDED,
    beside: figures::RECEIVED,
    above: 0.0,
    invalid_from: None,
    words: "{count} packets of {beside} found no room in weir (srt.discarded), and are missing in the stream: the server sent more than weir holds for the latency (twice the rate of the second before, 32 MiB at the most), or numbers far ahead",
};

/// As many as a socket may drop: neither is the server's doing.
const SEND_DISCARDED: Excess = Excess {
    counter: figures::SEND_DISCARDED,
    beside: figures::SENT,
    above: 0.0,
    invalid_from: Some(0.001),
    words: "{count} packets were given up in weir (srt.send_discarded), beside {beside} that were sent: its socket had refused them or held them for too long, or it had not come to sending them; the server is not to blame",
};

const SEND_DROPPED: Excess = Excess {
    counter: figures::SEND_DROPPED,
    beside: figures::SENT,
    above: 0.0,
    invalid_from: None,
    words: "{count} packets were given up before the server had acknowledged them (srt.send_dropped), beside {beside} that were sent: it did not answer for a second or more",
};

/// No threshold: a path that loses 12 % or more costs a healthy server as many copies, and so does one that changes the order.
const RETRANSMITTED: Excess = Excess {
    counter: figures::RETRANSMITTED,
    beside: figures::SENT,
    above: 0.25,
    invalid_from: None,
    words: "{count} packets were sent again, beside {beside} (srt.retransmitted): more than the quarter that senders keep free for it; the path loses them or changes their order, or the server's socket is full",
};

/// Callers of listeners.
pub(crate) const PROTOCOL: Protocol = Protocol {
    schemes: SCHEMES,
    placeholders: Placeholders::STREAM,
    suffix: None,
    redirects: false,
    schema: figures::SCHEMA,
    columns: ts::COLUMNS,
    excesses: &[DROPPED, DISCARDED, UNDECRYPTED, SEND_DROPPED, SEND_DISCARDED, RETRANSMITTED, UNKNOWN_LOSSES],
    datagrams: Some(DatagramCounts {
        with_media: &[figures::RECEIVED, figures::DROPPED, figures::SENT, figures::RETRANSMITTED],
        given_up: Some(figures::SEND_DROPPED),
    }),
    play: Some(Play {
        options: &[Group::of::<Viewer>(), Group::of::<Reconnect>(), Group::of::<SrtFields>()],
        asked: |given, _| asked::of_viewers(given, &asked::OF_VIEWERS_OF_PACKETS, &[WHOLE]),
        unfilled: |_| TS_VIEWER,
        shown: None,
        least_published: None,
        discovers: false,
        loads_ahead: false,
        served: Some(ServedStream {
            source: StreamSource::Srt,
            ..ServedStream::published(SCHEMES, "?streamid=#!::r=live/doctor,m=request")
        }),
        clients: viewer::one,
        make: |making| {
            let options = viewer::options(making.options, making.given)?;
            play::play(making.urls, &options, &making.given.read()?)
        },
    }),
    publish: Some(Publish {
        options: &[
            Group::of::<Content>(),
            Group::of::<Stamp>(),
            Group::of::<Reconnect>(),
            Group::of::<SrtFields>(),
        ],
        output: content::output,
        asked: |_, _| vec![ACKNOWLEDGED],
        unfilled: PUBLISHER,
        make: |making| {
            let options = content::options(making.options, making.given, making.run.seed)?;
            publish::publish(making.urls, &options, &making.given.read()?)
        },
    }),
    ingest: None,
    serve: Some(Serve {
        server: &weir_origin::SRT,
        help: "Take and serve streams by SRT, usually on :9000: srt://HOST:PORT?streamid=#!::r=app/stream,m=publish, and m=request to play",
        needs_publishers: false,
    }),
};

/// There is no port of its own; most servers listen on one near 9000.
const SCHEMES: &[Scheme] = &[Scheme { name: "srt", port: 9_000, link: Link::Udp }];
