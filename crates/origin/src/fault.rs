//! Scripted faults: what goes wrong, for whom and when, the same for all protocols.
//!
//! A fault is written as one line, `ACTION [VALUE] [KEY=VALUE …]`:
//!
//! | line | effect |
//! |---|---|
//! | `stall at=2s for=1500ms [every=5s]` | nothing is sent for 1.5 s, then all that waited; in every 5 s, if said |
//! | `stall unit=100 for=1500ms` | the same before unit 100 |
//! | `drop unit=every:100` | units 100, 200, … are never sent |
//! | `duplicate unit=7 [times=2]` | unit 7 is sent twice, or `times` times more |
//! | `swap unit=7` | unit 7 is sent after unit 8 |
//! | `delay 80ms` | every unit is sent 80 ms later |
//! | `jump at=3s by=-500ms` · `jump unit=90 by=2s` | from then on, timestamps are moved |
//! | `reset viewers=5..10 at=1s` · `reset unit=50` | the connection is reset |
//! | `close at=1s` | the connection is closed |
//! | `counter unit=7 [by=8]` | the continuity counter of unit 7 is advanced by this much |
//! | `error unit=7` | unit 7 has `transport_error_indicator` |
//! | `scramble unit=7 [control=2]` | unit 7 has this `transport_scrambling_control` |
//! | `unsync unit=7` | unit 7 has 0 for its sync byte |
//! | `crop unit=7 bytes=100` | the first 100 bytes of unit 7 are never sent |
//! | `junk unit=7 bytes=100 [of=71]` | before unit 7, 100 bytes of this value are sent; unless said, noise without sync bytes |
//! | `stale at=4s for=10s` | HLS: playlists stand still meanwhile: a viewer is sent the one that it was sent last |
//! | `early unit=3` | HLS: the third reload that waits for a part is answered at once |
//! | `status unit=5 [code=404]` | HLS: the fifth segment or part that a viewer asks for is answered with this status |
//! | `lose unit=3 packets=2` | HLS: 2 packets of its transport stream are not in the third segment or part that a viewer asks for, from its middle on |
//! | `gap unit=3 stream=live/a` | HLS: the third segment of a publication is named in playlists and not there (`EXT-X-GAP`) |
//! | `unauthorized [phase=play] [unless=USER:PASSWORD] [words=…]` | the request is answered with 401 or its like |
//! | `reject [phase=connect] [code=…] [words=…]` | the request is refused; HTTP: with this status, or 503 |
//! | `reject phase=play beyond=100` | the same, but only while 100 viewers are there |
//! | `redirect to=URL [phase=play] [code=302]` | the request is sent elsewhere |
//! | `silent phase=play` | from this phase on, nothing is ever answered |
//! | `withhold unit=every:10` | the publisher is sent no acknowledgement of these messages |
//! | `latency 2s` | SRT: the handshake asks for this latency in both directions, at the least |
//! | `read rate=100kbps` | the publisher's bytes are read no faster |
//! | `refuse` | the port is taken, and every connection refused |
//! | `burn 200ms thread=busy` | a thread of this name uses 200 ms of CPU in every second |
//! | `burn 2ms each=viewer` | a worker uses 2 ms of CPU in every second for each of its viewers, what it sends them included |
//! | `burn 2ms each=publisher` | the same for each publisher that sends to it |
//! | `leak bytes=2048 each=viewer` | 2,048 bytes of memory are kept for each viewer that comes, until the origin ends |
//!
//! - Whom: `viewer=3`, `viewers=5..10`, `publisher=1`, `publishers=1..2`, `link=4`, `links=1..9`,
//!   `stream=live/a`; numbers count from 1 in the order of coming, both ends of a range belong to it,
//!   and `A..` has no end. Unless said, a fault of units befalls every viewer, `read` every publisher,
//!   a refusal every link. A fault of a `stream` befalls its units as they come in.
//! - `counter` to `junk` befall packets of a transport stream; the others befall all kinds of units.
//! - Units: `unit=K`, `unit=A..B`, `unit=every:K`; each viewer (or stream) counts its own from 1, and
//!   codec configuration does not count. `kind=video`, `audio` or `keyframe` counts
//!   those only. Of a tuner, units are packets of 188 bytes, and `pid=0x101` counts those of one PID. Of viewers by
//!   WebRTC they are RTP packets, of a keyframe the first; what is dropped has a number all the same, and is sent when it
//!   is asked for again.
//! - Streams: `APP/STREAM` of RTMP, `/1.ts` of a tuner, which starts from the beginning each time that it is opened.
//!   Of a broker, units are messages, viewers those who have subscribed, and a `stream` is a topic filter:
//!   of its units `drop` and `duplicate` befall what comes in.
//!   Of viewers by HLS they are the segments and parts that are asked for, whatever `kind` says: what is dropped is answered
//!   with 404, what waits is answered later, and `duplicate`, `swap` and `jump` do nothing. A viewer is a connection.
//!   Of publishers by SRT `withhold` counts full acknowledgements, and light ones go the way of the next full one; faults of units do not befall viewers by SRT.
//!   A refusal's `code` is one of SRT's (`reject phase=publish code=1010`), and `reset` goes without a SHUTDOWN.
//! - Times: `at` counts from the first unit of the viewer, publisher or stream; of a link, from its
//!   acceptance.
//! - Phases: `accept`, `handshake`, `connect`, `play`, `publish`. A link is known to be a viewer's from `play` on.
//! - `beyond` counts the viewers of all workers; of a broker, its sessions.
//! - `words` reaches to the end of the line.

mod damage;
mod effect;
mod gate;
mod grammar;
mod hls;
mod link;
mod script;

pub use effect::{Effect, Subject, What};
pub(crate) use gate::{Gate, GateFront, Unit as GateUnit};
pub use grammar::ParseFaultError;
pub(crate) use link::LinkFaults;
pub use script::LinkEnd;
pub(crate) use script::{Ruling, Script, ScriptedAnswer};

use std::time::Duration;
use weir_metrics::BitRate;

/// One thing that goes wrong. [`std::str::FromStr`] reads the line that the module describes.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// What happens.
    pub action: Action,
    /// What it happens to.
    pub whom: Whom,
}

/// What happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Nothing is sent for a while, then all that waited.
    Stall {
        /// When it begins.
        when: When,
        /// How long it lasts.
        span: Duration,
        /// How often it comes back; only with a time.
        every: Option<Duration>,
    },
    /// Units are never sent.
    Drop(Pick),
    /// Units are sent again.
    Duplicate {
        /// Which units.
        pick: Pick,
        /// How many times more.
        times: u32,
    },
    /// Packets of a transport stream are damaged.
    Damage {
        /// Which units.
        pick: Pick,
        /// What is changed in it.
        damage: Damage,
    },
    /// Units are sent after the one that follows them.
    Swap(Pick),
    /// Every unit is sent later.
    Delay(Duration),
    /// HLS: playlists do not go on for a while.
    Stale {
        /// When it begins.
        at: Duration,
        /// How long it lasts.
        span: Duration,
    },
    /// HLS: reloads that would wait are answered at once.
    Early(Pick),
    /// HLS: what is asked for is answered with a status.
    Status {
        /// Which units.
        pick: Pick,
        /// The status.
        code: u16,
    },
    /// HLS: packets are not in a segment or part that is a transport stream.
    Lose {
        /// Of which units.
        pick: Pick,
        /// How many, from its middle on.
        packets: usize,
    },
    /// HLS: segments are named and not there.
    Gap(Pick),
    /// From some point on, timestamps are moved.
    Jump {
        /// From which unit or moment on.
        when: When,
        /// By how many microseconds.
        by: i64,
    },
    /// The connection is reset.
    Reset(When),
    /// The connection is closed.
    Close(When),
    /// A request is refused.
    Refusal {
        /// Which request.
        phase: LinkPhase,
        /// For what reason.
        why: Why,
        /// The protocol's code, if not the usual one.
        code: Option<String>,
        /// The words, if not the usual ones.
        words: Option<String>,
        /// How many viewers must be there for it; unless said, it is always so.
        beyond: Option<u64>,
    },
    /// From a phase on, nothing is answered.
    Silent(LinkPhase),
    /// Messages of a publisher are not acknowledged.
    Withhold(Pick),
    /// SRT: a latency that the handshake asks for.
    Latency(Duration),
    /// What a publisher sends is read slowly.
    Read(BitRate),
    /// No connection is accepted.
    Refuse,
    /// A thread uses CPU time.
    Burn {
        /// How much in every second.
        share: Duration,
        /// The thread's name.
        thread: String,
    },
    /// Workers use CPU time for each viewer that is there, and send late when there is not enough of it.
    BurnForViewers {
        /// How much in every second for each viewer.
        share: Duration,
    },
    /// Workers use CPU time for each publisher that sends to them.
    BurnForPublishers {
        /// How much in every second for each publisher.
        share: Duration,
    },
    /// Memory is kept for each viewer that comes, and never given back.
    Leak {
        /// How many bytes.
        bytes: usize,
    },
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// For no reason.
    Rejected,
    /// For want of credentials.
    Unauthorized {
        /// `USER:PASSWORD` that would do.
        unless: Option<String>,
    },
    /// What was asked for is elsewhere.
    Moved {
        /// The URL or path that clients are redirected to.
        to: String,
    },
}

/// What is done to a packet of a transport stream (ISO/IEC 13818-1 section 2.4.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// `continuity_counter` is moved on, modulo 16.
    Counter(u8),
    /// `transport_error_indicator` is set.
    Error,
    /// `transport_scrambling_control` is this.
    Scrambling(u8),
    /// The sync byte is 0.
    Sync,
    /// This number of bytes at its front is never sent.
    Crop(usize),
    /// Other bytes are sent before it.
    Junk {
        /// How many.
        bytes: usize,
        /// All of this value; otherwise noise without sync bytes.
        of: Option<u8>,
    },
}

/// What it happens to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whom {
    /// The origin itself.
    Origin,
    /// Links, by the order of acceptance.
    Links(Range),
    /// Viewers, by the order of their requests.
    Viewers(Range),
    /// Publishers, by the order of their requests.
    Publishers(Range),
    /// A stream, as it comes in.
    Stream(String),
}

/// Numbers from 1; both ends belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
}

impl Range {
    /// Every number.
    pub const ALL: Self = Self { first: 1, last: u64::MAX };

    /// Whether `number` belongs to it.
    pub fn contains(self, number: u64) -> bool {
        (self.first..=self.last).contains(&number)
    }
}

/// Which units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// Which numbers.
    pub units: Units,
    /// Which units are counted.
    pub of: CountedUnit,
}

/// Which numbers of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units {
    /// These.
    In(Range),
    /// The multiples of this number.
    Every(u64),
}

impl Units {
    /// Whether unit `number` is meant.
    pub fn contains(self, number: u64) -> bool {
        match self {
            Self::In(range) => range.contains(number),
            Self::Every(k) => number.is_multiple_of(k),
        }
    }
}

/// Which units are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedUnit {
    /// All units.
    Any,
    /// Video.
    Video,
    /// Audio.
    Audio,
    /// Video keyframes.
    Keyframe,
    /// Packets of a transport stream with this packet identifier.
    Pid(u16),
}

/// When it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// After this time.
    At(Duration),
    /// At these units.
    Unit(Pick),
}

/// How far a connection has come, in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkPhase {
    /// The connection is there, nothing was said.
    Accept,
    /// The protocol's handshake.
    Handshake,
    /// The request to be let in.
    Connect,
    /// The request to be sent a stream.
    Play,
    /// The request to publish one.
    Publish,
}
