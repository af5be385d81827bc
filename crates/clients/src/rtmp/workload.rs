//! Groups of RTMP players and publishers.

use super::address::Address;
use super::attempts::Request;
use super::play::{self, Player};
use super::publish::{self, Publisher};
use super::{RtmpOptions, SCHEMA, SCHEMES};
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
use weir_rtmp::ClientOptions;
use weir_rtmp::handshake::Scheme;

/// Viewers of these URLs. Resolves names, so it may take a while.
///
/// # Errors
/// A URL that leads nowhere, or TLS settings that cannot be made.
pub fn play(urls: &[String], options: &PlayOptions, rtmp: &RtmpOptions) -> Result<Workload, WorkloadError> {
    let mut finder = EndpointFinder::new(SCHEMES, &options.tls).resolving(options.resolve);
    let endpoints = Endpoints::find("play", urls, &mut finder, |target| {
        let address = Address::of(&target)?;
        let client = ClientOptions {
            buffer_length: options.playout_buffer.as_millis().clamp(1, u32::MAX.into()) as u32,
            handshake: rtmp.scheme(),
            ..ClientOptions::play(address.tc_url, address.app, address.stream)
        };
        Ok(Request::new(client, target))
    })?;
    let shared_options = Arc::new(play::SharedOptions {
        timeouts: options.timeouts,
        playout: options.playout(),
        end_grace: options.end_grace,
        clock: Arc::new(HostClock::read()),
        redirects: Redirects::new(finder),
    });
    let (options, returns, decoders) = (options.clone(), options.returns, options.decoders.clone());
    let new = move |client: NewClient<'_, Request>, shard: &mut ShardRecorder| {
        let NewClient { planned, request, now, .. } = client;
        let reading = (options.reading(planned.client), options.decoded(planned.client));
        Player::new(planned, request, Arc::clone(&shared_options), reading, now, shard)
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
    rtmp: &RtmpOptions,
) -> Result<Workload, WorkloadError> {
    let mut finder = EndpointFinder::new(SCHEMES, &options.tls).resolving(options.resolve);
    let endpoints = Endpoints::find("publish", urls, &mut finder, |target| {
        let address = Address::of(&target)?;
        let client = ClientOptions {
            handshake: rtmp.scheme(),
            ..ClientOptions::publish(address.tc_url, address.app, address.stream)
        };
        Ok(Request::new(client, target))
    })?;
    let material = Material::prepare_of(&options.material, options.stamp, &PictureCodec::ALL)?;
    let warning = material.unstamped(options.stamp);
    let codec = material.picture_codec();
    let shared_options = Arc::new(publish::SharedOptions {
        timeouts: options.timeouts,
        send_timeout: options.send_timeout,
        stamp: options.stamp && codec == PictureCodec::H264,
        codec,
        record: material.picture_record().unwrap_or_default(),
        material,
        clock: HostClock::read(),
        redirects: Redirects::new(finder),
    });
    let new = move |client: NewClient<'_, Request>, shard: &mut ShardRecorder| {
        let NewClient { planned, request, now, .. } = client;
        Publisher::new(planned, request, Arc::clone(&shared_options), now, shard)
    };
    let mut workload = Workload::new(SCHEMA, endpoints, new).returning(options.returns);
    workload.warnings.extend(warning);
    Ok(workload)
}

impl RtmpOptions {
    fn scheme(&self) -> Scheme {
        if self.digest_handshake { Scheme::Digest } else { Scheme::Simple }
    }
}
