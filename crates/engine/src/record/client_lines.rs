//! Which clients have a line of their own in `events.ndjson`: those that are kept one by one in memory. Of the others the sums are
//! written.

use crate::clients::reader_record::ReaderRecord;
use crate::clients::reservoir::Reservoir;
use crate::clients::sums::ClientSums;
use crate::record::event::EventLine;
use std::collections::BTreeMap;

/// Sums over the clients without a line, by workload.
pub(crate) const LEFT_OUT: &str = "left_out.json";

/// By workload.
pub(crate) type LeftOut = BTreeMap<u16, ClientSums>;

/// Lines of clients, as they end.
#[derive(Debug, Default)]
pub(super) struct ClientLines {
    reservoirs: BTreeMap<u16, Reservoir>,
    left_out: LeftOut,
    /// Whether more were left out since the sums were last asked for.
    has_changed: bool,
}

impl ClientLines {
    /// What is written of an event: of one that is a client's the same with its place if another had it before, or nothing.
    pub(super) fn line(&mut self, event: &EventLine) -> Option<EventLine> {
        let mut line = event.clone();
        let EventLine::Account { workload, place, .. } = &mut line else { return Some(line) };
        let reservoir = self.reservoirs.entry(*workload).or_default();
        let is_new = reservoir.is_filling();
        let Some(taken) = reservoir.place() else {
            let record = ReaderRecord::of(event)?;
            self.left_out.entry(*workload).or_default().add(&record);
            self.has_changed = true;
            return None;
        };
        *place = u32::try_from(taken).ok().filter(|_| !is_new);
        Some(line)
    }

    /// The sums, if they have changed.
    pub(super) fn changed(&mut self) -> Option<&LeftOut> {
        std::mem::take(&mut self.has_changed).then_some(&self.left_out)
    }
}
