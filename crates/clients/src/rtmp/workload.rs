//! Groups of RTMP players and publishers.

use super::address::Address;
use super::play::{self, Player};
use super::publish::{self, Publisher};
use super::{RtmpOptions, SCHEMA, SCHEMES};
use crate::host_clock::HostClock;
use crate::ledger::{Ledger, Slot};
use crate::material::Material;
use crate::playout::Playout;
use crate::target::Target;
use crate::viewing::Reading;
use crate::workload::{PlayOptions, PublishOptions, Workload, WorkloadError};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use weir_metrics::{Moment, Schema};
use weir_rtmp::ClientOptions;
use weir_rtmp::handshake::Scheme;
use weir_shard::tls::{self, Trust};
use weir_shard::{Door, Session};

/// Where clients go, and what they ask for there.
struct Places {
    targets: Vec<Target>,
    doors: Vec<Door>,
    requests: Vec<Arc<ClientOptions>>,
}

struct Play {
    places: Places,
    options: PlayOptions,
    common: Arc<play::Common>,
}

struct Publish {
    places: Places,
    material: Material,
    common: Arc<publish::Common>,
}

pub(crate) fn play(urls: &[String], options: &PlayOptions) -> Result<Box<dyn Workload>, WorkloadError> {
    let places = Places::find("play", urls, &options.trust, |address| ClientOptions {
        buffer_length: options.playout_buffer.as_millis().clamp(1, u32::MAX.into()) as u32,
        handshake: options.rtmp.scheme(),
        ..ClientOptions::play(address.tc_url, address.app, address.stream)
    })?;
    let resume = options.rebuffer.unwrap_or(options.playout_buffer);
    let common = Arc::new(play::Common {
        timeouts: options.timeouts,
        playout: Playout::new(options.playout_buffer, resume),
        end_grace: options.end_grace,
        clock: HostClock::read(),
    });
    Ok(Box::new(Play { places, options: options.clone(), common }))
}

pub(crate) fn publish(urls: &[String], options: &PublishOptions) -> Result<Box<dyn Workload>, WorkloadError> {
    let places = Places::find("publish", urls, &options.trust, |address| ClientOptions {
        handshake: options.rtmp.scheme(),
        ..ClientOptions::publish(address.tc_url, address.app, address.stream)
    })?;
    let common = Arc::new(publish::Common {
        timeouts: options.timeouts,
        send_timeout: options.send_timeout,
        stamp: options.stamp,
        clock: HostClock::read(),
    });
    let material = Material::prepare(&options.material, options.stamp)?;
    Ok(Box::new(Publish { places, material, common }))
}

impl Workload for Play {
    fn schema(&self) -> Schema {
        SCHEMA
    }

    fn targets(&self) -> &[Target] {
        &self.places.targets
    }

    fn door(&self, client: u32) -> &Door {
        &self.places.doors[self.places.of(client)]
    }

    fn start(&self, slot: Slot, now: Moment, ledger: &mut Ledger) -> Box<dyn Session<Ledger>> {
        let request = self.places.requests[self.places.of(slot.client)].clone();
        let witness = self.options.is_witness(slot.client);
        let reading = if witness { Reading::Witness } else { Reading::Crowd };
        Box::new(Player::new(slot, request, self.common.clone(), reading, now, ledger))
    }

    fn describe(&self) -> String {
        format!("play {}", self.places.describe())
    }
}

impl Workload for Publish {
    fn schema(&self) -> Schema {
        SCHEMA
    }

    fn targets(&self) -> &[Target] {
        &self.places.targets
    }

    fn door(&self, client: u32) -> &Door {
        &self.places.doors[self.places.of(client)]
    }

    fn start(&self, slot: Slot, now: Moment, ledger: &mut Ledger) -> Box<dyn Session<Ledger>> {
        let request = self.places.requests[self.places.of(slot.client)].clone();
        let source = self.material.source();
        Box::new(Publisher::new(slot, request, self.common.clone(), source, now, ledger))
    }

    fn describe(&self) -> String {
        format!("publish {}", self.places.describe())
    }
}

impl Places {
    fn find(
        verb: &'static str,
        urls: &[String],
        trust: &Trust,
        request: impl Fn(Address) -> ClientOptions,
    ) -> Result<Self, WorkloadError> {
        let mut addresses: HashMap<(String, u16), SocketAddr> = HashMap::new();
        let mut tls = None;
        let mut places = Self { targets: Vec::new(), doors: Vec::new(), requests: Vec::new() };
        for url in urls {
            let target = Target::parse(url, verb, SCHEMES)?;
            places.requests.push(Arc::new(request(Address::of(&target)?)));
            let place = (target.host.clone(), target.port);
            let address = match addresses.get(&place) {
                Some(address) => *address,
                None => *addresses.entry(place).or_insert(target.resolve()?),
            };
            let secure = SCHEMES.iter().any(|scheme| scheme.name == target.scheme && scheme.secure);
            let tls = if secure {
                let config = match &tls {
                    Some(config) => Arc::clone(config),
                    None => Arc::clone(tls.insert(tls::client_config(trust)?)),
                };
                Some((config, target.server_name()?))
            } else {
                None
            };
            places.doors.push(Door { address, from: None, tls });
            places.targets.push(target);
        }
        Ok(places)
    }

    fn of(&self, client: u32) -> usize {
        client as usize % self.targets.len()
    }

    fn describe(&self) -> String {
        match &self.targets[..] {
            [only] => only.to_string(),
            [first, .., last] => format!("{first} … {last} ({} targets)", self.targets.len()),
            [] => String::new(),
        }
    }
}

impl RtmpOptions {
    fn scheme(&self) -> Scheme {
        if self.digest_handshake { Scheme::Digest } else { Scheme::Simple }
    }
}
