#![doc = include_str!("../README.md")]

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
pub mod store;
mod store_thread;
mod summary;
mod writer;

pub use counts::{Counts, Totals};
pub use decode::Decode;
pub use error::{ClusterError, DatabaseError, StoreError};
pub use gaps::{DropCause, Missing, PublisherGap};
pub use lag::Lag;
pub use loader::{Loader, SaveResult};
pub use service::{DRAIN, Ended, IngestError, IngestSettings, Outcome, Source, run, run_with_drain};
pub use store::{
    ClickHouse, Cluster, Contents, Database, Destination, DestinationError, Durability, RowCounter,
    UnknownDurability,
};
pub use store_thread::{Waiting, working_stores};
pub use weir_mqtt::ClientOptions;
pub use weir_web::SocketRequest;
