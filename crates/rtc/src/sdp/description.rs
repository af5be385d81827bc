//! A description as a value.

use crate::transport::Fingerprint;

/// A session description. What a session says for all its media is repeated in each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// `a=ice-lite`.
    pub ice_lite: bool,
    /// The identifiers of the media that share one transport (`a=group:BUNDLE`).
    pub bundle: Vec<String>,
    /// The media, in their order, which an answer keeps.
    pub media: Vec<Media>,
}

/// One media section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Media {
    /// What it carries.
    pub kind: MediaKind,
    /// The port; 0 rejects the section. 9 is written otherwise.
    pub rejected: bool,
    /// `a=mid`.
    pub identifier: String,
    /// Who sends.
    pub direction: Direction,
    /// `a=ice-ufrag`.
    pub user_fragment: Option<String>,
    /// `a=ice-pwd`.
    pub password: Option<String>,
    /// `a=fingerprint`.
    pub fingerprint: Option<Fingerprint>,
    /// `a=setup`.
    pub setup: Option<Setup>,
    /// `a=candidate`, each without its name.
    pub candidates: Vec<String>,
    /// `a=end-of-candidates`.
    pub end_of_candidates: bool,
    /// `a=rtcp-mux`.
    pub rtcp_mux: bool,
    /// `a=rtcp-rsize`.
    pub rtcp_reduced_size: bool,
    /// Payload types, the best first.
    pub formats: Vec<Format>,
    /// Header extensions.
    pub extensions: Vec<Extension>,
    /// Sources that were announced (`a=ssrc`), each once, in their order.
    pub sources: Vec<u32>,
    /// Sources and those of their retransmissions (`a=ssrc-group:FID`).
    pub repairs: Vec<(u32, u32)>,
}

/// What a media section carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MediaKind {
    /// Pictures.
    Video,
    /// Sound.
    Audio,
    /// Data channels, and whatever else; weir rejects them.
    #[default]
    Other,
}

/// Who sends, seen from the side that says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Both.
    #[default]
    SendReceive,
    /// We do.
    SendOnly,
    /// The other side does.
    ReceiveOnly,
    /// Nobody does.
    Inactive,
}

/// Who begins with DTLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Setup {
    /// Whoever answers decides.
    Either,
    /// We begin.
    Active,
    /// The other side begins.
    Passive,
}

/// A payload type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// The payload type, 0 to 127.
    pub payload_type: u8,
    /// The encoding's name, such as `H264`; empty when `a=rtpmap` says none.
    pub name: String,
    /// Ticks a second.
    pub clock_rate: u32,
    /// Channels, of sound.
    pub channels: Option<u8>,
    /// `a=fmtp`.
    pub parameters: String,
    /// `a=rtcp-fb`, each without the payload type.
    pub feedback: Vec<String>,
}

/// A header extension and its identifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// The identifier in packets.
    pub identifier: u8,
    /// What it is.
    pub name: String,
}

impl Format {
    /// Whether the encoding has this name.
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// The value of a format parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.split(';').find_map(|parameter| {
            let (this, value) = parameter.split_once('=')?;
            this.trim().eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// The payload type that this one retransmits (RFC 4588 section 8.1).
    pub fn repairs(&self) -> Option<u8> {
        self.is("rtx").then(|| self.parameter("apt")?.parse().ok()).flatten()
    }
}

impl Media {
    /// The format with this payload type.
    pub fn format(&self, payload_type: u8) -> Option<&Format> {
        self.formats.iter().find(|format| format.payload_type == payload_type)
    }

    /// The identifier of a header extension.
    pub fn extension(&self, name: &str) -> Option<u8> {
        self.extensions.iter().find(|extension| extension.name == name).map(|extension| extension.identifier)
    }
}
