//! MPEG-TS over HTTP.

use crate::asked;
use crate::comeback::Reconnect;
use crate::group::Group;
use crate::http;
use crate::protocol::{Excess, Play, Protocol, Serve};
use crate::served_stream::{ServedStream, StreamSource};
use crate::unfilled::TS_VIEWER;
use crate::viewer::{self, Viewer};
use weir_clients::{Placeholders, ts};

/// A packet that is missing shows.
pub(crate) const WHOLE: &str = "ts.lost_packets == 0";

/// Losses of which only the least is known.
pub(crate) const UNKNOWN_LOSSES: Excess = Excess {
    counter: ts::LOST_UNKNOWN,
    beside: ts::GAP_EVENTS,
    above: 0.0,
    invalid_from: None,
    words: "how many packets are missing is not known at {count} places ({beside} gaps in all): the rate scatters there by more than the counters can hide, as without null packets; ts.lost_estimate has the least that it can be",
};

/// The first service of the origin's tuners.
pub(crate) const SERVICE: ServedStream =
    ServedStream { source: StreamSource::Origin, ..ServedStream::published(ts::SCHEMES, "/1.ts") };

/// Streams over HTTP and HTTPS.
pub(crate) const PROTOCOL: Protocol = Protocol {
    schemes: ts::SCHEMES,
    placeholders: Placeholders::STREAM,
    suffix: None,
    redirects: true,
    schema: ts::SCHEMA,
    columns: ts::COLUMNS,
    excesses: &[UNKNOWN_LOSSES],
    datagrams: None,
    play: Some(Play {
        options: &[Group::of::<Viewer>(), Group::of::<http::Fields>(), Group::of::<Reconnect>()],
        asked: |given, _| asked::of_viewers(given, &asked::OF_VIEWERS_OF_PACKETS, &[WHOLE]),
        unfilled: |_| TS_VIEWER,
        shown: None,
        least_published: None,
        discovers: false,
        loads_ahead: false,
        served: Some(SERVICE),
        clients: viewer::one,
        make: |making| {
            let options = viewer::options(making.options, making.given)?;
            ts::play(making.urls, &options, &http::options(making.given)?)
        },
    }),
    publish: None,
    ingest: None,
    serve: Some(Serve {
        server: &weir_origin::HTTP,
        help: "Serve MPEG-TS over HTTP as Mirakurun and mirakc do, usually on :40772; also /1.ts, /2.ts …",
        needs_publishers: false,
    }),
};
