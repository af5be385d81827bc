//! What the paths mean: a subset of the API that Mirakurun and mirakc share, and `/N.ts`.

use super::answer::{document, error};
use crate::tuner::{Catalogue, Service, Station};
use serde::Serialize;
use serde_json::{Value, json};
use weir_shard::clock;
use weir_web::{Message, Request};

/// What a path leads to.
pub(super) enum Resource {
    /// An answer that is known at once.
    Answer(Message),
    /// The stream of a service, by its place.
    Stream(usize),
}

/// A service in `/api/services`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServiceBody<'a> {
    id: u64,
    service_id: u16,
    network_id: u16,
    transport_stream_id: u16,
    name: &'a str,
    /// `service_type` of the SDT (ETSI EN 300 468 table 87): digital television.
    r#type: u8,
    logo_id: i32,
    has_logo_data: bool,
    remote_control_key_id: usize,
    epg_ready: bool,
    channel: ChannelOf<'a>,
}

/// The channel of a service.
#[derive(Serialize)]
struct ChannelOf<'a> {
    r#type: &'a str,
    channel: &'a str,
}

/// A channel in `/api/channels`.
#[derive(Serialize)]
struct ChannelBody<'a> {
    r#type: &'a str,
    channel: &'a str,
    name: &'a str,
    services: Vec<ServiceOf<'a>>,
}

/// A service of a channel.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServiceOf<'a> {
    id: u64,
    service_id: u16,
    network_id: u16,
    transport_stream_id: u16,
    name: &'a str,
}

/// What a request leads to.
pub(super) fn find(tuners: &Catalogue, request: &Request) -> Resource {
    let path = request.segments();
    let path: Vec<&str> = path.iter().map(|part| &**part).collect();
    let by_id = |id: &str| {
        let id: u64 = id.parse().ok()?;
        tuners.stations.iter().position(|station| station.service.id() == id)
    };
    let on_channel = |service: &Service, kind: &str, channel: &str| {
        service.channel_type.name() == kind && service.channel == channel
    };
    let by_channel = |kind: &str, channel: &str, sid: Option<&str>| {
        tuners.stations.iter().position(|station| {
            let service = &station.service;
            on_channel(service, kind, channel)
                && sid.is_none_or(|sid| {
                    sid == service.service_id.to_string() || sid == service.id().to_string()
                })
        })
    };
    let stream = match *path {
        ["api", "services", id, "stream"] => by_id(id),
        ["api", "channels", kind, channel, "stream"] => by_channel(kind, channel, None),
        ["api", "channels", kind, channel, "services", sid, "stream"] => by_channel(kind, channel, Some(sid)),
        [name] => tuners.station_of(&format!("/{name}")),
        _ => None,
    };
    if let Some(place) = stream {
        return Resource::Stream(place);
    }
    let all = 0..tuners.stations.len();
    let value = match *path {
        ["api", "version"] => {
            json!({ "current": env!("CARGO_PKG_VERSION"), "latest": env!("CARGO_PKG_VERSION") })
        }
        ["api", "status"] => status(tuners),
        ["api", "services"] => filtered(all.map(|place| service(tuners, place)), request),
        ["api", "services", id] => match by_id(id) {
            Some(place) => service(tuners, place),
            None => return not_found(),
        },
        ["api", "channels"] => filtered(all.map(|place| channel(tuners, place)), request),
        ["api", "channels", kind] => {
            let of_kind = |place: &usize| tuners.stations[*place].service.channel_type.name() == kind;
            filtered(all.filter(of_kind).map(|place| channel(tuners, place)), request)
        }
        ["api", "channels", kind, name] => match by_channel(kind, name, None) {
            Some(place) => channel(tuners, place),
            None => return not_found(),
        },
        ["api", "channels", kind, name, "services"] => {
            let there = |place: &usize| on_channel(&tuners.stations[*place].service, kind, name);
            filtered(all.filter(there).map(|place| service(tuners, place)), request)
        }
        _ => return not_found(),
    };
    Resource::Answer(document(&value))
}

fn not_found() -> Resource {
    Resource::Answer(error(404, None))
}

fn service(tuners: &Catalogue, place: usize) -> Value {
    let service = &tuners.stations[place].service;
    json!(ServiceBody {
        id: service.id(),
        service_id: service.service_id,
        network_id: service.network_id,
        transport_stream_id: service.service_id,
        name: &service.name,
        r#type: 1,
        logo_id: -1,
        has_logo_data: false,
        remote_control_key_id: place + 1,
        epg_ready: false,
        channel: ChannelOf { r#type: service.channel_type.name(), channel: &service.channel },
    })
}

fn channel(tuners: &Catalogue, place: usize) -> Value {
    let service = &tuners.stations[place].service;
    json!(ChannelBody {
        r#type: service.channel_type.name(),
        channel: &service.channel,
        name: &service.name,
        services: vec![ServiceOf {
            id: service.id(),
            service_id: service.service_id,
            network_id: service.network_id,
            transport_stream_id: service.service_id,
            name: &service.name,
        }],
    })
}

fn status(tuners: &Catalogue) -> Value {
    let audiences = tuners.stations.iter().map(Station::readers);
    let (open, readers) =
        audiences.fold((0, 0), |(open, all), readers| (open + u64::from(readers > 0), all + readers));
    json!({
        "time": clock::wall_nanos() / 1_000_000,
        "version": env!("CARGO_PKG_VERSION"),
        "process": {
            "arch": std::env::consts::ARCH,
            "platform": std::env::consts::OS,
            "pid": std::process::id(),
        },
        "epg": { "gatheringNetworks": [], "storedEvents": 0 },
        "rpcCount": 0,
        "streamCount": { "tunerDevice": open, "tsFilter": readers, "decoder": 0 },
        "errorCount": {
            "uncaughtException": 0,
            "unhandledRejection": 0,
            "bufferOverflow": 0,
            "tunerDeviceRespawn": 0,
            "decoderRespawn": 0,
        },
    })
}

/// Those in which every key of the query has its value: `?channel.type=GR&serviceId=1024`.
fn filtered(values: impl Iterator<Item = Value>, request: &Request) -> Value {
    let matches = |value: &Value| {
        request.query.iter().all(|(key, wanted)| {
            let found = key.split('.').try_fold(value, |value, key| value.get(key));
            match found {
                Some(Value::String(text)) => text == wanted,
                Some(other) => wanted.parse::<Value>().is_ok_and(|wanted| wanted == *other),
                None => false,
            }
        })
    };
    values.filter(matches).collect()
}
