//! Background TCP streams of filler, as `iperf3 -P` makes them; the peer is `weir origin --bulk`.

use crate::group::Group;
use crate::protocol::{Output, Play, Protocol, Publish, Serve};
use crate::unfilled::FILLER;
use crate::viewer;
use clap::Args;
use weir_clients::{BulkOptions, Placeholders, bulk};
use weir_metrics::parse_bytes;

/// Streams of filler.
pub(crate) const PROTOCOL: Protocol = Protocol {
    schemes: bulk::SCHEMES,
    placeholders: Placeholders::STREAM,
    suffix: None,
    redirects: false,
    schema: bulk::SCHEMA,
    columns: &[],
    excesses: &[],
    datagrams: None,
    play: Some(Play {
        options: &[Group::of::<Filler>()],
        asked: |_, _| Vec::new(),
        unfilled: |_| FILLER,
        shown: None,
        least_published: None,
        discovers: false,
        loads_ahead: false,
        served: None,
        clients: viewer::one,
        make: |making| bulk::play(making.urls, &making.options, making.given.read::<Filler>()?.into()),
    }),
    publish: Some(Publish {
        options: &[Group::of::<Filler>()],
        output: |_, _| Output::default(),
        asked: |_, _| Vec::new(),
        unfilled: FILLER,
        make: |making| bulk::publish(making.urls, &making.options, making.given.read::<Filler>()?.into()),
    }),
    ingest: None,
    serve: Some(Serve {
        server: &weir_origin::BULK,
        help: "Be the peer of background TCP streams (bulk://, and `background` in a scenario), usually on :5201",
        needs_publishers: false,
    }),
};

/// What only bulk streams have.
#[derive(Args)]
#[command(next_help_heading = "Background TCP streams")]
struct Filler {
    /// Bytes that are sent at a time, up to 1MiB
    #[arg(long, value_name = "SIZE", default_value = "128KiB", value_parser = block)]
    block: u32,
}

impl From<Filler> for BulkOptions {
    fn from(Filler { block }: Filler) -> Self {
        Self { block }
    }
}

fn block(text: &str) -> Result<u32, String> {
    let size = parse_bytes(text).map_err(|error| error.to_string())?;
    let block = u32::try_from(size).ok().filter(|block| (1..=BulkOptions::LARGEST_BLOCK).contains(block));
    block.ok_or_else(|| "a block has 1B to 1MiB".to_owned())
}
