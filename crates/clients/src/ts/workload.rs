//! Groups of viewers of transport streams.

use super::play::{Common, Player};
use super::request::Request;
use super::{SCHEMA, SCHEMES};
use crate::detour::Detours;
use crate::ledger::{Ledger, Slot};
use crate::places::{Doors, Places};
use crate::playout::Playout;
use crate::target::Target;
use crate::viewing::Reading;
use crate::workload::{PlayOptions, ServerVersion, Workload, WorkloadError};
use std::sync::Arc;
use weir_metrics::{Moment, Schema};
use weir_shard::{Door, Session};

/// A reader of a channel gets fifty times what a viewer gets, so that each witness costs as much more. All that it
/// knows beyond the others is its drift.
const FIRST_WITNESSES: u32 = 1;

struct Play {
    places: Places<Request>,
    options: PlayOptions,
    common: Arc<Common>,
    servers: Vec<ServerVersion>,
}

/// Who says that the streams are there.
pub(super) enum Source {
    /// Whoever wrote the URLs.
    Urls,
    /// Servers that have just listed them.
    Listed(Vec<ServerVersion>),
}

pub(crate) fn play(urls: &[String], options: &PlayOptions) -> Result<Box<dyn Workload>, WorkloadError> {
    let targets = urls.iter().map(|url| Target::parse(url, "play", SCHEMES)).collect::<Result<_, _>>()?;
    play_targets(targets, Doors::new(SCHEMES, &options.tls), options, Source::Urls)
}

/// Viewers of these streams.
pub(super) fn play_targets(
    targets: Vec<Target>,
    mut doors: Doors,
    options: &PlayOptions,
    source: Source,
) -> Result<Box<dyn Workload>, WorkloadError> {
    let places = Places::of(targets, &mut doors, |target| Ok(Request::new(target, &options.http)))?;
    let resume = options.rebuffer.unwrap_or(options.playout_buffer);
    let common = Arc::new(Common {
        timeouts: options.timeouts,
        playout: Playout::new(options.playout_buffer, resume),
        detours: Detours::new(doors),
        listed: matches!(source, Source::Listed(_)),
    });
    let servers = match source {
        Source::Urls => Vec::new(),
        Source::Listed(servers) => servers,
    };
    let options = PlayOptions { first_witnesses: FIRST_WITNESSES, ..options.clone() };
    Ok(Box::new(Play { places, options, common, servers }))
}

impl Workload for Play {
    fn schema(&self) -> Schema {
        SCHEMA
    }

    fn targets(&self) -> &[Target] {
        self.places.targets()
    }

    fn door(&self, client: u32) -> &Door {
        self.places.door(client)
    }

    fn start(&self, slot: Slot, now: Moment, ledger: &mut Ledger) -> Box<dyn Session<Ledger>> {
        let witness = self.options.is_witness(slot.client);
        let reading = if witness { Reading::Witness } else { Reading::Crowd };
        let request = self.places.request(slot.client);
        let target = self.places.position(slot.client) as u32;
        Box::new(Player::new(slot, target, request, self.common.clone(), reading, now, ledger))
    }

    fn servers(&self) -> &[ServerVersion] {
        &self.servers
    }

    fn describe(&self) -> String {
        format!("play {}", self.places.describe())
    }
}
