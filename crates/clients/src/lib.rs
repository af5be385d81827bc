//! Virtual viewers and publishers, one module a protocol.
//!
//! A client is a [`weir_shard::Session`] that writes its figures into the shard's [`Ledger`].
//! What every protocol shares stands beside the protocols: the [`Life`] of a client, the playout
//! model, the drift. Nothing here knows that a run exists.

mod ledger;
mod life;

pub use ledger::{Ending, Ledger, ON_TIME, Remark, Slot};
pub use life::{Life, Phase, Timeouts};
