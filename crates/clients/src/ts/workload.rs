//! Groups of viewers of transport streams.

use super::play::{Player, SharedOptions};
use super::viewer::TsViewer;
use super::{SCHEMA, SCHEMES};
use crate::endpoints::{EndpointFinder, Endpoints};
use crate::http_request::HttpOptions;
use crate::http_request::Request;
use crate::options::PlayOptions;
use crate::redirect::Redirects;
use crate::target::Target;
use crate::workload::{NewClient, ServerVersion, Workload};
use crate::workload_error::WorkloadError;
use std::sync::Arc;

/// A reader of a channel gets fifty times what a viewer gets, so that each witness costs as much more. All that it
/// knows beyond the others is its drift.
const FIRST_WITNESSES: u32 = 1;

/// Where the list of streams comes from.
pub(super) enum Source {
    /// The person who wrote the URLs.
    Urls,
    /// Servers that have just listed them.
    Listed(Vec<ServerVersion>),
}

/// Viewers of these URLs. Resolves names, so it may take a while.
///
/// # Errors
/// A URL that leads nowhere, or TLS settings that cannot be made.
pub fn play(urls: &[String], options: &PlayOptions, http: &HttpOptions) -> Result<Workload, WorkloadError> {
    let targets = urls.iter().map(|url| Target::parse(url, "play", SCHEMES)).collect::<Result<_, _>>()?;
    play_targets(
        targets,
        EndpointFinder::new(SCHEMES, &options.tls).resolving(options.resolve),
        options,
        http,
        Source::Urls,
    )
}

/// Viewers of these streams.
pub(super) fn play_targets(
    targets: Vec<Target>,
    mut finder: EndpointFinder,
    options: &PlayOptions,
    http: &HttpOptions,
    source: Source,
) -> Result<Workload, WorkloadError> {
    let endpoints = Endpoints::of(targets, &mut finder, |target| Ok(Request::new(target, http)))?;
    let shared_options = Arc::new(SharedOptions {
        redirects: Redirects::new(finder),
        listed: matches!(source, Source::Listed(_)),
    });
    let (returns, decoders) = (options.returns, options.decoders.clone());
    let options = PlayOptions { first_witnesses: FIRST_WITNESSES, ..options.clone() };
    let start = move |NewClient { planned, target, request, now, .. }: NewClient<'_, Request>,
                      shard: &mut _| {
        let reading = options.reading(planned.client);
        let viewer = TsViewer::new(planned, target as u32, reading, &options, now, shard);
        Player::new(planned, request, Arc::clone(&shared_options), viewer)
    };
    let servers = match source {
        Source::Urls => Vec::new(),
        Source::Listed(servers) => servers,
    };
    let mut workload = Workload::new(SCHEMA, endpoints, start).returning(returns).decoded_by(decoders);
    workload.versions = servers;
    workload.sends_secret |= http.sends_secret();
    Ok(workload)
}
