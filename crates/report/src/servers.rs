//! A row for each server of a workload that goes to several.

use crate::document::{Cell, Grid, Tone, columns};
use crate::quantity::{bit_rate, count, seconds};
use crate::quote::quote;
use weir_engine::summary::WorkloadSummary;

/// Characters of a server's name.
const NAME: usize = 60;

/// The table of servers; none if there is but one.
pub(crate) fn table(workload: &WorkloadSummary) -> Option<Grid> {
    if workload.servers.is_empty() {
        return None;
    }
    let rows = workload.servers.iter().map(|server| {
        let failed = Cell::text(count(server.failed));
        let startup = server.startup.as_ref();
        vec![
            Cell::text(quote(&server.server, NAME)),
            Cell::text(count(server.planned)),
            Cell::text(count(server.played)),
            if server.failed > 0 { failed.tone(Tone::Bad) } else { failed },
            startup.map_or_else(Cell::nothing, |it| Cell::text(seconds(it.p50))),
            startup.map_or_else(Cell::nothing, |it| Cell::text(seconds(it.p99))),
            server.client_bit_rate_bps.map_or_else(Cell::nothing, |bps| Cell::quantity(bit_rate(bps))),
        ]
    });
    Some(Grid {
        caption: "By server, ramps and drain included".to_owned(),
        columns: columns![
            word "Server", number "Clients", number "Played", number "Failed",
            number "Startup p50" / "Startup\np50", number "Startup p99" / "Startup\np99",
            number "Rate a client" / "Rate a\nclient",
        ],
        rows: rows.collect(),
    })
}
