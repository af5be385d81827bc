//! The table of protocols, and what is looked up in it by the scheme of a URL.

use crate::given::Given;
use crate::group::Group;
use crate::protocol::{DatagramCounts, Excess, Making, OwnExcess, Protocol, RunContext, Verb};
use crate::{bulk, hls, http_flv, mirakurun, mpegts, mqtt, rtmp, rtsp, srt, webrtc};
use weir_clients::{
    Column, Link, Placeholders, PlayOptions, PublishOptions, Scheme, TargetError, Workload, WorkloadError,
    expand, scheme_of,
};
use weir_metrics::common::{LOST, UNITS};
use weir_metrics::{Recorder, Schema};

/// Every protocol, a row each.
pub const PROTOCOLS: &[&Protocol] = &[
    &rtmp::PROTOCOL,
    &rtsp::PROTOCOL,
    &http_flv::PROTOCOL,
    &hls::PROTOCOL,
    &mpegts::PROTOCOL,
    &mirakurun::PROTOCOL,
    &srt::PROTOCOL,
    &webrtc::WHEP,
    &webrtc::WHIP,
    &webrtc::OVEN,
    &mqtt::PROTOCOL,
    &bulk::PROTOCOL,
];

/// Every scheme, in the order of the table.
pub fn schemes() -> impl Iterator<Item = &'static str> {
    PROTOCOLS.iter().flat_map(|protocol| protocol.schemes).map(|scheme| scheme.name)
}

/// The protocol of a scheme, in lower case.
pub fn of_scheme(scheme: &str) -> Option<&'static Protocol> {
    let has = |protocol: &&&Protocol| protocol.schemes.iter().any(|known| known.name == scheme);
    PROTOCOLS.iter().find(has).copied()
}

/// Whether what clients of a URL say goes by UDP from its first word on.
pub fn is_udp(url: &str) -> bool {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    let mut schemes = PROTOCOLS.iter().flat_map(|protocol| protocol.schemes);
    schemes.any(|it| it.name == scheme && it.link == Link::Udp)
}

/// The protocol of a URL, which its scheme says, and its path where a protocol has taken URLs of another's.
pub fn of_url(url: &str) -> Option<&'static Protocol> {
    let scheme = scheme_of(url).ok()?;
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let has = |schemes: &[Scheme]| schemes.iter().any(|known| known.name == scheme);
    let takes = |protocol: &&&Protocol| {
        protocol.suffix.is_some_and(|(schemes, suffix)| has(schemes) && path.ends_with(suffix))
    };
    PROTOCOLS.iter().find(takes).copied().or_else(|| of_scheme(&scheme))
}

/// The figures of the clients of a scheme, for reading back what they have written.
pub fn schema_of(scheme: &str) -> Option<Schema> {
    of_scheme(scheme).map(|protocol| protocol.schema)
}

/// Whether the units of a scheme are messages, whose number a second is what is asked for, and not a stream's bit rate.
pub fn has_messages(scheme: &str) -> bool {
    of_scheme(scheme).is_some_and(|protocol| protocol.ingest.is_some())
}

/// What viewers of a scheme leave behind when they end. None: nothing.
pub fn columns_of(scheme: &str) -> &'static [Column] {
    of_scheme(scheme).map_or(&[], |protocol| protocol.columns)
}

/// The warnings on the totals of clients of URLs with this scheme; none of totals that another weir wrote, which lack its figures.
pub fn warnings(scheme: &str, totals: &Recorder) -> Vec<String> {
    excesses(scheme, totals).filter_map(|excess| excess.warning(totals)).collect()
}

/// What weir itself did not do for clients of URLs with this scheme, by their totals.
pub fn own_excesses(scheme: &str, totals: &Recorder) -> Vec<OwnExcess> {
    excesses(scheme, totals).filter_map(|excess| excess.own(totals)).collect()
}

/// Datagrams with media that clients of URLs with this scheme sent and received, or should have received, by their totals.
pub fn datagrams(scheme: &str, totals: &Recorder) -> u64 {
    let counts = datagram_counts(scheme, totals);
    let counters = counts.map_or(&[UNITS, LOST][..], |counts| counts.with_media);
    counters.iter().map(|counter| totals.counter(*counter)).sum()
}

/// Datagrams that clients of URLs with this scheme sent and that were never acknowledged; 0 where that is not counted.
pub fn given_up(scheme: &str, totals: &Recorder) -> u64 {
    datagram_counts(scheme, totals)
        .and_then(|counts| counts.given_up)
        .map_or(0, |counter| totals.counter(counter))
}

fn datagram_counts(scheme: &str, totals: &Recorder) -> Option<DatagramCounts> {
    written_here(scheme, totals)?.datagrams
}

fn excesses(scheme: &str, totals: &Recorder) -> impl Iterator<Item = &'static Excess> {
    written_here(scheme, totals).map_or(&[][..], |protocol| protocol.excesses).iter()
}

/// The protocol of totals that have its figures, which those of another weir may lack.
fn written_here(scheme: &str, totals: &Recorder) -> Option<&'static Protocol> {
    of_scheme(scheme).filter(|it| it.schema.figures().count() == totals.schema().figures().count())
}

/// Checks that `{i}` and a number of streams come together, and that braces hold nothing else than what the protocol of each URL has.
///
/// # Errors
/// One without the other, or another placeholder.
pub fn check_templates(urls: &[String], streams: Option<u32>) -> Result<(), TargetError> {
    let placeholders = |url: &str| of_url(url).map_or(Placeholders::STREAM, |protocol| protocol.placeholders);
    weir_clients::check_templates(urls, streams, placeholders)
}

/// The options of all protocols for these verbs, each group once.
pub fn groups_of(verbs: &[Verb]) -> Vec<&'static Group> {
    let mut groups: Vec<&'static Group> = Vec::new();
    let options =
        verbs.iter().flat_map(|verb| PROTOCOLS.iter().filter_map(|protocol| protocol.options(*verb)));
    for group in options.flatten() {
        if !groups.iter().any(|known| known.is(group)) {
            groups.push(group);
        }
    }
    groups
}

/// Viewers of these URLs, in which `{i}` stands for 0 to `streams` − 1. Resolves names, so it may take a while.
///
/// # Errors
/// A URL that leads nowhere, TLS settings that cannot be made, or options that cannot be met.
pub fn play(
    urls: &[String],
    streams: u32,
    options: PlayOptions,
    given: &Given,
    run: &RunContext,
) -> Result<Workload, WorkloadError> {
    let urls: Vec<_> = urls.iter().flat_map(|url| expand(url, streams)).collect();
    let play = of_all(&urls, Verb::Play)?.play.as_ref().ok_or(TargetError::None)?;
    (play.make)(Making { urls: &urls, options, given, run })
}

/// Publishers to these URLs, as [`play`]. Makes the material, too.
///
/// # Errors
/// As [`play`], and material that cannot be made.
pub fn publish(
    urls: &[String],
    streams: u32,
    options: PublishOptions,
    given: &Given,
    run: &RunContext,
) -> Result<Workload, WorkloadError> {
    let urls: Vec<_> = urls.iter().flat_map(|url| expand(url, streams)).collect();
    let publish = of_all(&urls, Verb::Publish)?.publish.as_ref().ok_or(TargetError::None)?;
    (publish.make)(Making { urls: &urls, options, given, run })
}

/// The one protocol of all these URLs, which has workloads of this verb.
fn of_all(urls: &[String], verb: Verb) -> Result<&'static Protocol, WorkloadError> {
    let mut found: Option<(&'static Protocol, String)> = None;
    for url in urls {
        let scheme = scheme_of(url)?;
        check_named_path(url, &scheme)?;
        let protocol = of_url(url).filter(|protocol| protocol.options(verb).is_some());
        let Some(protocol) = protocol else {
            let speaks = PROTOCOLS.iter().filter(|protocol| protocol.options(verb).is_some());
            let known = speaks.flat_map(|protocol| protocol.schemes).map(|known| known.name);
            return Err(TargetError::unknown_scheme(url, verb.name(), scheme, known).into());
        };
        match &found {
            Some((first, _)) if std::ptr::eq(*first, protocol) => {}
            Some((_, first)) => {
                let words = format!("{first}:// and {scheme}:// in one workload; give each its own");
                return Err(WorkloadError::Options(words));
            }
            None => found = Some((protocol, scheme)),
        }
    }
    found.map(|(protocol, _)| protocol).ok_or_else(|| TargetError::None.into())
}

/// Refuses the plain URL of an endpoint, as servers print it, whose path ends with the name of the protocol that is spoken there: of
/// WHEP, WHIP and MQTT in WebSockets. It would be played as what plain URLs of its scheme are.
fn check_named_path(url: &str, scheme: &str) -> Result<(), WorkloadError> {
    let path = url.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    let path = path.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
    let Some(name) = path.and_then(|(_, path)| path.rsplit('/').next()) else { return Ok(()) };
    let meant = format!("{name}+{scheme}");
    match of_scheme(&meant) {
        Some(_) => Err(WorkloadError::Options(format!(
            "a path that ends in /{name} is of {meant}://: write that in place of {scheme}://"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_names_a_protocol_is_not_played_as_another() {
        for (url, meant) in [
            ("http://h/live/a/whep", Some("whep+http://")),
            ("https://h/rtc/v1/whip/?app=live", Some("whip+https://")),
            ("ws://h:8083/mqtt", Some("mqtt+ws://")),
            ("http://whep/live/a", None),
            ("http://whep", None),
            ("http://h/whep/a", None),
            ("whep+http://h/a/whep", None),
            ("rtmp://h/live/whep", None),
        ] {
            let scheme = scheme_of(url).unwrap();
            let said = check_named_path(url, &scheme).map_err(|error| error.to_string());
            match meant {
                Some(meant) => {
                    assert!(said.as_ref().is_err_and(|said| said.contains(meant)), "{url}: {said:?}");
                }
                None => assert_eq!(said, Ok(()), "{url}"),
            }
        }
    }
}
