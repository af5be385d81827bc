//! The seam to the engine: what a group of clients does, and how one of them is made.

use crate::client_session::{ClientSession, Driver};
use crate::decoding::Decoders;
use crate::endpoints::Endpoints;
use crate::reconnect::{Comeback, Return};
use crate::shard_recorder::{PlannedStart, ShardRecorder};
use crate::target::Target;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
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
    /// What the servers say that they are, if they were asked.
    pub versions: Vec<ServerVersion>,
    /// What decodes some of its witnesses.
    pub decoders: Option<Arc<Decoders>>,
    /// Whether its clients send a password, a token or a field that a person gave, which a link without TLS shows.
    pub sends_secret: bool,
    targets: Vec<Target>,
    /// The servers of the targets, if there are several: `host:port`, without the port if it is the scheme's own.
    servers: Vec<String>,
    /// Of each target, the position of its server.
    server_of: Vec<u16>,
    endpoints: Vec<Endpoint>,
    /// How long its clients try to come back when their links are lost.
    returns: Return,
    start: Start,
}

/// Makes a client.
type Start = Box<
    dyn Fn(
            PlannedStart,
            &Endpoint,
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
        let Endpoints { targets, endpoints, requests } = endpoints;
        let start =
            move |planned: PlannedStart, endpoint: &Endpoint, comeback, now, shard: &mut ShardRecorder| {
                let target = planned.client as usize % requests.len();
                let request = Arc::clone(&requests[target]);
                let client = start(NewClient { planned, target, request, endpoint, now }, shard);
                Box::new(Driver::new(client, comeback)) as Box<dyn Session<ShardRecorder>>
            };
        let start: Start = Box::new(start);
        let (servers, server_of) = by_server(&targets);
        let sends_secret = targets.iter().any(shows_password);
        Self {
            schema,
            viewers_leave_last: false,
            versions: Vec::new(),
            decoders: None,
            sends_secret,
            targets,
            servers,
            server_of,
            endpoints,
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
            versions: Vec::new(),
            decoders: None,
            sends_secret: false,
            targets: Vec::new(),
            servers: Vec::new(),
            server_of: Vec::new(),
            endpoints: Vec::new(),
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

    /// The servers that its clients go to, if there are several: `host:port`, without the port if it is the scheme's own.
    pub fn servers(&self) -> &[String] {
        &self.servers
    }

    /// The position of a client's server among [`Self::servers`]; 0 if there is but one.
    pub fn server(&self, client: u32) -> u16 {
        match &self.server_of[..] {
            [] => 0,
            servers => servers[client as usize % servers.len()],
        }
    }

    /// Where a client's link leads.
    pub fn endpoint(&self, client: u32) -> &Endpoint {
        &self.endpoints[client as usize % self.endpoints.len()]
    }

    /// A client whose link is being opened `now`; give it to [`weir_shard::Shard::open`].
    pub fn start(
        &self,
        planned: PlannedStart,
        now: Moment,
        shard: &mut ShardRecorder,
    ) -> Box<dyn Session<ShardRecorder>> {
        let endpoint = self.endpoint(planned.client);
        let returns = self.returns.is_asked_for();
        let comeback =
            returns.then(|| Box::new(Comeback::new(endpoint.clone(), planned.client, self.returns)));
        (self.start)(planned, endpoint, comeback, now, shard)
    }
}

/// Whether the password of a URL is sent as it is. RTMP sends what is made of it and of a challenge.
fn shows_password(target: &Target) -> bool {
    let password = target.credentials.as_ref().is_some_and(|it| !it.password.is_empty());
    password && !target.scheme.starts_with("rtmp")
}

/// The servers of targets, and of each target the position of its server; nothing if all have one.
fn by_server(targets: &[Target]) -> (Vec<String>, Vec<u16>) {
    let mut servers: Vec<String> = Vec::new();
    let positions = targets.iter().map(|target| {
        let base = target.base();
        let server = base.split_once("://").map_or(&*base, |(_, server)| server);
        let known = servers.iter().position(|known| known == server);
        let position = known.unwrap_or_else(|| {
            servers.push(server.to_owned());
            servers.len() - 1
        });
        position as u16
    });
    let positions: Vec<_> = positions.collect();
    if servers.len() < 2 { (Vec::new(), Vec::new()) } else { (servers, positions) }
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
