//! Services of a Mirakurun or mirakc server: found through its API before the run, then read as any stream.

use super::SCHEMES as HTTP;
use super::fetch::{FetchError, fetch};
use super::workload::{self, Source};
use crate::endpoints::EndpointFinder;
use crate::http_request::{HttpOptions, Request, http_scheme};
use crate::options::PlayOptions;
use crate::target::{Scheme, Target};
use crate::workload::{ServerVersion, Workload};
use crate::workload_error::WorkloadError;
use serde::Deserialize;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use weir_setting::{CHANNEL_TYPE, SERVICE, SERVICES};
use weir_web::uri::query_value;

/// The schemes of such servers.
pub const SCHEMES: &[Scheme] = &[Scheme::tcp("mirakurun+http", 40_772), Scheme::tls("mirakurun+https", 443)];

/// `service_type` of digital television (ETSI EN 300 468, table 87; ARIB STD-B10, table 6-35).
const TELEVISION: u32 = 1;

/// Which services, and how they are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MirakurunOptions {
    /// How many services, or all that are named or of the named types.
    pub services: Option<u32>,
    /// These: by id, by name, by channel (`GR/27`).
    pub named: Vec<String>,
    /// Those of these types: `GR`, `BS`, `CS`, `SKY`.
    pub types: Vec<String>,
    /// Leave descrambling out (`decode=0`).
    pub no_decode: bool,
    /// Whose wish goes first if tuners are short (`X-Mirakurun-Priority`).
    pub priority: Option<i32>,
    /// mirakc: names of filters before its own.
    pub pre_filters: Vec<String>,
    /// mirakc: names of filters behind its own.
    pub post_filters: Vec<String>,
}

/// Services that could not be found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiscoveryError {
    /// The server gave no answer.
    #[error("{url}: {source}; is this a Mirakurun or mirakc server?")]
    Fetch {
        /// The URL, without secrets.
        url: String,
        /// The error of the request.
        source: FetchError,
    },
    /// The answer is not what the API has there.
    #[error("{url}: the answer is not that of Mirakurun or mirakc: {words}")]
    NoApi {
        /// The URL, without secrets.
        url: String,
        /// The parser's words.
        words: String,
    },
    /// Nothing says which services.
    #[error(
        "{url}: say which services: {}, {} or {}",
        SERVICES.to("8"),
        SERVICE.to("NAME"),
        CHANNEL_TYPE.to("GR")
    )]
    NoChoice {
        /// The server.
        url: String,
    },
    /// A named service is not there.
    #[error("{url}: no service or channel is '{wanted}'; it has {known}")]
    NoSuchService {
        /// The server.
        url: String,
        /// What was asked for.
        wanted: String,
        /// Some that are there.
        known: String,
    },
    /// There are not as many.
    #[error("{url}: {wanted} services are asked for and there are {there}{of}")]
    TooFew {
        /// The server.
        url: String,
        /// How many were asked for.
        wanted: u32,
        /// How many there are.
        there: usize,
        /// Of which kind.
        of: String,
    },
}

impl DiscoveryError {
    /// Whether the server is at fault, and not what was asked of it.
    fn is_of_server(&self) -> bool {
        matches!(self, Self::Fetch { .. } | Self::NoApi { .. })
    }
}

/// The fields of a service that are needed here (`Service` in the API of Mirakurun).
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Service {
    id: u64,
    service_id: u32,
    #[serde(default)]
    name: String,
    #[serde(default)]
    r#type: Option<u32>,
    #[serde(default)]
    channel: Option<Channel>,
}

/// A channel of a service, or of `/api/channels` with its services.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Channel {
    r#type: String,
    channel: String,
    #[serde(default)]
    services: Vec<ServiceOfChannel>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct ServiceOfChannel {
    id: u64,
}

#[derive(Deserialize)]
struct Version {
    current: String,
}

impl From<DiscoveryError> for WorkloadError {
    fn from(error: DiscoveryError) -> Self {
        let words = error.to_string();
        if error.is_of_server() { Self::Server(words) } else { Self::Options(words) }
    }
}

/// Viewers of services of these servers, which are asked for them.
///
/// # Errors
/// A URL that leads nowhere, TLS settings that cannot be made, a server that does not say what it has, or has not what
/// is asked for.
pub fn play(
    urls: &[String],
    options: &PlayOptions,
    http: &HttpOptions,
    mirakurun: &MirakurunOptions,
) -> Result<Workload, WorkloadError> {
    let mut finder = EndpointFinder::new(HTTP, &options.tls).resolving(options.resolve);
    let mut targets = Vec::new();
    let mut servers = Vec::new();
    for url in urls {
        let server = Server::new(Target::parse(url, "play", SCHEMES)?, http)?;
        // Resolved here, so that a name without an address is the same error as for every other URL.
        finder.find(&server.root)?;
        let services = server.find(mirakurun, &mut finder)?;
        for service in services {
            targets.push(server.stream(&service, mirakurun)?);
        }
        servers.extend(server.version(&mut finder));
    }
    let mut http = http.clone();
    if let Some(priority) = mirakurun.priority {
        http.fields.push(("X-Mirakurun-Priority", priority.to_string()));
    }
    workload::play_targets(targets, finder, options, &http, Source::Listed(servers))
}

/// A server whose API is asked.
struct Server<'a> {
    /// The same over HTTP, with what stands before `/api`.
    root: Target,
    options: &'a HttpOptions,
}

impl<'a> Server<'a> {
    fn new(target: Target, options: &'a HttpOptions) -> Result<Self, WorkloadError> {
        let scheme = http_scheme(target.scheme.link).name;
        let host = if target.host.contains(':') { format!("[{}]", target.host) } else { target.host.clone() };
        let path = target.path.split(['?', '#']).next().unwrap_or("").trim_end_matches('/');
        let path = path.strip_suffix("/api").unwrap_or(path);
        let mut root = Target::parse(&format!("{scheme}://{host}:{}{path}", target.port), "play", HTTP)?;
        root.credentials = target.credentials;
        Ok(Self { root, options })
    }

    fn at(&self, path: &str) -> Target {
        let mut target = self.root.clone();
        target.path.push_str(path);
        target
    }

    /// A document of the API.
    fn get<T: for<'de> Deserialize<'de>>(
        &self,
        path: &str,
        finder: &mut EndpointFinder,
    ) -> Result<T, DiscoveryError> {
        let target = self.at(path);
        let url = target.to_string();
        let document = fetch(Request::new(target, self.options), finder)
            .map_err(|source| DiscoveryError::Fetch { url: url.clone(), source })?;
        serde_json::from_slice(&document)
            .map_err(|error| DiscoveryError::NoApi { url, words: error.to_string() })
    }

    /// The services to read, in their order.
    fn find(
        &self,
        options: &MirakurunOptions,
        finder: &mut EndpointFinder,
    ) -> Result<Vec<Service>, DiscoveryError> {
        let url = self.root.to_string();
        if options.services.is_none() && options.named.is_empty() && options.types.is_empty() {
            return Err(DiscoveryError::NoChoice { url });
        }
        let mut services: Vec<Service> = self.get("/api/services", finder)?;
        // Services may lack their channel; then the list of channels has it.
        if services.iter().any(|service| service.channel.is_none()) {
            put_into_channels(&mut services, &self.get::<Vec<Channel>>("/api/channels", finder)?);
        }
        choose(&url, &services, options)
    }

    /// Where a service's stream is.
    fn stream(&self, service: &Service, options: &MirakurunOptions) -> Result<Target, WorkloadError> {
        let mut path = format!("/api/services/{}/stream?decode={}", service.id, u8::from(!options.no_decode));
        for (key, names) in [("pre-filters", &options.pre_filters), ("post-filters", &options.post_filters)] {
            for (number, name) in names.iter().enumerate() {
                let _ = write!(path, "&{key}[{number}]={}", query_value(name));
            }
        }
        let mut target = self.at(&path);
        target.label = Some(service.label());
        Ok(target)
    }

    /// What the server says it is; not every server does.
    fn version(&self, finder: &mut EndpointFinder) -> Option<ServerVersion> {
        let version: Version = self.get("/api/version", finder).ok()?;
        Some(ServerVersion { url: self.root.to_string(), version: version.current })
    }
}

impl Service {
    fn is_of(&self, types: &[String]) -> bool {
        let of = |channel: &Channel| types.iter().any(|name| name.eq_ignore_ascii_case(&channel.r#type));
        types.is_empty() || self.channel.as_ref().is_some_and(of)
    }

    /// Type and channel: `GR/27`.
    fn place(&self) -> String {
        self.channel
            .as_ref()
            .map_or(String::new(), |channel| format!("{}/{}", channel.r#type, channel.channel))
    }

    fn label(&self) -> String {
        let name = if self.name.is_empty() { self.id.to_string() } else { self.name.clone() };
        let label = format!("{} {name}", self.place());
        // A name is the broadcaster's own.
        label.chars().filter(|character| !character.is_control()).collect::<String>().trim_start().to_owned()
    }

    fn is(&self, wanted: &str) -> bool {
        wanted == self.id.to_string() || wanted == self.name
    }

    /// By what may stand for several: the service id of the broadcaster, the channel.
    fn may_be(&self, wanted: &str) -> bool {
        wanted == self.service_id.to_string() || wanted.eq_ignore_ascii_case(&self.place())
    }
}

/// Gives services without a channel the first one that has them. One look at each channel and each service, however many
/// a server says it has.
fn put_into_channels(services: &mut [Service], channels: &[Channel]) {
    let mut channel_of: HashMap<u64, &Channel> = HashMap::new();
    for channel in channels {
        for service in &channel.services {
            channel_of.entry(service.id).or_insert(channel);
        }
    }
    for service in services.iter_mut().filter(|service| service.channel.is_none()) {
        let channel = channel_of.get(&service.id);
        // What else the channel has is not needed, and may be long.
        service.channel = channel.map(|channel| Channel {
            r#type: channel.r#type.clone(),
            channel: channel.channel.clone(),
            services: Vec::new(),
        });
    }
}

/// The services that are asked for: all that are named, else television of the named types; of these the first of
/// each channel before the second of any, so that as many tuners work as can.
fn choose(
    url: &str,
    services: &[Service],
    options: &MirakurunOptions,
) -> Result<Vec<Service>, DiscoveryError> {
    let url = || url.to_owned();
    let mut chosen: Vec<Service> = Vec::new();
    for wanted in &options.named {
        let of_type = || services.iter().filter(|service| service.is_of(&options.types));
        let found = of_type().find(|service| service.is(wanted));
        let Some(found) = found.or_else(|| of_type().find(|service| service.may_be(wanted))) else {
            let known: Vec<_> =
                of_type().take(8).map(|service| format!("{} ({})", service.label(), service.id)).collect();
            let more = if of_type().count() > 8 { ", …" } else { "" };
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") + more };
            return Err(DiscoveryError::NoSuchService { url: url(), wanted: wanted.clone(), known });
        };
        chosen.push(found.clone());
    }
    if options.named.is_empty() {
        let television = services.iter().filter(|service| {
            service.r#type.is_none_or(|kind| kind == TELEVISION) && service.is_of(&options.types)
        });
        let mut channels = HashSet::new();
        let (first, others): (Vec<_>, Vec<_>) = television
            .cloned()
            .partition(|service| service.channel.is_none() || channels.insert(service.place()));
        chosen = [first, others].concat();
    }
    let wanted = options.services.unwrap_or(if options.named.is_empty() { 1 } else { 0 });
    if chosen.len() < wanted as usize {
        let of = if options.types.is_empty() {
            String::new()
        } else {
            format!(" of {}", options.types.join(", "))
        };
        return Err(DiscoveryError::TooFew { url: url(), wanted, there: chosen.len(), of });
    }
    if let Some(services) = options.services {
        chosen.truncate(services as usize);
    }
    Ok(chosen)
}

/// Reads what a server says that it has, and chooses from it in every way that there is.
#[cfg(any(test, feature = "fuzz"))]
pub(crate) fn services(document: &[u8]) {
    let Ok(mut services) = serde_json::from_slice::<Vec<Service>>(document) else { return };
    let channels = serde_json::from_slice::<Vec<Channel>>(document).unwrap_or_default();
    put_into_channels(&mut services, &channels);
    let target = Target::parse("mirakurun+http://127.0.0.1:40772", "play", SCHEMES).expect("a URL");
    let server = Server { root: target, options: &HttpOptions::default() };
    let names =
        services.iter().flat_map(|service| [service.name.clone(), service.place(), service.id.to_string()]);
    let named: Vec<String> = names.take(6).collect();
    let types = services.iter().filter_map(|service| Some(service.channel.as_ref()?.r#type.clone()));
    let types: Vec<String> = types.take(1).collect();
    for (named, types) in [(vec![], types.clone()), (named.clone(), vec![]), (named, types)] {
        for wanted in [None, Some(1), Some(u32::MAX)] {
            let filter = named.first().cloned().into_iter().collect();
            let options = MirakurunOptions {
                services: wanted,
                named: named.clone(),
                types: types.clone(),
                pre_filters: filter,
                ..MirakurunOptions::default()
            };
            let Ok(chosen) = choose("http://h", &services, &options) else { continue };
            for service in &chosen {
                let target = server.stream(service, &options).expect("a target");
                let request = Request::new(target, server.options);
                let lines = request.bytes().split(|byte| *byte == b'\n').count();
                assert_eq!(lines, 8, "{}", String::from_utf8_lossy(request.bytes()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn services() -> Vec<Service> {
        serde_json::from_str(
            r#"[
            {"id": 3273601024, "serviceId": 1024, "networkId": 32736, "name": "One", "type": 1,
             "channel": {"type": "GR", "channel": "27"}},
            {"id": 3273601025, "serviceId": 1025, "networkId": 32736, "name": "One, second", "type": 1,
             "channel": {"type": "GR", "channel": "27"}},
            {"id": 3273601408, "serviceId": 1408, "networkId": 32736, "name": "One, data", "type": 192,
             "channel": {"type": "GR", "channel": "27"}},
            {"id": 3273701032, "serviceId": 1032, "networkId": 32737, "name": "Two", "type": 1,
             "channel": {"type": "GR", "channel": "26"}},
            {"id": 400101, "serviceId": 101, "networkId": 4, "name": "Three",
             "channel": {"type": "BS", "channel": "BS15_0"}}]"#,
        )
        .unwrap()
    }

    fn chosen(options: &MirakurunOptions) -> Result<Vec<String>, DiscoveryError> {
        choose("http://h/", &services(), options).map(|found| found.into_iter().map(|it| it.name).collect())
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn so_many_services_are_of_as_many_channels_as_there_are() {
        let some = |services| MirakurunOptions { services: Some(services), ..MirakurunOptions::default() };
        assert_eq!(chosen(&some(2)).unwrap(), ["One", "Two"]);
        assert_eq!(chosen(&some(4)).unwrap(), ["One", "Two", "Three", "One, second"]);
        let said = chosen(&some(5)).unwrap_err().to_string();
        assert_eq!(said, "http://h/: 5 services are asked for and there are 4");
    }

    #[test]
    fn services_are_chosen_by_type_and_by_any_of_their_names() {
        let types = texts(&["bs", "GR"]);
        let options = MirakurunOptions { types: texts(&["bs"]), ..MirakurunOptions::default() };
        assert_eq!(chosen(&options).unwrap(), ["Three"]);
        let named = texts(&["3273601408", "Two", "GR/27", "101", "bs/bs15_0"]);
        let options = MirakurunOptions { named, types, ..MirakurunOptions::default() };
        assert_eq!(chosen(&options).unwrap(), ["One, data", "Two", "One", "Three", "Three"]);
    }

    #[test]
    fn what_is_not_there_is_said_with_what_is() {
        let options = MirakurunOptions { named: texts(&["Four"]), ..MirakurunOptions::default() };
        let said = chosen(&options).unwrap_err().to_string();
        assert!(said.contains("no service or channel is 'Four'; it has GR/27 One (3273601024), "), "{said}");
        let options = MirakurunOptions { types: texts(&["SKY"]), ..MirakurunOptions::default() };
        let said = chosen(&options).unwrap_err().to_string();
        assert_eq!(said, "http://h/: 1 services are asked for and there are 0 of SKY");
    }

    #[test]
    fn a_stream_is_asked_for_as_the_api_has_it() {
        let options = MirakurunOptions {
            no_decode: true,
            pre_filters: texts(&["a b"]),
            post_filters: texts(&["x", "y"]),
            ..MirakurunOptions::default()
        };
        let http = HttpOptions::default();
        for (url, base) in [
            ("mirakurun+http://h", "http://h:40772"),
            ("mirakurun+https://[::1]:8443/tv/", "https://[::1]:8443/tv"),
            ("mirakurun+http://h:80/api", "http://h"),
        ] {
            let server = Server::new(Target::parse(url, "play", SCHEMES).unwrap(), &http).unwrap();
            let target = server.stream(&services()[0], &options).unwrap();
            let path = "/api/services/3273601024/stream?decode=0&pre-filters[0]=a%20b&post-filters[0]=x&post-filters[1]=y";
            assert_eq!(format!("{}{}", target.base(), target.path), format!("{base}{path}"));
            assert_eq!(target.label.as_deref(), Some("GR/27 One"));
        }
    }

    /// To look for each service in all channels would take time by the square of their number.
    #[test]
    fn services_find_their_channels_however_many_there_are() {
        const MANY: u64 = 150_000;
        let channel = |number: u64, services: &mut dyn Iterator<Item = u64>| Channel {
            r#type: "GR".to_owned(),
            channel: number.to_string(),
            services: services.map(|id| ServiceOfChannel { id }).collect(),
        };
        let mut channels: Vec<Channel> =
            (0..MANY).map(|number| channel(number, &mut std::iter::once(MANY + number))).collect();
        channels.push(channel(MANY, &mut (0..MANY)));
        channels.push(channel(MANY + 1, &mut (0..MANY)));
        let mut services: Vec<Service> = (0..2 * MANY + 1)
            .map(|id| Service { id, service_id: 1, name: String::new(), r#type: None, channel: None })
            .collect();
        put_into_channels(&mut services, &channels);
        let place = |id: u64| services[id as usize].place();
        assert_eq!(
            [place(7), place(MANY + 7), place(2 * MANY)],
            [format!("GR/{MANY}"), "GR/7".into(), String::new()]
        );
    }

    #[test]
    fn an_answer_with_more_or_less_than_is_needed_is_read() {
        let text = r#"[{"id": 1, "serviceId": 2, "new": {"x": []}, "channel": null, "name": "A"}]"#;
        let services: Vec<Service> = serde_json::from_str(text).unwrap();
        assert_eq!(services[0].label(), "A");
        assert!(serde_json::from_str::<Vec<Service>>(r#"{"error": 1}"#).is_err());
    }
}
