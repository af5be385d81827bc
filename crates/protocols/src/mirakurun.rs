//! Mirakurun and mirakc: tuner servers that are asked for their services, which are MPEG-TS over HTTP.

use crate::comeback::Reconnect;
use crate::group::Group;
use crate::mpegts::UNKNOWN_LOSSES;
use crate::protocol::{Play, Protocol};
use crate::unfilled::TS_VIEWER;
use crate::viewer::{self, Viewer};
use crate::{asked, http, mpegts};
use clap::Args;
use weir_clients::{MirakurunOptions, Placeholders, ts};

/// Services over HTTP and HTTPS.
pub(crate) const PROTOCOL: Protocol = Protocol {
    schemes: ts::mirakurun::SCHEMES,
    placeholders: Placeholders::STREAM,
    suffix: None,
    redirects: true,
    schema: ts::SCHEMA,
    columns: ts::COLUMNS,
    excesses: &[UNKNOWN_LOSSES],
    datagrams: None,
    play: Some(Play {
        options: &[
            Group::of::<Viewer>(),
            Group::of::<Services>(),
            Group::of::<http::Fields>(),
            Group::of::<Reconnect>(),
        ],
        // Of a server that was asked for all that it has each service counts.
        asked: |given, _| {
            asked::of_viewers(given, &asked::OF_VIEWERS_OF_PACKETS, &["failed.ratio == 0", mpegts::WHOLE])
        },
        unfilled: |_| TS_VIEWER,
        shown: None,
        least_published: None,
        discovers: true,
        loads_ahead: false,
        // The streams of Mirakurun are those of a tuner server, and are read in the same way.
        served: Some(mpegts::SERVICE),
        clients: |given| {
            let Ok(said) = given.read::<Services>() else { return 1 };
            said.services.unwrap_or(said.service.len() as u32).max(1)
        },
        make: |making| {
            let options = viewer::options(making.options, making.given)?;
            let services = making.given.read::<Services>()?.into();
            ts::mirakurun::play(making.urls, &options, &http::options(making.given)?, &services)
        },
    }),
    publish: None,
    ingest: None,
    serve: mpegts::PROTOCOL.serve,
};

/// Which services, and how they are asked for.
#[derive(Args)]
#[command(next_help_heading = "Mirakurun and mirakc")]
struct Services {
    /// How many services to read, of as many channels as there are; one viewer each unless -c says more
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    services: Option<u32>,
    /// A service by id, name or channel (GR/27); repeatable
    #[arg(long, value_name = "WHAT")]
    service: Vec<String>,
    /// Services of this type: GR, BS, CS or SKY; repeatable
    #[arg(long, value_name = "TYPE")]
    channel_type: Vec<String>,
    /// Leave descrambling out: decode=0 instead of decode=1
    #[arg(long)]
    no_decode: bool,
    /// X-Mirakurun-Priority: who gets a tuner first if there are too few
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i32>,
    /// mirakc: a filter before its own, by name; repeatable
    #[arg(long = "pre-filter", value_name = "NAME")]
    pre_filters: Vec<String>,
    /// mirakc: a filter behind its own, by name; repeatable
    #[arg(long = "post-filter", value_name = "NAME")]
    post_filters: Vec<String>,
}

impl From<Services> for MirakurunOptions {
    fn from(said: Services) -> Self {
        Self {
            services: said.services,
            named: said.service,
            types: said.channel_type,
            no_decode: said.no_decode,
            priority: said.priority,
            pre_filters: said.pre_filters,
            post_filters: said.post_filters,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::given::Given;

    #[test]
    fn there_is_a_viewer_for_each_service_that_is_asked_for() {
        let clients = PROTOCOL.play.unwrap().clients;
        assert_eq!(clients(&Given::default()), 1);
        assert_eq!(clients(&Given::default().with("services", "8")), 8);
        assert_eq!(clients(&Given::default().with("service", "GR/27")), 1);
    }
}
