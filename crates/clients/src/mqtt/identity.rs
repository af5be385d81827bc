//! Who each client of a workload is: its identifier, its user, and what else of CONNECT is its own.

use super::draw::mixed;
use super::options::{MqttOptions, Will, nameless_session};
use super::template::{ClientNames, Part, parts};
use crate::shard_recorder::{PlannedStart, Turn};
use crate::target::{Credentials, Password};
use crate::workload_error::WorkloadError;
use weir_metrics::Moment;
use weir_mqtt::client::WillOptions;
use weir_mqtt::{ClientOptions, Property, PropertyBuffer, Version};

/// What CONNECT says, and whose it is.
pub(super) struct Identities {
    base: ClientOptions,
    /// What identifiers are made of: a template, or what each begins with.
    id: String,
    /// Whether the client's number follows an identifier that is no template.
    is_numbered: bool,
    credentials: Vec<Credentials>,
    /// The password of a user whose URL names none.
    password: Option<Password>,
    /// Where the random characters of clients come from: others in each workload of each run, or two of them would take
    /// their identifiers from each other.
    random: u64,
    /// What numbers and choices are drawn from: the same in each run of one seed.
    seed: u64,
    /// Bytes of the longest user name or identifier.
    longest_name: usize,
}

/// The will of CONNECT.
fn of_will(will: &Will, version: Version) -> Result<WillOptions, WorkloadError> {
    let Will { topic, payload, qos, retain, delay } = will.clone();
    let mut properties = PropertyBuffer::new();
    if !delay.is_zero() {
        if version == Version::V311 {
            let words = "MQTT 3.1.1 has no delay of a will (will_delay); leave it out, or speak version 5";
            return Err(WorkloadError::Options(words.to_owned()));
        }
        let seconds = delay.as_secs().min(u32::MAX.into()) as u32;
        let pushed = properties.push(Property::WillDelayInterval(seconds));
        pushed.map_err(|error| WorkloadError::Options(error.to_string()))?;
    }
    Ok(WillOptions { topic, payload, qos, retain, properties })
}

impl Identities {
    /// Those of a workload, whose clients are `pub` or `sub`.
    ///
    /// # Errors
    /// What CONNECT has no room for, or sessions of MQTT 3.1.1 without names.
    pub(super) fn new(role: &str, options: &MqttOptions) -> Result<Self, WorkloadError> {
        if options.leaves_sessions() {
            return Err(WorkloadError::Options(nameless_session()));
        }
        // Not the same in two runs, nor in two workloads of one.
        let micros = weir_shard::clock::wall_nanos() / 1_000;
        let own = || format!("weir-{role}-{:x}-{micros:x}", std::process::id());
        let id = options.client_id.clone().unwrap_or_else(own);
        let base = ClientOptions {
            clean_start: options.session.is_none(),
            session_expiry: options.session.map_or(0, |span| span.as_secs().min(u32::MAX.into()) as u32),
            keep_alive: options.keep_alive.as_secs().min(u16::MAX.into()) as u16,
            receive_maximum: options.window.max(1),
            // A broker that does not keep to it is measured all the same, as other subscribers would receive from it.
            strict_receive_maximum: false,
            window: options.window.max(1),
            topic_alias_maximum: options.topic_alias_maximum,
            will: options.will.as_ref().map(|will| of_will(will, options.version)).transpose()?,
            ..ClientOptions::new(options.version, "")
        };
        let mut identities = Self {
            base,
            id,
            is_numbered: true,
            credentials: options.credentials.clone(),
            password: options.password.clone(),
            random: fastrand::u64(..),
            seed: options.seed,
            longest_name: 0,
        };
        // The longest there are.
        let longest = |text: fn(&Credentials) -> &String| {
            identities.credentials.iter().map(text).max_by_key(|text| text.len()).cloned().unwrap_or_default()
        };
        let longest = Credentials { user: longest(|it| &it.user), password: longest(|it| &it.password) };
        let (checked, names) = identities.of(LAST, Some(&longest).filter(|it| !it.user.is_empty()));
        checked.check().map_err(|error| WorkloadError::Options(format!("mqtt: {error}")))?;
        identities.longest_name = names.id.len().max(names.user.len());
        Ok(identities)
    }

    /// The same, where the client's number need not follow an identifier that is no template: there is one client.
    pub(super) fn numbered(self, is_numbered: bool) -> Self {
        Self { is_numbered, ..self }
    }

    /// Bytes of the longest user name or identifier.
    pub(super) fn longest_name(&self) -> usize {
        self.longest_name
    }

    /// One client, and what it has for the places of templates. `of_url`: user and password of its URL.
    pub(super) fn of(
        &self,
        planned: PlannedStart,
        of_url: Option<&Credentials>,
    ) -> (ClientOptions, ClientNames) {
        let number = planned.number();
        let turns = self.credentials.len().max(1);
        let credentials = of_url.or_else(|| self.credentials.get(planned.client as usize % turns));
        let of_client = u64::from(number) << 32 | u64::from(planned.turn.number);
        let random = fastrand::Rng::with_seed(self.random ^ of_client).u64(..);
        let seed = mixed(self.seed, of_client);
        let mut names = ClientNames { number: number.to_string(), random, seed, ..ClientNames::default() };
        let user_name = credentials.map(|it| names.fill(&it.user));
        names.user = user_name.clone().unwrap_or_default();
        names.id = self.id(&names, planned.turn.number);
        let password = credentials.map(|it| it.password.clone()).filter(|password| !password.is_empty());
        let password =
            password.or_else(|| self.password.as_ref().filter(|_| of_url.is_some()).map(|it| it.0.clone()));
        let options = ClientOptions {
            client_id: names.id.clone(),
            user_name,
            password: password.map(String::into_bytes),
            ..self.base.clone()
        };
        (options, names)
    }

    /// What topics and payloads of any client may have in their places. Only the user names of a list differ in more than
    /// numbers; they are asked for where a text has a place for them.
    pub(super) fn samples<'a>(
        &'a self,
        templates: &[&str],
        of_url: Option<&'a Credentials>,
    ) -> impl Iterator<Item = ClientNames> + use<'a> {
        let named = |part| matches!(part, Part::User | Part::Id);
        let all = of_url.is_none() && templates.iter().any(|template| parts(template).any(named));
        let last = if all { self.credentials.len().max(1) } else { 1 };
        (0..last as u32).map(move |client| self.of(PlannedStart { client, ..FIRST }, of_url).1)
    }

    fn id(&self, names: &ClientNames, turn: u32) -> String {
        let of_client = |part| matches!(part, Part::Client | Part::User | Part::Random(_));
        // A client that replaces another has an identifier of its own, because the broker may still have the other's session.
        let number = if turn == 0 { names.number.clone() } else { format!("{}-{turn}", names.number) };
        if !parts(&self.id).any(of_client) {
            return if self.is_numbered { format!("{}-{number}", self.id) } else { self.id.clone() };
        }
        let is_own = parts(&self.id).any(|part| matches!(part, Part::Client | Part::Random(_)));
        let id = ClientNames { number, ..names.clone() }.fill(&self.id);
        if turn == 0 || is_own { id } else { format!("{id}-{turn}") }
    }
}

/// One with the first number.
pub(super) const FIRST: PlannedStart = PlannedStart {
    client: 0,
    workload: 0,
    cell: 0,
    at: Moment::from_nanos(0),
    turn: Turn { number: 0, mean_life: None },
};

/// One with the longest number, which counts from 1.
const LAST: PlannedStart =
    PlannedStart { client: u32::MAX - 1, turn: Turn { number: u32::MAX, mean_life: None }, ..FIRST };

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn of(options: &MqttOptions, client: u32, turn: u32) -> ClientOptions {
        let turn = Turn { number: turn, mean_life: None };
        Identities::new("sub", options).unwrap().of(PlannedStart { client, turn, ..FIRST }, None).0
    }

    fn id(template: &str, client: u32, turn: u32) -> String {
        let credentials = vec![Credentials::parse("kim:1"), Credentials::parse("lee")];
        let options = MqttOptions { client_id: Some(template.into()), credentials, ..MqttOptions::default() };
        of(&options, client, turn).client_id
    }

    #[test]
    fn identifiers_are_a_prefix_and_a_number_or_a_template() {
        for (template, first, second, successor) in [
            ("dev", "dev-1", "dev-2", "dev-1-4"),
            ("dev/{client}/x", "dev/1/x", "dev/2/x", "dev/1-4/x"),
            ("{user}", "kim", "lee", "kim-4"),
            ("{seq}", "{seq}-1", "{seq}-2", "{seq}-1-4"),
        ] {
            assert_eq!(
                [id(template, 0, 0), id(template, 1, 0), id(template, 0, 4)],
                [first, second, successor]
            );
        }
        let identities = |role| {
            let options = MqttOptions { client_id: Some("{random:12}".into()), ..MqttOptions::default() };
            Identities::new(role, &options).unwrap()
        };
        let one = identities("pub");
        let ids = [(0, 0), (1, 0), (0, 1)].map(|(client, number)| {
            let turn = Turn { number, mean_life: None };
            one.of(PlannedStart { client, turn, ..FIRST }, None).0.client_id
        });
        assert!(ids[0] != ids[1] && ids[0] != ids[2] && ids.iter().all(|id| id.len() == 12), "{ids:?}");
    }

    #[test]
    fn a_session_that_is_kept_for_ever_is_of_a_client_that_comes_back_under_its_name() {
        let refused = |version, client_id: Option<&str>, session| {
            let client_id = client_id.map(str::to_owned);
            let session = Some(Duration::from_secs(session)).filter(|it| !it.is_zero());
            let options = MqttOptions { version, client_id, session, ..MqttOptions::default() };
            Identities::new("sub", &options).err().map(|error| error.to_string())
        };
        for nameless in [None, Some("dev-{random:4}")] {
            assert!(refused(Version::V311, nameless, 60).unwrap().contains("say `client_id`"));
            assert_eq!(
                (refused(Version::V311, nameless, 0), refused(Version::V5, nameless, 60)),
                (None, None)
            );
        }
        assert_eq!(refused(Version::V311, Some("dev-{user}"), 60), None);
    }

    #[test]
    fn each_client_has_the_next_user_of_a_list_and_a_url_comes_before_it() {
        let credentials = vec![Credentials::parse("kim:1"), Credentials::parse("dev-{client}")];
        let options = MqttOptions { credentials, ..MqttOptions::default() };
        let users = [0, 1, 2, 3].map(|client| of(&options, client, 0));
        let named = users.each_ref().map(|it| it.user_name.as_deref().unwrap());
        assert_eq!(named, ["kim", "dev-2", "kim", "dev-4"]);
        assert_eq!(users.each_ref().map(|it| it.password.is_some()), [true, false, true, false]);
        let url = Credentials::parse("u:p");
        let (of_url, names) = Identities::new("sub", &options).unwrap().of(FIRST, Some(&url));
        assert_eq!((of_url.user_name.as_deref(), &*names.user), (Some("u"), "u"));
        let password = Some(Password("from a file".to_owned()));
        let identities = Identities::new("sub", &MqttOptions { password, ..options.clone() }).unwrap();
        for (url, sent) in [("u:p", "p"), ("u", "from a file")] {
            let of_url = identities.of(FIRST, Some(&Credentials::parse(url))).0;
            assert_eq!(of_url.password.as_deref(), Some(sent.as_bytes()), "{url}");
        }
        assert_eq!(identities.of(PlannedStart { client: 1, ..FIRST }, None).0.password, None, "of the list");
        let long = vec![Credentials::parse("a:b"), Credentials::parse(&"u".repeat(70_000))];
        let options = MqttOptions { credentials: long, ..MqttOptions::default() };
        assert!(
            Identities::new("sub", &options).err().is_some_and(|it| it.to_string().starts_with("mqtt: "))
        );
    }
}
