//! What one packet was, and what is known of it beyond its header.

/// What is known of a packet from decryption or an extension. Nothing by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// It is the first packet of a frame, or is not.
    pub start: Option<bool>,
    /// It belongs to a keyframe, or does not.
    pub keyframe: Option<bool>,
    /// It has no payload, only padding: senders probe for bandwidth so.
    pub padding: bool,
}

/// What a packet was. Sequence numbers are extended to 64 bits, from any beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The next in order, or one further ahead.
    Ahead {
        /// Its number.
        number: u64,
        /// How many packets before it are missing.
        missing: u64,
        /// How many frames it completed.
        completed: u32,
    },
    /// One that was missing.
    Late {
        /// Its number.
        number: u64,
        /// It had been asked for again; else it is out of order.
        recovered: bool,
        /// How many frames it completed.
        completed: u32,
    },
    /// One that is here already.
    Duplicate,
    /// From elsewhere: it waits for a second one to prove another sequence or source.
    Stray,
    /// The second of another sequence: both count, and the account goes on with it.
    Restart {
        /// The source is another one, too.
        new_source: bool,
    },
}
