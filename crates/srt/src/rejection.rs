//! Why a listener refuses a caller.

use std::fmt;

/// A code of rejection, as it is on the wire: the handshake type of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rejection(pub u32);

impl Rejection {
    /// The listener has no memory for it.
    pub const RESOURCE: Self = Self(1_003);
    /// The data of the handshake makes no sense.
    pub const ROGUE: Self = Self(1_004);
    /// The listener has no room for more connections.
    pub const BACKLOG: Self = Self(1_005);
    /// The peer speaks an older version.
    pub const VERSION: Self = Self(1_008);
    /// Another passphrase.
    pub const BAD_SECRET: Self = Self(1_010);
    /// A passphrase on one side only.
    pub const UNSECURE: Self = Self(1_011);
    /// Message and buffer mode.
    pub const MESSAGE_API: Self = Self(1_012);
    /// Another congestion control.
    pub const CONGESTION: Self = Self(1_013);
    /// A packet filter that this side has not.
    pub const FILTER: Self = Self(1_014);
    /// A group, which this side does not take.
    pub const GROUP: Self = Self(1_015);
    /// Nothing of this name is there.
    pub const NOT_FOUND: Self = Self(2_404);
    /// The mode of the stream ID is not supported.
    pub const BAD_MODE: Self = Self(2_405);
    /// Another publisher has it.
    pub const CONFLICT: Self = Self(2_409);
    /// The listener is too heavily loaded.
    pub const OVERLOAD: Self = Self(2_402);
    /// Access is denied.
    pub const FORBIDDEN: Self = Self(2_403);

    /// The rejection that a handshake type says, if it says one.
    pub fn of_handshake_type(value: u32) -> Option<Self> {
        // The types of handshakes that go on are 0, 1 and the last three numbers.
        (1_000..0x8000_0000).contains(&value).then_some(Self(value))
    }

    /// Its name in the draft (section 4.3, table 7) or in libsrt's `access_control.h`.
    pub fn name(self) -> &'static str {
        match self.0 {
            1_000 => "REJ_UNKNOWN",
            1_001 => "REJ_SYSTEM",
            1_002 => "REJ_PEER",
            1_003 => "REJ_RESOURCE",
            1_004 => "REJ_ROGUE",
            1_005 => "REJ_BACKLOG",
            1_006 => "REJ_IPE",
            1_007 => "REJ_CLOSE",
            1_008 => "REJ_VERSION",
            1_009 => "REJ_RDVCOOKIE",
            1_010 => "REJ_BADSECRET",
            1_011 => "REJ_UNSECURE",
            1_012 => "REJ_MESSAGEAPI",
            1_013 => "REJ_CONGESTION",
            1_014 => "REJ_FILTER",
            1_015 => "REJ_GROUP",
            1_016 => "REJ_TIMEOUT",
            1_017 => "REJ_CRYPTO",
            2_000 => "REJX_FALLBACK",
            2_001 => "REJX_KEY_NOTSUP",
            2_002 => "REJX_SESSIONOFF",
            2_003 => "REJX_FILEPATH",
            2_004 => "REJX_HOSTNOTFOUND",
            2_400 => "REJX_BAD_REQUEST",
            2_401 => "REJX_UNAUTHORIZED",
            2_402 => "REJX_OVERLOAD",
            2_403 => "REJX_FORBIDDEN",
            2_404 => "REJX_NOTFOUND",
            2_405 => "REJX_BAD_MODE",
            2_406 => "REJX_UNACCEPTABLE",
            2_409 => "REJX_CONFLICT",
            2_415 => "REJX_NOTSUP_MEDIA",
            2_423 => "REJX_LOCKED",
            2_424 => "REJX_FAILED_DEPEND",
            2_500 => "REJX_ISE",
            2_501 => "REJX_UNIMPLEMENTED",
            2_502 => "REJX_GW",
            2_503 => "REJX_DOWN",
            2_505 => "REJX_VERSION",
            2_507 => "REJX_NOROOM",
            3_000.. => "a code of the server's own",
            _ => "a code that is in no list",
        }
    }

    /// What it means, in words.
    pub fn meaning(self) -> &'static str {
        match self.0 {
            1_001 | 1_006 | 2_500 => "the server failed",
            1_002 => "the server rejects it, and does not say why",
            1_003 => "the server has no memory or socket for it",
            1_004 => "the server cannot read the handshake",
            1_005 => "the server's queue of new connections is full",
            1_007 | 2_503 => "the server is closing or down",
            1_008 => "the server wants a newer version of SRT",
            1_010 => "the passphrase is wrong",
            1_011 => "one side has a passphrase and the other has none",
            1_012 | 1_013 => "the server is not in live mode",
            1_014 => "the server wants a packet filter (FEC), which weir has not",
            1_015 => "the server wants a group",
            1_016 => "the server waited too long",
            1_017 => "the server wants another cipher (AES-GCM)",
            2_400 => "the server cannot read the stream ID",
            2_401 => "the server wants a user that it knows",
            2_402 => "the server is too heavily loaded",
            2_403 => "the server forbids it",
            2_404 => "the server has no stream of this name",
            2_405 => "the server does not do what the stream ID's mode asks for",
            2_409 => "the server has a publisher of this name",
            2_423 => "the server has locked it",
            _ => "the server rejects it",
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {})", self.meaning(), self.name(), self.0)
    }
}
