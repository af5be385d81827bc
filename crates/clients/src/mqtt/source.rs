//! Topics to subscribe to, for code that is not a virtual client.

use super::carrier::socket_request;
use super::identity::{FIRST, Identities};
use super::workload::plain;
use super::{MqttOptions, SCHEMES, topic};
use crate::endpoints::EndpointFinder;
use crate::shard_recorder::PlannedStart;
use crate::target::Target;
use crate::workload_error::WorkloadError;
use std::sync::Arc;
use weir_mqtt::ClientOptions;
use weir_shard::Endpoint;
use weir_shard::tls::ClientTls;
use weir_web::SocketRequest;

/// What a URL such as `mqtt://user:password@host/topic/#` leads to.
#[derive(Clone, Debug)]
pub struct MqttSource {
    /// The URL's parts; shown without user and password.
    pub target: Target,
    /// The way to the broker.
    pub endpoint: Endpoint,
}

/// A subscriber of a source.
#[derive(Debug)]
pub struct MqttSubscriber {
    /// What CONNECT says.
    pub options: ClientOptions,
    /// The topic filter.
    pub filter: String,
    /// The WebSocket that carries its packets, if one does.
    pub socket: Option<Arc<SocketRequest>>,
}

impl MqttSource {
    /// Reads a URL and finds the way. Asks the resolver, so it may take a while.
    ///
    /// # Errors
    /// A URL that leads nowhere or has no topic filter, or TLS settings that cannot be made.
    pub fn find(url: &str, tls: &ClientTls) -> Result<Self, WorkloadError> {
        let target = Target::parse(url, "ingest", SCHEMES)?;
        topic::template(&target)?;
        let endpoint = EndpointFinder::new(SCHEMES, tls).find(&target)?;
        Ok(Self { target, endpoint })
    }

    /// The topic filter as the URL has it, which may be a template.
    pub fn filter(&self) -> &str {
        topic::template(&self.target).unwrap_or_default()
    }

    /// Subscriber `number` of several, from 0; or the only one, whose identifier is not numbered.
    ///
    /// # Errors
    /// A malformed topic filter, or what CONNECT has no room for.
    pub fn subscriber(
        &self,
        number: Option<u32>,
        options: &MqttOptions,
    ) -> Result<MqttSubscriber, WorkloadError> {
        let identities = Identities::new("ingest", options)?.numbered(number.is_some());
        let planned = PlannedStart { client: number.unwrap_or(0), ..FIRST };
        let of_url = self.target.credentials.as_ref().map(plain);
        let (client, names) = identities.of(planned, of_url.as_ref());
        Ok(MqttSubscriber {
            options: client,
            filter: topic::filters(&self.target, &[], &names)?.swap_remove(0),
            socket: socket_request(&self.target, options),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Credentials;

    fn subscriber(url: &str, number: Option<u32>, client_id: &str) -> MqttSubscriber {
        let source = MqttSource::find(url, &ClientTls::default()).unwrap();
        let credentials = vec![Credentials::parse("kim:1"), Credentials::parse("dev-{client}:2")];
        let options = MqttOptions {
            client_id: Some(client_id.into()),
            socket_path: "/broker".into(),
            credentials,
            ..MqttOptions::default()
        };
        source.subscriber(number, &options).unwrap()
    }

    #[test]
    fn subscribers_have_names_users_and_filters_of_their_own_and_the_only_one_the_name_it_was_given() {
        let url = "mqtt+ws://127.0.0.1:81/$share/g/{user}/{id}/#";
        for (number, id, expected) in [
            (None, "saver", ("saver", "kim", "$share/g/kim/saver/#")),
            (Some(0), "saver", ("saver-1", "kim", "$share/g/kim/saver-1/#")),
            (Some(1), "saver", ("saver-2", "dev-2", "$share/g/dev-2/saver-2/#")),
            (None, "{user}-{client}", ("kim-1", "kim", "$share/g/kim/kim-1/#")),
            (Some(1), "{user}", ("dev-2", "dev-2", "$share/g/dev-2/dev-2/#")),
        ] {
            let subscriber = subscriber(url, number, id);
            let user = subscriber.options.user_name.as_deref().unwrap();
            assert_eq!((&*subscriber.options.client_id, user, &*subscriber.filter), expected);
            let socket = subscriber.socket.unwrap();
            assert_eq!((&*socket.authority, &*socket.path), ("127.0.0.1:81", "/broker"));
        }
        let of_url = subscriber("mqtt://lee:x%40y@127.0.0.1/a", None, "saver");
        assert_eq!((of_url.options.user_name.as_deref(), of_url.socket.is_none()), (Some("lee"), true));
        assert_eq!(of_url.options.password.as_deref(), Some(&b"x@y"[..]));
    }

    #[test]
    fn what_is_no_filter_is_refused_at_the_latest_when_its_places_are_filled() {
        let find = |url| MqttSource::find(url, &ClientTls::default());
        assert!(find("mqtt://127.0.0.1/").is_err());
        let wild = MqttOptions { credentials: vec![Credentials::parse("a+b:1")], ..MqttOptions::default() };
        let refused = find("mqtt://127.0.0.1/{user}/#").unwrap().subscriber(None, &wild);
        assert!(refused.unwrap_err().to_string().contains("+ must be a whole level"));
    }
}
