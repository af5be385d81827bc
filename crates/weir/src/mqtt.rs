//! What MQTT clients do, out of flags or of a scenario; and the password, which is in neither.

use std::path::Path;
use weir_clients::{Credentials, Filling, Framing, MqttOptions, MqttVersion, Qos, RecordFormat, Will};
use weir_engine::messaging::MqttSpec;
use weir_engine::scenario::Span;
use weir_metrics::BitRate;

/// The variables with user and password; they are in no list of processes, as arguments are.
const USER: &str = "WEIR_MQTT_USER";
const PASSWORD: &str = "WEIR_MQTT_PASSWORD";

/// Messages a second when nothing is said.
const DEFAULT_RATE: f64 = 1.0;

/// Whether URLs are of MQTT.
pub(crate) fn speaks(urls: &[String]) -> bool {
    urls.iter().any(|url| {
        let scheme = url.split("://").next().unwrap_or_default();
        scheme.eq_ignore_ascii_case("mqtt") || scheme.eq_ignore_ascii_case("mqtts")
    })
}

/// Whether a payload comes out of a file.
pub(crate) fn names_a_file(payload: &str) -> bool {
    ["file:", "avro:", "json:"].iter().any(|kind| payload.starts_with(kind))
}

/// The options of a workload's clients.
pub(crate) fn options(spec: &MqttSpec, seed: u64) -> Result<MqttOptions, String> {
    let usual = MqttOptions::default();
    let version = version(spec.version.as_deref()).map_err(|line| format!("mqtt: {line}"))?;
    let qos = spec.qos.unwrap_or(0);
    Ok(MqttOptions {
        version,
        credentials: credentials(spec)?,
        client_id: spec.client_id.clone(),
        session: spec.session.as_ref().map(Span::get),
        keep_alive: spec.keep_alive.as_ref().map_or(usual.keep_alive, Span::get),
        qos: Qos::from_bits(qos).ok_or_else(|| format!("mqtt: '{qos}' is no QoS; write 0, 1 or 2"))?,
        window: spec.window.unwrap_or(usual.window).max(1),
        reconnect: !spec.no_reconnect,
        // Set where the run is known.
        linger: usual.linger,
        published: None,
        will: spec.will.as_deref().map(will).transpose()?,
        rate: rate(spec)?,
        count: spec.count,
        filling: filling(spec)?,
        retain: spec.retain,
        seed,
        times: None,
    })
}

/// A version as a person writes it; 5 if nothing is said.
pub(crate) fn version(text: Option<&str>) -> Result<MqttVersion, String> {
    match text {
        None | Some("5" | "5.0") => Ok(MqttVersion::V5),
        Some("3.1.1" | "4") => Ok(MqttVersion::V311),
        Some(other) => Err(format!("'{other}' is no version; write 5 or 3.1.1")),
    }
}

/// What each publisher sends.
pub(crate) fn bit_rate(spec: &MqttSpec, seed: u64) -> Option<BitRate> {
    let size = filling(spec).ok()?.mean_size(seed, spec.count)?;
    Some(BitRate::from_bps(rate(spec).ok()? * size * 8.0))
}

fn rate(spec: &MqttSpec) -> Result<f64, String> {
    let Some(text) = &spec.rate else { return Ok(DEFAULT_RATE) };
    weir_metrics::parse_rate(text).map_err(|error| format!("mqtt: rate: {error}"))
}

fn filling(spec: &MqttSpec) -> Result<Filling, String> {
    let filling = match spec.payload.as_deref().map(|text| (text, text.split_once(':'))) {
        None => Filling::default(),
        Some((_, Some(("size", size)))) => size
            .parse()
            .map(Filling::Size)
            .map_err(|_| format!("mqtt: '{size}' is no number of bytes; write for example size:955"))?,
        Some((_, Some(("file", path)))) if !path.is_empty() => Filling::File(path.into()),
        Some((_, Some((kind @ ("avro" | "json"), path)))) if !path.is_empty() => {
            let format = if kind == "avro" { RecordFormat::Avro(framing(spec)?) } else { RecordFormat::Json };
            Filling::Records { schema: path.into(), format, records: spec.records.unwrap_or(1).max(1) }
        }
        Some((text, _)) => {
            let forms = "size:BYTES, file:PATH, avro:FILE.avsc or json:FILE.avsc";
            return Err(format!("mqtt: '{text}' is no payload; write {forms}"));
        }
    };
    let format = match &filling {
        Filling::Records { format, .. } => Some(format),
        _ => None,
    };
    if spec.records.is_some() && format.is_none() {
        return Err(
            "mqtt: records are of avro: and json: payloads; name a schema, or leave records out".into()
        );
    }
    if spec.avro_encoding.is_some() && !matches!(format, Some(RecordFormat::Avro(_))) {
        return Err("mqtt: avro_encoding is of avro: payloads; write avro:FILE.avsc, or leave it out".into());
    }
    Ok(filling)
}

fn framing(spec: &MqttSpec) -> Result<Framing, String> {
    let Some(name) = &spec.avro_encoding else { return Ok(Framing::Schemaless) };
    name.parse().map_err(|error| format!("mqtt: {error}"))
}

fn will(text: &str) -> Result<Will, String> {
    let (topic, payload) =
        text.split_once('=').ok_or_else(|| format!("mqtt: '{text}' is no will; write TOPIC=TEXT"))?;
    Ok(Will { topic: topic.to_owned(), payload: payload.as_bytes().to_vec() })
}

/// User and password of file and environment; those of a URL come before them.
fn credentials(spec: &MqttSpec) -> Result<Option<Credentials>, String> {
    credentials_of(spec.user.as_deref(), spec.password_file.as_deref())
}

/// User and password of flags, file and environment.
pub(crate) fn credentials_of(
    user: Option<&str>,
    password_file: Option<&Path>,
) -> Result<Option<Credentials>, String> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let Some(user) = user.map(str::to_owned).or_else(|| variable(USER)) else { return Ok(None) };
    let password = match password_file {
        Some(path) => first_line(path)?,
        None => variable(PASSWORD).unwrap_or_default(),
    };
    Ok(Some(Credentials { user, password }))
}

/// The first line of a file: a password.
pub(crate) fn first_line(path: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_options() {
        let spec = MqttSpec {
            version: Some("3.1.1".into()),
            qos: Some(1),
            rate: Some("10000/s".into()),
            count: Some(5_000),
            payload: Some("size:955".into()),
            will: Some("gone/x=bye=bye".into()),
            ..MqttSpec::default()
        };
        let made = options(&spec, 7).unwrap();
        assert_eq!((made.version, made.qos, made.rate), (MqttVersion::V311, Qos::AtLeastOnce, 10_000.0));
        assert_eq!(made.filling, Filling::Size(955));
        assert_eq!(made.will, Some(Will { topic: "gone/x".into(), payload: b"bye=bye".to_vec() }));
        assert_eq!(bit_rate(&spec, 0).unwrap().bps(), 76.4e6);
    }

    #[test]
    fn what_is_wrong_says_how_to_write_it() {
        let wrong = |spec: MqttSpec| options(&spec, 0).unwrap_err();
        let spec = MqttSpec::default;
        assert!(wrong(MqttSpec { version: Some("4.0".into()), ..spec() }).contains("write 5 or 3.1.1"));
        assert!(wrong(MqttSpec { qos: Some(3), ..spec() }).contains("write 0, 1 or 2"));
        assert!(
            wrong(MqttSpec { payload: Some("955".into()), ..spec() })
                .contains("size:BYTES, file:PATH, avro:")
        );
        assert!(wrong(MqttSpec { payload: Some("size:x".into()), ..spec() }).contains("size:955"));
        assert!(wrong(MqttSpec { records: Some(2), ..spec() }).contains("leave records out"));
        let json = || MqttSpec { payload: Some("json:a.avsc".into()), ..spec() };
        let encoding = Some("container".to_owned());
        assert!(wrong(MqttSpec { avro_encoding: encoding, ..json() }).contains("write avro:FILE.avsc"));
        let other =
            MqttSpec { payload: Some("avro:a.avsc".into()), avro_encoding: Some("x".into()), ..spec() };
        assert!(wrong(other).contains("write schemaless, single-object or container"));
        assert!(wrong(MqttSpec { will: Some("x".into()), ..spec() }).contains("TOPIC=TEXT"));
        assert!(wrong(MqttSpec { rate: Some("fast".into()), ..spec() }).contains("rate"));
    }
}
