//! WebRTC: viewers by WHEP and by OvenMediaEngine's signalling, that account for every packet; publishers by WHIP.
//!
//! Headers alone are read of most of what comes; packets are decrypted until a client's first keyframe is whole, which
//! proves its keys, and throughout for witnesses.

mod account;
mod candidates;
mod client;
mod connection;
mod dialogue;
mod figures;
mod negotiation;
mod play;
mod publish;
mod receiver;
mod refusal;
mod relay;
mod request;
mod sending;
mod trickle;
mod workload;

pub use account::COLUMNS;
pub use receiver::LinkOptions;
pub use workload::{oven, whep, whip};

use crate::target::Scheme;
pub use weir_rtc::VideoCodec;
use weir_web::GivenFields;

/// What only WebRTC has.
#[derive(Clone, Debug)]
pub struct RtcOptions {
    /// The bearer token of WHEP and WHIP, if the server asks for one.
    pub token: Option<String>,
    /// What a person adds to each request over HTTP.
    pub given: GivenFields,
    /// Ask for lost packets again.
    pub nack: bool,
    /// Ask for a keyframe at the start and after a loss that nothing else repairs.
    pub pli: bool,
    /// Send receiver reports.
    pub reports: bool,
    /// Tell the server what bandwidth there is (transport-wide congestion control, REMB), where it asks for that.
    pub bandwidth: bool,
    /// The one codec of pictures to ask for; all that weir reads by default.
    pub codec: Option<VideoCodec>,
    /// A link that is narrower than this machine's, which is modelled for each viewer.
    pub link: Option<LinkOptions>,
}

impl Default for RtcOptions {
    /// What a browser does.
    fn default() -> Self {
        Self {
            token: None,
            given: GivenFields::default(),
            nack: true,
            pli: true,
            reports: true,
            bandwidth: true,
            codec: None,
            link: None,
        }
    }
}

/// What viewers are asked by default: a server that cannot keep up may queue, and loses nothing then.
pub const WHOLE_FRAME_RATE: &str = "frames.ratio >= 90%";
/// Of what is lost for good, after repair, one packet in a hundred is seen in most pictures.
pub const FEW_LOST: &str = "lost.ratio <= 1%";

/// The schemes of viewers by WHEP.
pub const WHEP_SCHEMES: &[Scheme] = &[Scheme::tcp("whep+http", 80), Scheme::tls("whep+https", 443)];

/// The schemes of publishers by WHIP.
pub const WHIP_SCHEMES: &[Scheme] = &[Scheme::tcp("whip+http", 80), Scheme::tls("whip+https", 443)];

/// The schemes of viewers of OvenMediaEngine. Its own port is 3333.
pub const OVEN_SCHEMES: &[Scheme] = &[Scheme::tcp("ws", 80), Scheme::tls("wss", 443)];

/// Datagrams of strangers, and of no agreed kind: one of [`SCHEMA`].
pub const STRANGE: weir_metrics::Counter = figures::STRANGE;
/// Viewers to which sound came, and none of the pictures that were agreed on.
pub const WITHOUT_PICTURES: weir_metrics::Counter = figures::WITHOUT_PICTURES;

/// What viewers' narrow links dropped: one of [`SCHEMA`].
pub const LINK_DROPPED: weir_metrics::Counter = figures::LINK_DROPPED;

/// Their figures.
pub const SCHEMA: weir_metrics::Schema = weir_metrics::Schema::new(figures::FIGURES);
