//! What the sessions of a floor count, bytes or packets: their only bookkeeping.

use weir_metrics::Moment;
use weir_shard::{SessionId, World};

#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) count: u64,
}

impl World for Tally {
    type Message = ();

    fn receive(&mut self, (): (), _: Moment, _: &mut Vec<SessionId>) {}
}
