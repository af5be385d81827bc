//! Groups of MQTT publishers and subscribers.

use super::broker_path::BrokerPath;
use super::carrier::{Carrier, socket_request};
use super::identity::Identities;
use super::options::{MqttOptions, SubscriptionSettings};
use super::outage::Outages;
use super::publish::{self, Publisher};
use super::subscribe::{self, Subscriber, TopicFilters};
use super::template::MessageTemplate;
use super::topic::{self, Topic};
use super::{SCHEMA, SCHEMES, SOCKET_SCHEMES};
use crate::endpoints::{EndpointFinder, Endpoints};
use crate::host_clock::HostClock;
use crate::options::{PlayOptions, PublishOptions};
use crate::shard_recorder::ShardRecorder;
use crate::target::{Credentials, Target, scheme_of};
use crate::workload::{NewClient, Workload};
use crate::workload_error::WorkloadError;
use std::sync::Arc;
use std::time::Duration;
use weir_mqtt::Version;
use weir_mqtt::packet::SubscriptionOptions;
use weir_mqtt::topic::SHARE;
use weir_web::SocketRequest;

/// What is asked for at one target.
struct Request {
    target: Target,
    /// Those of its URL.
    credentials: Option<Credentials>,
    /// The WebSocket that carries it, if one does.
    socket: Option<Arc<SocketRequest>>,
}

/// Subscribers to these URLs, or clients that only connect to their brokers. Resolves names, so it may take a while.
///
/// # Errors
/// A URL that leads nowhere, TLS settings that cannot be made, or what CONNECT has no room for.
pub fn play(urls: &[String], options: &PlayOptions, mqtt: &MqttOptions) -> Result<Workload, WorkloadError> {
    let endpoints =
        endpoints("play", urls, EndpointFinder::new(SCHEMES, &options.tls).resolving(options.resolve), mqtt)?;
    let identities = Identities::new("sub", mqtt)?;
    let others = mqtt.filters.clone();
    let connect_only = mqtt.connect_only;
    for target in endpoints.targets.iter().filter(|_| !connect_only) {
        let templates: Vec<_> = others.iter().map(String::as_str).chain([topic::template(target)?]).collect();
        let of_url = target.credentials.as_ref().map(plain);
        let mut samples = identities.samples(&templates, of_url.as_ref());
        samples.try_for_each(|names| topic::filters(target, &others, &names).map(drop))?;
    }
    let shared_options = Arc::new(subscribe::SharedOptions {
        timeouts: options.timeouts,
        subscription: subscription_options(mqtt, &endpoints.targets)?,
        version: mqtt.version,
        clock: HostClock::read(),
        session: kept_session(mqtt),
        linger: mqtt.linger,
        published: mqtt.published.clone(),
        members_elsewhere: mqtt.members_elsewhere,
        start_gate: mqtt.start_gate.clone(),
        responds: mqtt.respond,
        retry_connect: mqtt.retry_connect,
    });
    let reconnect = mqtt.reconnect;
    let outages = outages(mqtt)?;
    let shared_subscriptions = mqtt.shared_subscriptions.clone().unwrap_or_default();
    let start = move |client: NewClient<'_, Request>, shard: &mut ShardRecorder| {
        let NewClient { planned, ref request, now, .. } = client;
        let (client_options, names) = identities.of(planned, request.credentials.as_ref());
        // Checked above, for any number of a client.
        let filters = match connect_only {
            true => Vec::new(),
            false => topic::filters(&request.target, &others, &names).unwrap_or_default(),
        };
        // One that is shared stands alone.
        let group = filters.first().and_then(|filter| shared_subscriptions.find(&request.target, filter));
        let filters = TopicFilters { filters, group };
        let path = broker_path(&client, reconnect, outages.as_ref());
        Subscriber::new(planned, client_options, filters, Arc::clone(&shared_options), path, now, shard)
    };
    let mut workload = Workload::new(SCHEMA, endpoints, start);
    workload.viewers_leave_last = true;
    workload.start_gate.clone_from(&mqtt.start_gate);
    workload.sends_secret |=
        !mqtt.given.is_empty() || mqtt.credentials.iter().any(|it| !it.password.is_empty());
    Ok(workload)
}

/// Publishers to these URLs. Resolves names and makes the payloads, so it may take a while.
///
/// # Errors
/// As [`play`], and payloads that cannot be made.
pub fn publish(
    urls: &[String],
    options: &PublishOptions,
    mqtt: &MqttOptions,
) -> Result<Workload, WorkloadError> {
    let endpoints = endpoints(
        "publish",
        urls,
        EndpointFinder::new(SCHEMES, &options.tls).resolving(options.resolve),
        mqtt,
    )?;
    let identities = Identities::new("pub", mqtt)?;
    for target in &endpoints.targets {
        let of_url = target.credentials.as_ref().map(plain);
        let mut samples = identities.samples(&[topic::template(target)?], of_url.as_ref());
        samples.try_for_each(|names| Topic::of(target, &names).map(drop))?;
        // One alias is one topic's.
        if mqtt.properties.topic_alias && topic::differs(target)? {
            let words = "topic_alias is of a topic that all messages of a publisher have; leave {seq}, {number:…} and {choice:…} out of \
                         the URL";
            return Err(WorkloadError::Options(words.to_owned()));
        }
    }
    if mqtt.version == Version::V311 && !mqtt.properties.is_empty() {
        let words = "MQTT 3.1.1 has no properties of messages (user_property, content_type, message_expiry, topic_alias); speak version 5";
        return Err(WorkloadError::Options(words.to_owned()));
    }
    if let Some(template) = &mqtt.response_topic {
        if mqtt.version == Version::V311 {
            let words = "MQTT 3.1.1 has no Response Topic; leave response_topic out, or speak version 5";
            return Err(WorkloadError::Options(words.to_owned()));
        }
        for target in &endpoints.targets {
            let of_url = target.credentials.as_ref().map(plain);
            let mut samples = identities.samples(&[template.as_str()], of_url.as_ref());
            samples.try_for_each(|names| topic::check_response_topic(&names.fill(template)))?;
        }
    }
    let properties = mqtt.properties.constant();
    let properties = properties.map_err(|error| WorkloadError::Options(error.to_string()))?;
    let payloads = mqtt.filling.payloads(mqtt.seed, mqtt.count);
    let payloads = payloads.map_err(|error| WorkloadError::Options(error.to_string()))?;
    let longest = match payloads.template() {
        Some(template) => MessageTemplate::longest(template, identities.longest_name()),
        None => payloads.longest(),
    };
    let shared_options = Arc::new(publish::SharedOptions {
        timeouts: options.timeouts,
        send_timeout: options.send_timeout,
        version: mqtt.version,
        qos: mqtt.qos,
        retain: mqtt.retain,
        rate: mqtt.rate,
        arrivals: mqtt.arrivals,
        seed: mqtt.seed,
        count: mqtt.count,
        mark: options.stamp,
        payloads,
        properties,
        topic_alias: mqtt.properties.topic_alias,
        clock: HostClock::read(),
        times: mqtt.times.clone(),
        keeps_session: mqtt.session.is_some(),
        linger: mqtt.linger,
        longest,
        published: mqtt.published.clone(),
        start_gate: mqtt.start_gate.clone(),
        waits: mqtt.wait_before_publishing,
        retry_connect: mqtt.retry_connect,
    });
    let (reconnect, outages) = (mqtt.reconnect, outages(mqtt)?);
    let response_topic = mqtt.response_topic.clone();
    let start = move |client: NewClient<'_, Request>, shard: &mut ShardRecorder| {
        let NewClient { planned, ref request, now, .. } = client;
        let (client_options, names) = identities.of(planned, request.credentials.as_ref());
        let topic = Topic::of(&request.target, &names).unwrap_or_default();
        let path = broker_path(&client, reconnect, outages.as_ref());
        let response_topic = response_topic.as_deref().map(|template| names.fill(template));
        Publisher::new(
            planned,
            client_options,
            (topic, response_topic, &names),
            Arc::clone(&shared_options),
            path,
            now,
            shard,
        )
    };
    let mut workload = Workload::new(SCHEMA, endpoints, start);
    workload.viewers_leave_last = true;
    workload.start_gate.clone_from(&mqtt.start_gate);
    workload.sends_secret |=
        !mqtt.given.is_empty() || mqtt.credentials.iter().any(|it| !it.password.is_empty());
    Ok(workload)
}

/// What is asked of subscriptions.
///
/// # Errors
/// What MQTT 3.1.1 cannot ask for, and what no shared subscription may.
fn subscription_options(
    mqtt: &MqttOptions,
    targets: &[Target],
) -> Result<SubscriptionOptions, WorkloadError> {
    let SubscriptionSettings { no_local, retain_as_published, retain_handling } = mqtt.subscription;
    let wrong = |words: &str| Err(WorkloadError::Options(words.to_owned()));
    if mqtt.version == Version::V311 && mqtt.subscription != SubscriptionSettings::USUAL {
        return wrong(
            "MQTT 3.1.1 has no options of subscriptions (no_local, retain_as_published, retain_handling); leave them out, or speak \
             version 5",
        );
    }
    // A protocol error (MQTT-3.8.3-4).
    if no_local
        && !mqtt.connect_only
        && targets.iter().any(|it| it.path.trim_start_matches('/').starts_with(SHARE))
    {
        return wrong("no_local is not of shared subscriptions; leave it out");
    }
    Ok(SubscriptionOptions { qos: mqtt.qos, no_local, retain_as_published, retain_handling })
}

fn endpoints(
    verb: &'static str,
    urls: &[String],
    mut finder: EndpointFinder,
    options: &MqttOptions,
) -> Result<Endpoints<Request>, WorkloadError> {
    let is_socket =
        |url: &String| scheme_of(url).is_ok_and(|name| SOCKET_SCHEMES.iter().any(|it| it.name == name));
    if !options.given.is_empty() && !urls.iter().all(is_socket) {
        let words = "fields (header) are of a WebSocket's request; write mqtt+ws:// or mqtt+wss://, or leave them out";
        return Err(WorkloadError::Options(words.to_owned()));
    }
    Endpoints::find(verb, urls, &mut finder, |target| {
        let credentials = target.credentials.as_ref().map(plain);
        let socket = socket_request(&target, options);
        Ok(Request { target, credentials, socket })
    })
}

/// For how long a broker is to keep the session of a subscriber. In 3.1.1 nothing says for how long (section 3.1.2.4).
fn kept_session(options: &MqttOptions) -> Duration {
    match (options.session, options.version) {
        (None, _) => Duration::ZERO,
        (Some(_), Version::V311) => Duration::MAX,
        (Some(span), Version::V5) => Duration::from_secs(span.as_secs()),
    }
}

fn outages(options: &MqttOptions) -> Result<Option<Arc<Outages>>, WorkloadError> {
    if options.break_every.is_some() && !options.reconnect {
        let words = "break_every is of clients that connect again; leave no_reconnect out";
        return Err(WorkloadError::Options(words.to_owned()));
    }
    if options.retry_connect && !options.reconnect {
        let words = "retry_connect is of clients that connect again; leave no_reconnect out";
        return Err(WorkloadError::Options(words.to_owned()));
    }
    Ok(options.break_every.map(|every| Arc::new(Outages::new(every))))
}

fn broker_path(
    client: &NewClient<'_, Request>,
    reconnect: bool,
    outages: Option<&Arc<Outages>>,
) -> BrokerPath {
    BrokerPath {
        outages: outages.cloned(),
        broker: client.name,
        again: reconnect.then(|| client.endpoint.clone()),
        carrier: Carrier::new(client.request.socket.clone()),
    }
}

/// User and password of a URL without percent-encoding (RFC 3986, section 2.1).
pub(super) fn plain(credentials: &Credentials) -> Credentials {
    let decoded = weir_web::credentials::decoded;
    Credentials { user: decoded(&credentials.user), password: decoded(&credentials.password) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_of_a_url_are_decoded() {
        for (encoded, decoded) in
            [("p%40ss%2Fw%3a", "p@ss/w:"), ("100%", "100%"), ("%zz%4", "%zz%4"), ("%+1", "%+1")]
        {
            let of_url = Credentials { user: encoded.to_owned(), password: encoded.to_owned() };
            let Credentials { user, password } = plain(&of_url);
            assert_eq!((&*user, &*password), (decoded, decoded));
        }
    }
}
