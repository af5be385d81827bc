//! What is asked of a server over HTTP: a session (POST), its end (DELETE), a WebSocket.

use super::{RtcOptions, WHIP_SCHEMES};
use crate::http_request::http_scheme;
use crate::target::Target;
use std::net::{IpAddr, SocketAddr};
use url::{Host, Position, Url};
use weir_rtc::signalling::http::{SDP, TRICKLE};
use weir_shard::Endpoint;
use weir_web::uri::{authority, is_same_server, origin_form};
use weir_web::{GivenFields, Message, credentials};

/// What to ask for, and where.
#[derive(Clone)]
pub(super) struct Request {
    /// The target as a URL of HTTP.
    url: Url,
    /// The bearer token of the request; it is never shown.
    authorization: Option<String>,
    /// What a person adds to each request.
    given: GivenFields,
    /// Whether it is for publishing.
    publishes: bool,
}

impl Request {
    /// A request for a target; `None` if its URL is not an HTTP URL.
    pub(super) fn new(target: &Target, options: &RtcOptions) -> Option<Self> {
        let base = target.base();
        let place = base.split_once("://").map(|(_, place)| place)?;
        let scheme = http_scheme(target.scheme.link).name;
        let url = Url::parse(&format!("{scheme}://{place}{}", origin_form(&target.path))).ok()?;
        let authorization = options.token.as_deref().map(credentials::bearer);
        let given = options.given.clone();
        Some(Self { url, authorization, given, publishes: WHIP_SCHEMES.contains(&target.scheme) })
    }

    /// Whether a session is asked for to publish in.
    pub(super) fn publishes(&self) -> bool {
        self.publishes
    }

    /// The URL that relative ones of the answer start from.
    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// The host that is asked.
    pub(super) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// Whether media is to come by a relay, as players of OvenMediaEngine ask for it: `?transport=tcp`, and since its
    /// version 0.20, where that may also mean TCP without a relay, `?transport=relay`.
    pub(super) fn wants_relay(&self) -> bool {
        let mut pairs = self.url.query_pairs();
        pairs.any(|(name, value)| {
            name == "transport" && matches!(&*value.to_ascii_lowercase(), "tcp" | "relay")
        })
    }

    /// Whether its URL is signed as OvenMediaEngine's signed policies are: by a policy and its signature.
    pub(super) fn is_signed(&self) -> bool {
        self.url.query_pairs().any(|(name, _)| name.to_ascii_lowercase().contains("signature"))
    }

    /// The way to a resource, `home` being that to the target: the same, or an address that needs neither a name
    /// server nor TLS.
    pub(super) fn endpoint_of(&self, resource: &Url, home: &Endpoint) -> Option<Endpoint> {
        if is_same_server(resource, &self.url) {
            return Some(home.clone());
        }
        let address: IpAddr = match resource.host()? {
            Host::Ipv4(address) => address.into(),
            Host::Ipv6(address) => address.into(),
            Host::Domain(_) => return None,
        };
        let port = resource.port_or_known_default().filter(|_| resource.scheme() == "http")?;
        Some(Endpoint::tcp(SocketAddr::new(address, port)))
    }

    /// Asks for a session (draft-ietf-wish-whep section 4.2).
    pub(super) fn post(&self, offer: &str) -> Vec<u8> {
        let message = self.message("POST", &self.url).field("Content-Type", SDP).field("Accept", SDP);
        message.body(offer).keep_alive(false).end()
    }

    /// Ends a session (section 4.5).
    pub(super) fn delete(&self, resource: &Url) -> Vec<u8> {
        self.message("DELETE", resource).body("").keep_alive(false).end()
    }

    /// Sends candidates (section 4.3, RFC 9725 section 4.3.1).
    pub(super) fn patch(&self, resource: &Url, entity_tag: Option<&str>, fragment: &str) -> Vec<u8> {
        let message = self.message("PATCH", resource).field("Content-Type", TRICKLE);
        message.maybe("If-Match", entity_tag).body(fragment).keep_alive(false).end()
    }

    /// Where a WebSocket is asked for.
    pub(super) fn upgrade(&self) -> Message {
        self.message("GET", &self.url).field("Origin", self.url.origin().ascii_serialization())
    }

    fn message(&self, method: &str, url: &Url) -> Message {
        let target = &url[Position::BeforePath..Position::AfterQuery];
        let message = Message::request(method, target, &authority(url));
        // A token is for the server that was named, not for places that it makes up.
        if !is_same_server(url, &self.url) {
            return message;
        }
        message.maybe("Authorization", self.authorization.as_ref()).given(&self.given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtc::{OVEN_SCHEMES, WHEP_SCHEMES};

    fn text(bytes: &[u8]) -> String {
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[test]
    fn an_offer_is_posted_with_its_token_and_its_length() {
        let target = Target::parse("whep+https://h/rtc/v1/whep/?app=live&stream=x", "play", WHEP_SCHEMES);
        let options = RtcOptions { token: Some("secret".to_owned()), ..RtcOptions::default() };
        let request = Request::new(&target.unwrap(), &options).unwrap();
        let posted = text(&request.post("v=0\r\n"));
        assert!(
            posted.starts_with("POST /rtc/v1/whep/?app=live&stream=x HTTP/1.1\r\nHost: h\r\n"),
            "{posted}"
        );
        assert!(posted.contains("\r\nAuthorization: Bearer secret\r\n"));
        assert!(posted.ends_with("Content-Length: 5\r\nConnection: close\r\n\r\nv=0\r\n"), "{posted}");
        let resource = request.url().join("/session/7?secret=9").unwrap();
        assert!(text(&request.delete(&resource)).starts_with("DELETE /session/7?secret=9 HTTP/1.1\r\n"));
        let patched = text(&request.patch(&resource, Some("\"7\""), "a=x\r\n"));
        assert!(patched.starts_with("PATCH /session/7?secret=9 HTTP/1.1\r\n"), "{patched}");
        assert!(patched.contains("\r\nIf-Match: \"7\"\r\nContent-Length: 5\r\n"), "{patched}");
        let home = Endpoint::tcp("10.0.0.1:443".parse().unwrap());
        let endpoint = |url: &str| {
            request.endpoint_of(&Url::parse(url).unwrap(), &home).map(|endpoint| endpoint.address.to_string())
        };
        assert_eq!(request.endpoint_of(&resource, &home).unwrap().address, home.address);
        assert_eq!(endpoint("http://10.0.0.2:8/x").as_deref(), Some("10.0.0.2:8"));
        assert_eq!(
            (endpoint("https://g/"), endpoint("http://g/"), endpoint("https://10.0.0.2/")),
            (None, None, None)
        );
    }

    #[test]
    fn a_relay_is_wanted_by_the_query() {
        for (url, wants) in [
            ("ws://h/app/stream?transport=tcp", true),
            ("ws://h/app/stream?a=b&transport=TCP", true),
            ("ws://h/app/stream?transport=relay", true),
            ("ws://h/app/stream?transport=udp", false),
            ("ws://h/app/transport=tcp", false),
        ] {
            let target = Target::parse(url, "play", OVEN_SCHEMES).unwrap();
            assert_eq!(Request::new(&target, &RtcOptions::default()).unwrap().wants_relay(), wants, "{url}");
        }
    }

    #[test]
    fn a_websocket_is_asked_for_at_its_path() {
        let target = Target::parse("ws://[::1]:3333/app/stream", "play", OVEN_SCHEMES).unwrap();
        let request = Request::new(&target, &RtcOptions::default()).unwrap();
        let asked = text(&request.upgrade().end());
        assert!(asked.starts_with("GET /app/stream HTTP/1.1\r\nHost: [::1]:3333\r\n"), "{asked}");
        assert!(asked.contains("\r\nOrigin: http://[::1]:3333\r\n"), "{asked}");
    }
}
