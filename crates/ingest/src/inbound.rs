//! What came, on its way from the link to the store: messages with their bytes in one piece of memory.

use std::ops::Range;
use weir_mqtt::PacketId;

/// Bytes that are kept of a message that is over the limit: enough to see what it was.
pub(crate) const KEPT_OF_LARGE: usize = 64 * 1024;

/// The publisher of a message and the message's number, by its mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The publisher's number.
    pub publisher: u64,
    /// Messages of the publisher before this one.
    pub sequence_number: u64,
}

/// One message; its bytes are in the buffer.
#[derive(Clone, Debug)]
pub(crate) struct InboundMessage {
    pub(crate) topic: Range<usize>,
    /// Its payload without a mark; of one that is over the limit, the beginning.
    pub(crate) payload: Range<usize>,
    /// Bytes of the payload as it was sent, if they are more than may be; else 0.
    pub(crate) too_large: u32,
    pub(crate) origin: Option<Origin>,
    /// What to acknowledge; nothing at QoS 0.
    pub(crate) packet: Option<PacketId>,
    /// When it came, in microseconds since the Unix epoch.
    pub(crate) received: i64,
}

/// What one read brought.
#[derive(Debug, Default)]
pub(crate) struct ReadBuffer {
    /// The connection that it came by; acknowledgements are of no use to another.
    pub(crate) connection: u32,
    pub(crate) messages: Vec<InboundMessage>,
    pub(crate) bytes: Vec<u8>,
}

impl ReadBuffer {
    /// Bytes of memory that it stands for.
    pub(crate) fn weight(&self) -> usize {
        self.bytes.len() + self.messages.len() * size_of::<InboundMessage>()
    }

    /// Puts bytes in, and says where they are.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    pub(crate) fn topic(&self, message: &InboundMessage) -> &str {
        // A topic was text when it came.
        std::str::from_utf8(&self.bytes[message.topic.clone()]).unwrap_or_default()
    }

    pub(crate) fn payload(&self, message: &InboundMessage) -> &[u8] {
        &self.bytes[message.payload.clone()]
    }

    /// Makes room for the next read. What one large message took is given back.
    pub(crate) fn clear(&mut self) {
        self.messages.clear();
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_CAPACITY);
    }
}

/// Capacity that a buffer keeps: a read of the shard, and some more.
const KEPT_CAPACITY: usize = 512 * 1024;
