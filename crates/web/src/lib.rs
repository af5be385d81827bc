//! HTTP/1.1, the client's and the server's side, sans-IO: bytes in pieces of any size go in, requests and answers come out.
//!
//! | module | what | where it is written down |
//! |---|---|---|
//! | `head` | a head, gathered up to its empty line, bounded | RFC 9112 section 2 |
//! | `error` | what is not HTTP, and the status that says so | RFC 9110 section 15 |
//! | `fields` | fields by name; what they say of the body and of the connection | RFC 9110 section 5, RFC 9112 sections 6 and 9 |
//! | `body` | by length, in chunks, or up to the end of the connection | RFC 9112 sections 6.3 and 7.1 |
//! | `request` | requests, one after the other, as a server receives them | RFC 9112 section 3 |
//! | `response` | responses, one after the other, as a client receives them | RFC 9112 section 4 |
//! | `message` | requests and answers, written | RFC 9112 sections 3 to 6 |
//! | `credentials` | user and password, and tokens | RFC 7617, RFC 6750 |
//! | `given_fields` | fields that a person adds to each request, and cookies | RFC 9110 section 5, RFC 6265 |
//! | `websocket` | messages both ways, behind a handshake that is an answer like any other | RFC 6455 |
//! | `carrier` | a client's bytes on its link, or in a WebSocket | MQTT 5 section 6 |
//! | `uri` | places: as they are asked for, where a redirect leads, what may be shown of it | RFC 3986, RFC 9110 section 10.2.2 |
//!
//! Bodies are handed out as slices of what came: a stream is never copied here. Everything that is kept is bounded, and no
//! error and no `Debug` shows the value of a field, which may be a secret.

mod body;
mod carrier;
pub mod credentials;
mod error;
mod fields;
mod given_fields;
mod head;
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
