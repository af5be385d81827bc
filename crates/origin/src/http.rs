//! MPEG-TS over HTTP: how the readers of a tuner server ask, and what they are answered.
//!
//! The paths and the field names are those that Mirakurun and mirakc share.

mod answer;
mod api;
mod session;

pub(crate) use session::HttpSession;
