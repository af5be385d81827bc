//! Groups of RTMP players and publishers.

use super::address::Address;
use super::play::{self, Player};
use super::publish::{self, Publisher};
use super::{RtmpOptions, SCHEMA, SCHEMES};
use crate::host_clock::HostClock;
use crate::ledger::{Ledger, Slot};
use crate::material::Material;
use crate::places::{Doors, Places};
use crate::playout::Playout;
use crate::target::Target;
use crate::viewing::Reading;
use crate::workload::{PlayOptions, PublishOptions, Workload, WorkloadError};
use std::sync::Arc;
use weir_metrics::{Moment, Schema};
use weir_rtmp::ClientOptions;
use weir_rtmp::handshake::Scheme;
use weir_shard::{Door, Session};

struct Play {
    places: Places<ClientOptions>,
    options: PlayOptions,
    common: Arc<play::Common>,
}

struct Publish {
    places: Places<ClientOptions>,
    material: Material,
    common: Arc<publish::Common>,
}

pub(crate) fn play(urls: &[String], options: &PlayOptions) -> Result<Box<dyn Workload>, WorkloadError> {
    let places = Places::find("play", urls, &mut Doors::new(SCHEMES, &options.tls), |target| {
        let address = Address::of(&target)?;
        Ok(ClientOptions {
            buffer_length: options.playout_buffer.as_millis().clamp(1, u32::MAX.into()) as u32,
            handshake: options.rtmp.scheme(),
            ..ClientOptions::play(address.tc_url, address.app, address.stream)
        })
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
    let places = Places::find("publish", urls, &mut Doors::new(SCHEMES, &options.tls), |target| {
        let address = Address::of(&target)?;
        Ok(ClientOptions {
            handshake: options.rtmp.scheme(),
            ..ClientOptions::publish(address.tc_url, address.app, address.stream)
        })
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
        self.places.targets()
    }

    fn door(&self, client: u32) -> &Door {
        self.places.door(client)
    }

    fn start(&self, slot: Slot, now: Moment, ledger: &mut Ledger) -> Box<dyn Session<Ledger>> {
        let request = self.places.request(slot.client);
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
        self.places.targets()
    }

    fn door(&self, client: u32) -> &Door {
        self.places.door(client)
    }

    fn start(&self, slot: Slot, now: Moment, ledger: &mut Ledger) -> Box<dyn Session<Ledger>> {
        let request = self.places.request(slot.client);
        let source = self.material.source();
        Box::new(Publisher::new(slot, request, self.common.clone(), source, now, ledger))
    }

    fn describe(&self) -> String {
        format!("publish {}", self.places.describe())
    }
}

impl RtmpOptions {
    fn scheme(&self) -> Scheme {
        if self.digest_handshake { Scheme::Digest } else { Scheme::Simple }
    }
}
