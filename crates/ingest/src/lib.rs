//! MQTT in, records decoded, rows saved.
//!
//! A message is acknowledged when its rows are committed, and not before: after the end of this process, however it
//! comes, the broker sends what was not acknowledged again, and what was saved by then is recognised by publisher and
//! sequence number. One thread reads the link and puts what comes into a bounded queue; another takes it out and decodes
//! it into batches; the third saves them, and tells the first what to acknowledge.
//!
//! Nothing here prints, and nothing here knows a run.

mod batch;
mod column;
mod counts;
mod decode;
mod error;
mod exchange;
mod gaps;
mod gather;
mod inbound;
mod inbox;
mod lag;
mod loader;
mod payload_hash;
mod receive;
mod retry;
mod rows;
mod service;
mod store;
mod store_thread;
mod summary;
mod writer;

pub use counts::{Counts, Totals};
pub use decode::Decode;
pub use error::{ClusterError, DatabaseError, StoreError};
pub use gaps::{DropCause, Missing, PublisherGap};
pub use lag::Lag;
pub use loader::{Filled, Loader};
pub use service::{DRAIN, Ended, IngestError, IngestSettings, Outcome, Source, run, run_with_drain};
pub use store::{
    ClickHouse, Cluster, Database, Destination, DestinationError, Durability, RowCounter, Stock,
    UnknownDurability,
};
pub use store_thread::{Waiting, working_stores};
pub use weir_mqtt::ClientOptions;
pub use weir_web::SocketRequest;
