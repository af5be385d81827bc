//! HTTP-FLV: a GET that is answered with an FLV file without an end, as SRS, nginx-http-flv-module, node-media-server and
//! MediaMTX's peers serve it. There is no specification; the file is that of FLV 10.1, annex E.

mod client;
mod figures;
mod origin;

use crate::asked;
use crate::comeback::Reconnect;
use crate::group::Group;
use crate::http;
use crate::protocol::{Play, Protocol, Serve};
use crate::served_stream::ServedStream;
use crate::unfilled::VIEWER;
use crate::viewer::{self, Viewer};
use weir_clients::{Placeholders, Scheme, ts};
use weir_metrics::Schema;

/// Files over HTTP and HTTPS.
pub(crate) const PROTOCOL: Protocol = Protocol {
    schemes: &SCHEMES,
    placeholders: Placeholders::STREAM,
    suffix: Some((ts::SCHEMES, ".flv")),
    redirects: true,
    schema: Schema::new(figures::FIGURES),
    columns: &[],
    excesses: &[],
    datagrams: None,
    play: Some(Play {
        options: &[Group::of::<Viewer>(), Group::of::<http::Fields>(), Group::of::<Reconnect>()],
        asked: |given, _| asked::of_viewers(given, &asked::OF_VIEWERS, &[]),
        unfilled: |_| VIEWER,
        shown: None,
        least_published: None,
        discovers: false,
        loads_ahead: false,
        served: Some(ServedStream::published(&SCHEMES, "/live/doctor.flv")),
        clients: viewer::one,
        make: |making| {
            let options = viewer::options(making.options, making.given)?;
            client::play(making.urls, &options, &http::options(making.given)?)
        },
    }),
    publish: None,
    ingest: None,
    serve: Some(Serve {
        server: &origin::SERVER,
        help: "Serve streams as HTTP-FLV, usually on :8000: http://HOST:PORT/app/stream.flv",
        needs_publishers: true,
    }),
};

const SCHEMES: [Scheme; 2] = [Scheme::tcp("http+flv", 80), Scheme::tls("https+flv", 443)];
