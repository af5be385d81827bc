//! Groups of RTSP players and publishers.

use super::play::{self, Player};
use super::publish::{self, Publisher};
use super::request::Request;
use super::sending::Content;
use super::{RtspTransport, SCHEMA, SCHEMES};
use crate::endpoints::{EndpointFinder, Endpoints};
use crate::host_clock::HostClock;
use crate::material::Material;
use crate::options::{PlayOptions, PublishOptions};
use crate::redirect::Redirects;
use crate::shard_recorder::ShardRecorder;
use crate::workload::{NewClient, Workload};
use crate::workload_error::WorkloadError;
use std::sync::Arc;
use weir_media::PictureCodec;

/// Viewers of these URLs. Resolves names, so it may take a while.
///
/// # Errors
/// A URL that leads nowhere, or TLS settings that cannot be made.
pub fn play(
    urls: &[String],
    options: &PlayOptions,
    transport: RtspTransport,
) -> Result<Workload, WorkloadError> {
    let mut finder = EndpointFinder::new(SCHEMES, &options.tls).resolving(options.resolve);
    let endpoints = Endpoints::find("play", urls, &mut finder, |target| Ok(Request::new(target)))?;
    let common = Arc::new(play::SharedOptions {
        timeouts: options.timeouts,
        playout: options.playout(),
        end_grace: options.end_grace,
        transport,
        clock: Arc::new(HostClock::read()),
        redirects: Redirects::new(finder),
    });
    let (options, returns, decoders) = (options.clone(), options.returns, options.decoders.clone());
    let new = move |client: NewClient<'_, Request>, shard: &mut ShardRecorder| {
        let NewClient { planned, request, now, .. } = client;
        let reading = (options.reading(planned.client), options.decoded(planned.client));
        Player::new(planned, request, Arc::clone(&common), reading, now, shard)
    };
    Ok(Workload::new(SCHEMA, endpoints, new).returning(returns).decoded_by(decoders))
}

/// Publishers to these URLs. Resolves names and makes the material, so it may take a while.
///
/// # Errors
/// A URL that leads nowhere, TLS settings or material that cannot be made.
pub fn publish(
    urls: &[String],
    options: &PublishOptions,
    transport: RtspTransport,
) -> Result<Workload, WorkloadError> {
    let mut finder = EndpointFinder::new(SCHEMES, &options.tls).resolving(options.resolve);
    let endpoints = Endpoints::find("publish", urls, &mut finder, |target| Ok(Request::new(target)))?;
    let material = Material::prepare_of(&options.material, options.stamp, &PictureCodec::ALL)?;
    let warning = material.unstamped(options.stamp);
    let common = Arc::new(publish::SharedOptions {
        timeouts: options.timeouts,
        send_timeout: options.send_timeout,
        content: Content { material, stamp: options.stamp, clock: HostClock::read() },
        transport,
        redirects: Redirects::new(finder),
    });
    let new = move |client: NewClient<'_, Request>, shard: &mut ShardRecorder| {
        let NewClient { planned, request, now, .. } = client;
        Publisher::new(planned, request, Arc::clone(&common), now, shard)
    };
    let mut workload = Workload::new(SCHEMA, endpoints, new).returning(options.returns);
    workload.warnings.extend(warning);
    Ok(workload)
}
