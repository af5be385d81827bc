//! RTMP.

use crate::asked;
use crate::comeback::{self, EndGrace, Reconnect};
use crate::content::{self, Content, Stamp};
use crate::group::Group;
use crate::protocol::{Making, Play, Protocol, Publish, Serve};
use crate::served_stream::ServedStream;
use crate::unfilled::{PUBLISHER, VIEWER};
use crate::viewer::{self, Viewer};
use clap::Args;
use weir_clients::{Placeholders, PlayOptions, PublishOptions, RtmpOptions, Workload, WorkloadError, rtmp};

/// RTMP and RTMPS.
pub(crate) const PROTOCOL: Protocol = Protocol {
    schemes: rtmp::SCHEMES,
    placeholders: Placeholders::STREAM,
    suffix: None,
    redirects: false,
    schema: rtmp::SCHEMA,
    columns: &[],
    excesses: &[],
    datagrams: None,
    play: Some(Play {
        options: &[
            Group::of::<Viewer>(),
            Group::of::<Rtmp>(),
            Group::of::<EndGrace>(),
            Group::of::<Reconnect>(),
        ],
        asked: |given, _| asked::of_viewers(given, &asked::OF_VIEWERS, &[]),
        unfilled: |_| VIEWER,
        shown: Some(["keyframes > 0", "rtmp.audio_frames > 0"]),
        least_published: None,
        discovers: false,
        loads_ahead: false,
        served: Some(ServedStream::published(rtmp::SCHEMES, "/live/doctor")),
        clients: viewer::one,
        make: play,
    }),
    publish: Some(Publish {
        options: &[
            Group::of::<Content>(),
            Group::of::<Stamp>(),
            Group::of::<Rtmp>(),
            Group::of::<Reconnect>(),
        ],
        output: content::output,
        asked: |_, _| Vec::new(),
        unfilled: PUBLISHER,
        make: publish,
    }),
    ingest: None,
    serve: Some(Serve {
        server: &weir_origin::RTMP,
        help: "Listen for RTMP; a port alone is on 127.0.0.1, port 0 picks a free one [default: :1935, unless others are named]",
        needs_publishers: false,
    }),
};

/// What only RTMP has.
#[derive(Args)]
#[command(next_help_heading = "RTMP")]
struct Rtmp {
    /// RTMP: offer the handshake with digests, which some servers demand before H.264
    #[arg(long)]
    digest_handshake: bool,
}

impl From<Rtmp> for RtmpOptions {
    fn from(Rtmp { digest_handshake }: Rtmp) -> Self {
        Self { digest_handshake }
    }
}

fn play(making: Making<'_, PlayOptions>) -> Result<Workload, WorkloadError> {
    let options = PlayOptions {
        end_grace: comeback::end_grace(making.given)?,
        ..viewer::options(making.options, making.given)?
    };
    rtmp::play(making.urls, &options, &making.given.read::<Rtmp>()?.into())
}

fn publish(making: Making<'_, PublishOptions>) -> Result<Workload, WorkloadError> {
    let options = content::options(making.options, making.given, making.run.seed)?;
    rtmp::publish(making.urls, &options, &making.given.read::<Rtmp>()?.into())
}
