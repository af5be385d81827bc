//! RTP and RTCP as WebRTC uses them, sans-IO: datagrams in, figures and datagrams out.
//!
//! Nothing here knows a socket, a clock, a runtime or a log; the time is passed in. Memory is bounded, and a packet
//! of which only the header is read costs no allocation.
//!
//! | module | what it does | where it is written down |
//! |---|---|---|
//! | [`Datagram`] | distinguishes STUN, DTLS, RTP and RTCP on one socket | RFC 7983, RFC 5761 |
//! | [`rtp`] | headers and their extensions, read without copying, and written | RFC 3550 section 5.1, RFC 8285, RFC 9626 |
//! | [`rtcp`] | compound packets, read and written | RFC 3550 section 6, RFC 4585, RFC 5104, RFC 3611, REMB, transport-wide congestion control |
//! | [`account`] | what arrived of a track, what is missing, and when | RFC 3550 appendices A.1, A.3, A.8 |
//! | [`nack`], [`picture`] | which packets and which keyframes to ask for, and when | RFC 4585, RFC 4588 |
//! | [`feedback`] | the arrival of every packet of a transport, for the sender's bandwidth estimation | draft-holmer-rmcat-transport-wide-cc-extensions-01 |
//! | [`reorder`] | packets put back into their order before they are taken apart | |
//! | [`rtx`] | retransmissions in a stream of their own | RFC 4588 |
//! | [`Bundle`] | packets that leave in one system call | |
//! | [`random_number`] | names of sessions, which cannot be guessed | |
//! | [`sender`] | numbers, time stamps and sender reports of an outgoing stream | RFC 3550 section 6.4.1 |
//! | [`srtp`] | encryption and authentication of both, in place | RFC 3711, RFC 7714, RFC 5764 section 4.2 |
//! | [`transport`] | ICE, full and lite, and DTLS in both roles, up to the keys of SRTP | RFC 8445, RFC 6347, RFC 9147, RFC 5764 |
//! | [`turn`] | datagrams by a relay, over TCP | RFC 8656, RFC 8489, RFC 7065 |
//! | [`sdp`] | session descriptions, and answers to them | RFC 8866, RFC 8829 |
//! | [`signalling`] | OvenMediaEngine's dialogue, WHIP and WHEP, WebSocket | RFC 9725, draft-ietf-wish-whep, RFC 6455 |
//! | [`h264`], [`opus`] | payloads, made and taken apart | RFC 6184, RFC 7587 |
//!
//! # What can be known from headers alone
//!
//! SRTP (RFC 3711) leaves headers and header extensions in clear. So a receiver that decrypts nothing knows of each
//! track: loss, order, duplicates, jitter, rate, media time and so drift, where frames end, and whether all packets of
//! a frame came. It does not know
//!
//! - **that a packet is authentic**: any host that knows the addresses can add to the figures;
//! - **keyframes**, unless the sender marks them in an extension ([`rtp::FrameMarking`]);
//! - **where a frame begins** when the packet before it is missing, unless the extension marks it: such a frame is counted
//!   as broken, and also apart as `unproven`;
//! - **frames of which no packet came**;
//! - **which packet a retransmission in a stream of its own repeats**: its number is inside the payload;
//! - how much of a payload is padding.

pub mod account;
pub mod feedback;
pub mod h264;
pub mod nack;
pub mod opus;
pub mod picture;
pub mod reorder;
pub mod rtcp;
pub mod rtp;
pub mod rtx;
pub mod sdp;
pub mod sender;
pub mod signalling;
pub mod srtp;
pub mod transport;
pub mod turn;

mod bundle;
mod datagram;
mod random;
mod time;

pub use bundle::Bundle;
pub use datagram::Datagram;
pub use random::random_number;
pub use time::NtpTime;
