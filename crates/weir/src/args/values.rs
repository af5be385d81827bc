//! Values of options as they are written, each read once into its type.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use ipnet::IpNet;
use std::net::IpAddr;
use weir_engine::plan::arrival::Arrival;
use weir_engine::scenario::LoadKind;
use weir_origin::ChannelType;
use weir_ts::PacketSize;

pub(super) fn spaced(text: &str) -> Result<String, String> {
    text.parse::<Arrival>().map(|_| text.to_owned()).map_err(|error| error.to_string())
}

pub(super) fn arrival(text: &str) -> Result<String, String> {
    weir_metrics::parse_rate(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

pub(super) fn load_kind() -> impl TypedValueParser<Value = LoadKind> {
    let names = LoadKind::ALL.map(LoadKind::name);
    PossibleValuesParser::new(names).map(|name| LoadKind::named(&name).unwrap_or_default())
}

pub(super) fn precision(text: &str) -> Result<f64, String> {
    let share = weir_metrics::parse_quantity(text).map_err(|error| error.to_string())?.value;
    let fits = (0.001..=1.0).contains(&share);
    if fits {
        Ok(share)
    } else {
        Err(format!("'{text}' is not a share from 0.1% to 100%; write for example 5%"))
    }
}

pub(super) fn margin(text: &str) -> Result<f64, String> {
    let share = weir_metrics::parse_quantity(text).map_err(|error| error.to_string())?.value;
    let fits = (0.0..=1.0).contains(&share);
    if fits { Ok(share) } else { Err(format!("'{text}' is not a share up to 100%; write for example 2%")) }
}

pub(super) fn watch_text(text: &str) -> Result<String, String> {
    text.parse::<weir_observe::Watch>().map(|_| text.to_owned()).map_err(|error| error.to_string())
}

pub(super) fn packet_size(text: &str) -> Result<PacketSize, String> {
    match text {
        "188" => Ok(PacketSize::Plain),
        "192" => Ok(PacketSize::Timestamped),
        "204" => Ok(PacketSize::ReedSolomon),
        _ => Err(format!("'{text}' is not a size of a packet; known: 188, 192, 204")),
    }
}

pub(super) fn tag(text: &str) -> Result<(String, String), String> {
    let (key, value) =
        text.split_once('=').ok_or_else(|| format!("'{text}' is not a tag; write key=value"))?;
    Ok((key.to_owned(), value.to_owned()))
}

/// A key of a scenario with its value.
pub(super) fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| format!("'{text}' has no value; write KEY=VALUE, such as workloads.0.clients=5"))?;
    Ok((key.to_owned(), value.to_owned()))
}

/// A network, or a single address.
pub(super) fn network(text: &str) -> Result<IpNet, String> {
    let address = || text.parse::<IpAddr>().map(IpNet::from);
    text.parse().or_else(|_| address()).map_err(|_| {
        format!("'{text}' is not a network; write one such as 10.0.0.0/8, or an address such as 192.0.2.7")
    })
}

/// How many made services, of which kinds.
pub(super) type Services = Vec<(ChannelType, u16)>;

/// `8`, or `GR:4,BS:2`.
pub(super) fn services(text: &str) -> Result<Services, String> {
    let wrong = || format!("'{text}' is not a number of services; write 8, or GR:4,BS:3,CS:1");
    let number = |text: &str| text.trim().parse::<u16>().ok().filter(|n| (1..=1_000).contains(n));
    if let Some(all) = number(text) {
        return Ok(vec![(ChannelType::Gr, all)]);
    }
    let kinds = text.split(',').map(|part| {
        let (kind, count) = part.split_once(':').ok_or_else(wrong)?;
        Ok((kind.trim().parse().map_err(|_| wrong())?, number(count).ok_or_else(wrong)?))
    });
    kinds.collect()
}

/// `955`, `64KiB`, `16MiB`, up to what MQTT has room for.
pub(super) fn size(text: &str) -> Result<usize, String> {
    let wrong = || format!("'{text}' is not a size; write 955, 64KiB or 16MiB, at most 256MiB");
    let (number, unit) = match text.trim() {
        text if text.ends_with("MiB") => (text.trim_end_matches("MiB"), 1 << 20),
        text if text.ends_with("KiB") => (text.trim_end_matches("KiB"), 1 << 10),
        text => (text, 1),
    };
    let number: usize = number.trim().parse().map_err(|_| wrong())?;
    number.checked_mul(unit).filter(|size| (1..=256 << 20).contains(size)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_counted_by_kind() {
        assert_eq!(services("8").unwrap(), [(ChannelType::Gr, 8)]);
        assert_eq!(services("gr:4,BS:2").unwrap(), [(ChannelType::Gr, 4), (ChannelType::Bs, 2)]);
        assert!(services("0").is_err() && services("GR").is_err() && services("XX:1").is_err());
    }
}
