//! A description as a value.

use crate::transport::Fingerprint;

/// A session description. What a session says for all its media is repeated in each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// The session's identifier (`o=`); browsers have a random one of 63 bits (RFC 8829 section 5.2.1).
    pub session: u64,
    /// `a=ice-lite`.
    pub ice_lite: bool,
    /// `a=extmap-allow-mixed`: header extensions of one and of two bytes may follow each other (RFC 8285 section 6).
    pub extensions_mixed: bool,
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
    /// Which sides send.
    pub direction: Direction,
    /// `a=ice-ufrag`.
    pub user_fragment: Option<String>,
    /// `a=ice-pwd`.
    pub password: Option<String>,
    /// `a=fingerprint`.
    pub fingerprint: Option<Fingerprint>,
    /// `a=setup`.
    pub setup: Option<Setup>,
    /// The stream and the track of it that is sent (`a=msid`, RFC 8830), as written. Servers make tracks of it: SRS 6 has
    /// none of a section without.
    pub stream: Option<String>,
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

/// Which sides send, seen from the side whose description it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Both.
    #[default]
    SendReceive,
    /// We do.
    SendOnly,
    /// The other side does.
    ReceiveOnly,
    /// Neither side sends.
    Inactive,
}

/// Which side begins the DTLS handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Setup {
    /// The answerer decides.
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

/// The sources of what one publisher sends (RFC 3550 section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sources {
    /// Packets of pictures.
    pub pictures: u32,
    /// Pictures' packets that are sent again.
    pub repair: u32,
    /// Packets of sound.
    pub sound: u32,
}

impl Sources {
    /// Three that differ, out of a random one.
    pub fn new(random: u32) -> Self {
        Self { pictures: random, repair: random.wrapping_add(2), sound: random.wrapping_add(4) }
    }
}

impl Description {
    /// Says under which sources we send, and that all of them are tracks of one stream (RFC 8830), as a browser's are.
    /// Both have names that differ from those of other publishers.
    pub fn announce(&mut self, sources: Sources) {
        let stream = format!("weir-{:08x}", sources.pictures);
        for media in &mut self.media {
            media.stream = Some(format!("{stream} {stream}-{}", media.identifier));
            match media.kind {
                MediaKind::Video if media.formats.iter().any(|format| format.is("rtx")) => {
                    media.sources = vec![sources.pictures, sources.repair];
                    media.repairs = vec![(sources.pictures, sources.repair)];
                }
                MediaKind::Video => media.sources = vec![sources.pictures],
                MediaKind::Audio => media.sources = vec![sources.sound],
                MediaKind::Other => {}
            }
        }
    }
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
