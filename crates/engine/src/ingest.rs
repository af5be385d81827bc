//! Messages on their way into a table: what takes them, and what became of each. Which consumers there are is not known here:
//! weir's own ingester and others that are asked are behind one trait.

mod account;
mod agent_counts;
pub(crate) mod consumer;
pub(crate) mod figures;
pub(crate) mod ingested;
pub(crate) mod intake;

pub use account::{Imbalance, IngestStage, MessageBalance};
pub use agent_counts::{AgentCounts, AgentWork};
pub use consumer::{Both, Consumed, Consumer, ConsumerError, RowStore, SaveCounts};
pub use figures::{PROTOCOL, SCHEMA, names, schema_of};
pub use ingested::{Classic, FirstAndLast, Ingested};
pub use intake::{Consuming, MakeConsumer, Messages, Share};
