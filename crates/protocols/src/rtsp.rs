//! RTSP.

use crate::asked;
use crate::comeback::{self, EndGrace, Reconnect};
use crate::content::{self, Content, Stamp};
use crate::group::Group;
use crate::protocol::{DatagramCounts, Making, Play, Protocol, Publish, Serve};
use crate::served_stream::ServedStream;
use crate::unfilled::{PUBLISHER, VIEWER};
use crate::viewer::{self, Viewer};
use clap::Args;
use weir_clients::{Placeholders, PlayOptions, PublishOptions, RtspTransport, Workload, WorkloadError, rtsp};
use weir_metrics::common::LOST;

/// RTSP and RTSPS.
pub(crate) const PROTOCOL: Protocol = Protocol {
    schemes: rtsp::SCHEMES,
    placeholders: Placeholders::STREAM,
    suffix: None,
    redirects: true,
    schema: rtsp::SCHEMA,
    columns: &[],
    excesses: &[],
    datagrams: Some(DatagramCounts { with_media: &[rtsp::PACKETS, LOST], given_up: None }),
    play: Some(Play {
        options: &[
            Group::of::<Viewer>(),
            Group::of::<Rtsp>(),
            Group::of::<EndGrace>(),
            Group::of::<Reconnect>(),
        ],
        asked: |given, _| asked::of_viewers(given, &asked::OF_VIEWERS, &[]),
        unfilled: |_| VIEWER,
        shown: Some(["keyframes > 0", "rtsp.audio_frames > 0"]),
        least_published: None,
        discovers: false,
        loads_ahead: false,
        served: Some(ServedStream::published(rtsp::SCHEMES, "/live/doctor")),
        clients: viewer::one,
        make: play,
    }),
    publish: Some(Publish {
        options: &[
            Group::of::<Content>(),
            Group::of::<Stamp>(),
            Group::of::<Rtsp>(),
            Group::of::<Reconnect>(),
        ],
        output: content::output,
        asked: |_, _| Vec::new(),
        unfilled: PUBLISHER,
        make: publish,
    }),
    ingest: None,
    serve: Some(Serve {
        server: &weir_origin::RTSP,
        help: "Listen for RTSP, usually on :8554: publishers, and viewers of what is published, by TCP or UDP",
        needs_publishers: false,
    }),
};

/// What only RTSP has.
#[derive(Args)]
#[command(next_help_heading = "RTSP")]
struct Rtsp {
    /// RTSP: what carries RTP: tcp, interleaved in the connection; or udp, by which every viewer reads at every event
    #[arg(long, value_name = "NAME", default_value = "tcp")]
    transport: RtspTransport,
}

fn play(making: Making<'_, PlayOptions>) -> Result<Workload, WorkloadError> {
    let options = PlayOptions {
        end_grace: comeback::end_grace(making.given)?,
        ..viewer::options(making.options, making.given)?
    };
    rtsp::play(making.urls, &options, making.given.read::<Rtsp>()?.transport)
}

fn publish(making: Making<'_, PublishOptions>) -> Result<Workload, WorkloadError> {
    let options = content::options(making.options, making.given, making.run.seed)?;
    rtsp::publish(making.urls, &options, making.given.read::<Rtsp>()?.transport)
}
