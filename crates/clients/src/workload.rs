//! The seam to the engine: what a group of clients does, and how one of them is made.

use crate::client_session::{ClientSession, Driver};
use crate::decoding::Decoders;
use crate::endpoints::Endpoints;
use crate::mqtt::StartGate;
use crate::reconnect::{Comeback, Return};
use crate::shard_recorder::{PlannedStart, ShardRecorder};
use crate::target::Target;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::sync::Arc;
use weir_metrics::{Moment, Schema};
use weir_shard::{Endpoint, Session};

/// A group of clients that do the same. Client n goes to target n modulo the number of targets.
pub struct Workload {
    /// The figures that its clients fill.
    pub schema: Schema,
    /// Whether, of publishers and viewers in one run, the viewers leave last: what was sent last is to be received. Other
    /// viewers leave first, so that none sees its stream end.
    pub viewers_leave_last: bool,
    /// Where its clients wait for those of others, if they do: it is to be told how many there will be.
    pub start_gate: Option<Arc<StartGate>>,
    /// What the servers say that they are, if they were asked.
    pub versions: Vec<ServerVersion>,
    /// What decodes some of its witnesses.
    pub decoders: Option<Arc<Decoders>>,
    /// Whether its clients send a password, a token or a field that a person gave, which a link without TLS shows.
    pub sends_secret: bool,
    /// What was known of it before it began that a person should know.
    pub warnings: Vec<String>,
    targets: Vec<Target>,
    /// The servers of the targets, if there are several: `host:port`, without the port if it is the scheme's own, and with the address
    /// where a name has several.
    servers: Vec<String>,
    /// Of each target, the ways that its clients take in turn.
    ways: Vec<Vec<TargetPath>>,
    /// How long its clients try to come back when their links are lost.
    returns: Return,
    start: Start,
}

/// A way to a target.
struct TargetPath {
    endpoint: Endpoint,
    /// The first address of the target's name, whichever this is.
    name: SocketAddr,
    /// The position of its server.
    server: u16,
}

/// Makes a client.
type Start = Box<
    dyn Fn(
            PlannedStart,
            &TargetPath,
            Option<Box<Comeback>>,
            Moment,
            &mut ShardRecorder,
        ) -> Box<dyn Session<ShardRecorder>>
        + Send
        + Sync,
>;

/// A client that is to be made.
#[derive(Debug)]
pub struct NewClient<'a, Request> {
    /// Which client it is.
    pub planned: PlannedStart,
    /// The position of its target.
    pub target: usize,
    /// What it asks for there.
    pub request: Arc<Request>,
    /// The way there.
    pub endpoint: &'a Endpoint,
    /// The first address of its target's name, whichever it goes to: what all clients of one name have in common.
    pub name: SocketAddr,
    /// When its link is begun.
    pub now: Moment,
}

impl Workload {
    /// Clients of these targets, each made by `start` when its link is begun.
    pub fn new<Request: Send + Sync + 'static, Client: ClientSession + 'static>(
        schema: Schema,
        endpoints: Endpoints<Request>,
        start: impl Fn(NewClient<'_, Request>, &mut ShardRecorder) -> Client + Send + Sync + 'static,
    ) -> Self {
        let Endpoints { targets, ways, requests, warnings } = endpoints;
        let start =
            move |planned: PlannedStart, way: &TargetPath, comeback, now, shard: &mut ShardRecorder| {
                let target = planned.client as usize % requests.len();
                shard.set_targets(planned.workload, requests.len());
                let request = Arc::clone(&requests[target]);
                let (endpoint, name) = (&way.endpoint, way.name);
                let client = start(NewClient { planned, target, request, endpoint, name, now }, shard);
                Box::new(Driver::new(client, comeback)) as Box<dyn Session<ShardRecorder>>
            };
        let start: Start = Box::new(start);
        let sends_secret = targets.iter().any(shows_password);
        let (servers, ways) = by_server(&targets, ways);
        Self {
            schema,
            viewers_leave_last: false,
            start_gate: None,
            versions: Vec::new(),
            decoders: None,
            sends_secret,
            warnings,
            targets,
            servers,
            ways,
            returns: Return::default(),
            start,
        }
    }

    /// A workload that has no client on any shard: threads of its own fill its figures.
    pub fn without_clients(schema: Schema) -> Self {
        let start: Start =
            Box::new(|_, _, _, _, _| unreachable!("it has no targets, so no client is started"));
        Self {
            schema,
            viewers_leave_last: false,
            start_gate: None,
            versions: Vec::new(),
            decoders: None,
            sends_secret: false,
            warnings: Vec::new(),
            targets: Vec::new(),
            servers: Vec::new(),
            ways: Vec::new(),
            returns: Return::default(),
            start,
        }
    }

    /// The same, some of whose witnesses are decoded.
    #[must_use]
    pub fn decoded_by(self, decoders: Option<Arc<Decoders>>) -> Self {
        Self { decoders, ..self }
    }

    /// The same with clients that come back when their links are lost, by [`ClientSession::begin_again`].
    #[must_use]
    pub fn returning(self, returns: Return) -> Self {
        Self { returns, ..self }
    }

    /// Its targets, in the order of their URLs.
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// The servers that its clients go to, if there are several: `host:port`, without the port if it is the scheme's own, and with the
    /// address where a name has several.
    pub fn servers(&self) -> &[String] {
        &self.servers
    }

    /// The position of a client's server among [`Self::servers`]; 0 if there is but one.
    pub fn server(&self, client: u32) -> u16 {
        if self.servers.is_empty() { 0 } else { self.way(client).server }
    }

    /// Where a client's link leads.
    pub fn endpoint(&self, client: u32) -> &Endpoint {
        &self.way(client).endpoint
    }

    /// Where its clients' links lead.
    pub fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.ways.iter().flatten().map(|way| &way.endpoint)
    }

    fn way(&self, client: u32) -> &TargetPath {
        let (client, targets) = (client as usize, self.ways.len());
        let ways = &self.ways[client % targets];
        &ways[client / targets % ways.len()]
    }

    /// A client whose link is being opened `now`; give it to [`weir_shard::Shard::open`].
    pub fn start(
        &self,
        planned: PlannedStart,
        now: Moment,
        shard: &mut ShardRecorder,
    ) -> Box<dyn Session<ShardRecorder>> {
        let (way, returns) = (self.way(planned.client), self.returns.is_asked_for());
        let comeback =
            returns.then(|| Box::new(Comeback::new(way.endpoint.clone(), planned.client, self.returns)));
        (self.start)(planned, way, comeback, now, shard)
    }
}

/// Whether the password of a URL is sent as it is. RTMP sends what is made of it and of a challenge.
fn shows_password(target: &Target) -> bool {
    let password = target.credentials.as_ref().is_some_and(|it| !it.password.is_empty());
    password && !target.scheme.name.starts_with("rtmp")
}

/// The servers of targets, nothing if all have one, and of each way to a target the position of its server.
fn by_server(targets: &[Target], ways: Vec<Vec<Endpoint>>) -> (Vec<String>, Vec<Vec<TargetPath>>) {
    let mut servers: Vec<String> = Vec::new();
    let mut position = |server: String| {
        let known = servers.iter().position(|known| *known == server);
        known.unwrap_or_else(|| {
            servers.push(server);
            servers.len() - 1
        }) as u16
    };
    let ways = targets.iter().zip(ways).map(|(target, endpoints)| {
        let base = target.base();
        let server = base.split_once("://").map_or(&*base, |(_, server)| server);
        let several = endpoints.len() > 1;
        let Some(name) = endpoints.first().map(|endpoint| endpoint.address) else { return Vec::new() };
        let way = |endpoint: Endpoint| {
            let address = endpoint.address.ip();
            let server = if several { format!("{server} ({address})") } else { server.to_owned() };
            TargetPath { endpoint, name, server: position(server) }
        };
        endpoints.into_iter().map(way).collect()
    });
    let ways = ways.collect();
    if servers.len() < 2 { (Vec::new(), ways) } else { (servers, ways) }
}

impl std::fmt::Debug for Workload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workload").field("targets", &self.targets).finish_non_exhaustive()
    }
}

/// The version of a server, in its own words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerVersion {
    /// The server, without secrets.
    pub url: String,
    /// Its version.
    pub version: String,
}
