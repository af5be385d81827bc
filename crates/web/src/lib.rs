#![doc = include_str!("../README.md")]

mod body;
mod carrier;
pub mod credentials;
mod error;
mod fields;
mod given_fields;
mod head;
pub mod http2;
mod message;
mod request;
mod response;
pub mod uri;
pub mod websocket;

pub use body::{CHUNK_END, LAST_CHUNK, begin_chunk};
pub use carrier::{Carrier, CarrierError, SocketRequest};
pub use error::HttpError;
pub use fields::Fields;
pub use given_fields::{GivenFieldError, GivenFields};
pub use message::{Message, reason};
pub use request::{Request, Requests};
pub use response::{Ending, Part, Response, Responses};

/// What weir calls itself in `User-Agent` and `Server`.
pub const PRODUCT: &str = concat!("weir/", env!("CARGO_PKG_VERSION"));
