//! The seam to the engine: what a group of clients does, and how one of them is made.

use crate::ledger::{Ledger, Slot};
use crate::material::MaterialError;
use crate::places::Places;
use crate::target::{Target, TargetError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use weir_metrics::{Moment, Schema};
use weir_shard::tls::TlsError;
use weir_shard::{Door, Session};

/// A group of clients that do the same. Client n goes to target n modulo the number of targets.
pub struct Workload {
    /// The figures that its clients fill.
    pub schema: Schema,
    /// Whether, of publishers and viewers in one run, the viewers leave last: what was sent last is to be received. Other
    /// viewers leave first, so that none sees its stream end.
    pub viewers_leave_last: bool,
    /// What the servers say that they are, if they were asked.
    pub servers: Vec<ServerVersion>,
    targets: Vec<Target>,
    doors: Vec<Door>,
    start: Start,
}

/// Makes a client.
type Start = Box<dyn Fn(Slot, &Door, Moment, &mut Ledger) -> Box<dyn Session<Ledger>> + Send + Sync>;

/// A client that is to be made.
#[derive(Debug)]
pub struct NewClient<'a, Request> {
    /// Which client it is.
    pub slot: Slot,
    /// The position of its target.
    pub target: usize,
    /// What it asks for there.
    pub request: Arc<Request>,
    /// The way there.
    pub door: &'a Door,
    /// When its link is begun.
    pub now: Moment,
}

impl Workload {
    /// Clients of these targets, each made by `start` when its link is begun.
    pub fn new<Request: Send + Sync + 'static>(
        schema: Schema,
        places: Places<Request>,
        start: impl Fn(NewClient<'_, Request>, &mut Ledger) -> Box<dyn Session<Ledger>> + Send + Sync + 'static,
    ) -> Self {
        let Places { targets, doors, requests } = places;
        let start = move |slot: Slot, door: &Door, now, ledger: &mut Ledger| {
            let target = slot.client as usize % requests.len();
            let request = Arc::clone(&requests[target]);
            start(NewClient { slot, target, request, door, now }, ledger)
        };
        let start: Start = Box::new(start);
        Self { schema, viewers_leave_last: false, servers: Vec::new(), targets, doors, start }
    }

    /// A workload that has no client on any shard: threads of its own fill its figures.
    pub fn without_clients(schema: Schema) -> Self {
        let start: Start = Box::new(|_, _, _, _| unreachable!("it has no targets, so no client is started"));
        let (targets, doors) = (Vec::new(), Vec::new());
        Self { schema, viewers_leave_last: false, servers: Vec::new(), targets, doors, start }
    }

    /// Its targets, in the order of their URLs.
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// Where a client's link leads.
    pub fn door(&self, client: u32) -> &Door {
        &self.doors[client as usize % self.doors.len()]
    }

    /// A client whose link is being opened `now`; give it to [`weir_shard::Shard::open`].
    pub fn start(&self, slot: Slot, now: Moment, ledger: &mut Ledger) -> Box<dyn Session<Ledger>> {
        (self.start)(slot, self.door(slot.client), now, ledger)
    }
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

/// A workload that cannot be had; says why and what to do.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// A URL leads nowhere.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// TLS settings could not be made.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// There is nothing to publish.
    #[error(transparent)]
    Material(#[from] MaterialError),
    /// The server did not say what there is to play, though it should.
    #[error("{0}")]
    Server(String),
    /// The options of the protocol ask for what cannot be.
    #[error("{0}")]
    Options(String),
}
