//! Groups of WebRTC viewers and publishers.

use super::connection::Terms;
use super::dialogue::Manner;
use super::play::{self, Errand, Player};
use super::publish::{self, Publisher};
use super::relay;
use super::request::Request;
use super::{OVEN_SCHEMES, RtcOptions, SCHEMA, WHEP_SCHEMES, WHIP_SCHEMES};
use crate::detour::Detours;
use crate::host_clock::HostClock;
use crate::ledger::{Ledger, Slot};
use crate::material::Material;
use crate::places::{Doors, Places};
use crate::playout::Playout;
use crate::target::{Scheme, Target, TargetError};
use crate::workload::{PlayOptions, PublishOptions, Workload, WorkloadError};
use std::sync::Arc;
use std::time::Instant;
use weir_media::AudioCodec;
use weir_metrics::{Moment, Schema};
use weir_rtc::sdp::OfferOptions;
use weir_rtc::transport::{Certificate, Clock};
use weir_shard::tls::ClientTls;
use weir_shard::{Door, Session};

struct Play {
    places: Places<Request>,
    options: PlayOptions,
    common: Arc<play::Common>,
}

struct Publish {
    places: Places<Request>,
    common: Arc<publish::Common>,
}

/// Viewers by WHEP.
pub(crate) fn whep(urls: &[String], options: &PlayOptions) -> Result<Box<dyn Workload>, WorkloadError> {
    play(urls, options, WHEP_SCHEMES, Manner::Http)
}

/// Viewers of OvenMediaEngine.
pub(crate) fn oven(urls: &[String], options: &PlayOptions) -> Result<Box<dyn Workload>, WorkloadError> {
    play(urls, options, OVEN_SCHEMES, Manner::Oven)
}

/// Publishers by WHIP.
pub(crate) fn whip(urls: &[String], options: &PublishOptions) -> Result<Box<dyn Workload>, WorkloadError> {
    let places = places("publish", urls, WHIP_SCHEMES, &options.tls, &options.rtc)?;
    let material = Material::prepare(&options.material.with_opus(), options.stamp)?;
    let has_sound = material.audio().is_some_and(|audio| audio.codec == AudioCodec::Opus);
    let audio = if has_sound { OfferOptions::PUBLISHER.audio } else { &[] };
    let offer_options = OfferOptions { audio, extensions: &[], ..OfferOptions::PUBLISHER };
    let common = Arc::new(publish::Common {
        terms: terms(Manner::Http, offer_options, &options.tls)?,
        timeouts: options.timeouts,
        material,
        stamp: options.stamp,
        clock: HostClock::read(),
    });
    Ok(Box::new(Publish { places, common }))
}

fn play(
    urls: &[String],
    options: &PlayOptions,
    schemes: &'static [Scheme],
    manner: Manner,
) -> Result<Box<dyn Workload>, WorkloadError> {
    let places = places("play", urls, schemes, &options.tls, &options.rtc)?;
    let resume = options.rebuffer.unwrap_or(options.playout_buffer);
    let common = Arc::new(play::Common {
        terms: terms(manner, offer_options(&options.rtc), &options.tls)?,
        timeouts: options.timeouts,
        playout: Playout::new(options.playout_buffer, resume),
        options: options.rtc.clone(),
        clock: HostClock::read(),
    });
    Ok(Box::new(Play { places, options: options.clone(), common }))
}

fn places(
    verb: &'static str,
    urls: &[String],
    schemes: &'static [Scheme],
    tls: &ClientTls,
    options: &RtcOptions,
) -> Result<Places<Request>, WorkloadError> {
    Places::find(verb, urls, &mut Doors::new(schemes, tls), |target| {
        let missing = "no path that HTTP can ask for; write for example whep+http://host/app/stream";
        let incomplete = || TargetError::Incomplete { url: target.to_string(), missing };
        Request::new(&target, options).ok_or_else(incomplete)
    })
}

fn terms(
    manner: Manner,
    offer_options: OfferOptions<'static>,
    tls: &ClientTls,
) -> Result<Arc<Terms>, WorkloadError> {
    let certificate =
        Certificate::generate().map_err(|error| WorkloadError::Certificate(error.to_string()))?;
    let clock = Clock::new(weir_shard::clock::now(), Instant::now());
    let detours = Detours::new(Doors::new(relay::SCHEMES, tls));
    Ok(Arc::new(Terms { manner, offer_options, clock, certificate, detours }))
}

/// What viewers want, and say that they will say.
fn offer_options(options: &RtcOptions) -> OfferOptions<'static> {
    let feedback: &[&str] = match (options.nack, options.bandwidth) {
        (true, true) => OfferOptions::VIEWER.feedback,
        (true, false) => &["nack", "nack pli", "ccm fir"],
        (false, true) => &["nack pli", "ccm fir", "transport-cc", "goog-remb"],
        (false, false) => &["nack pli", "ccm fir"],
    };
    OfferOptions { feedback, retransmission: options.nack, ..OfferOptions::VIEWER }
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
        let errand = Errand {
            request: self.places.request(slot.client),
            door: self.places.door(slot.client).clone(),
            witness: self.options.is_witness(slot.client),
            target: self.places.position(slot.client) as u32,
        };
        Box::new(Player::client(slot, errand, self.common.clone(), now, ledger))
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
        let door = self.places.door(slot.client).clone();
        Box::new(Publisher::client(slot, request, door, self.common.clone(), now, ledger))
    }

    fn describe(&self) -> String {
        format!("publish {}", self.places.describe())
    }
}
