//! Takes packets out of a byte stream as it arrives, with memory that is bounded whatever the peer announces.
//!
//! The reader is pulled: it takes bytes off the front of the caller's slice and returns one [`Event`] at a time. A
//! packet that lies whole in the slice is not copied; one that is cut is put together in the reader's own buffer,
//! which grows with what has come and never with what was announced. A message that is larger than
//! [`Limits::whole`] is handed on in pieces.

use crate::error::{Error, Violation};
use crate::field::variable_integer;
use crate::packet::{Packet, PacketKind, Publish, head_len};
use crate::{MAX_PACKET_SIZE, Version};

/// What a [`Reader`] will put up with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest packet that the peer may send, in bytes with its fixed header, as Maximum Packet Size counts
    /// (MQTT 5 section 3.1.2.11.4).
    pub packet: u32,
    /// The largest packet that is handed over whole, and so the most that is ever kept. A PUBLISH that is larger
    /// comes in pieces, if its variable header is not; of other kinds none may be larger.
    pub whole: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { packet: MAX_PACKET_SIZE, whole: 1 << 20 }
    }
}

/// One thing that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A packet, whole.
    Packet(Packet<'a>),
    /// A message begins that is larger than [`Limits::whole`]. Its payload is still empty, and follows.
    Begin {
        /// The message without its payload.
        publish: Publish<'a>,
        /// How many bytes of payload follow.
        payload: u32,
    },
    /// The next piece of that payload; never empty.
    Payload(&'a [u8]),
    /// The message is complete.
    End,
}

/// Capacity that a buffer keeps between two packets.
const KEPT: usize = 4096;

/// A streaming parser of control packets.
///
/// ```
/// use weir_mqtt::{Event, Limits, Packet, Reader, Version};
///
/// let mut reader = Reader::new(Version::V311, Limits::default());
/// let mut input: &[u8] = &[0x30, 5, 0, 1, b't', b'h', b'i'];
/// while let Some(event) = reader.next(&mut input)? {
///     let Event::Packet(Packet::Publish(message)) = event else { continue };
///     assert_eq!((message.topic, message.payload), ("t", &b"hi"[..]));
/// }
/// # Ok::<(), weir_mqtt::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Reader {
    version: Version,
    limits: Limits,
    phase: ReaderPhase,
    /// The beginning of a packet that came with earlier input.
    pending: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReaderPhase {
    /// A packet begins, or goes on in `pending`.
    Packet,
    /// `pending` was handed out.
    Spent,
    /// `pending` was handed out, and this many bytes of a large message's payload are still to come.
    SpentHead(u32),
    /// This many bytes of a large message's payload are still to come.
    Payload(u32),
}

/// A fixed header that is complete.
#[derive(Clone, Copy)]
struct Header {
    first: u8,
    /// Bytes of the header itself.
    len: usize,
    /// Bytes of the packet, header included.
    total: usize,
}

/// What the beginning of a packet is enough for.
enum Have {
    /// Nothing yet; with this number of bytes there may be enough.
    More(usize),
    /// The packet.
    Whole(Header),
    /// The variable header of a large message, which ends there.
    Head(Header, usize),
}

impl Reader {
    /// A reader at the first byte of a connection. A server gives any version: CONNECT says which it is.
    pub fn new(version: Version, limits: Limits) -> Self {
        Self { version, limits, phase: ReaderPhase::Packet, pending: Vec::new() }
    }

    /// Sets the limits from the next packet on: a server allows less before CONNECT.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// The version by which packets are read: that of the CONNECT that came, or as it was made.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Takes bytes off the front of `input` up to the next event. `None` when `input` is used up.
    ///
    /// After an error the stream cannot be read on; what further calls return is of no use.
    ///
    /// # Errors
    /// The rule that a packet breaks.
    #[inline]
    pub fn next<'e, 'i: 'e>(&'e mut self, input: &mut &'i [u8]) -> Result<Option<Event<'e>>, Error> {
        match self.phase {
            ReaderPhase::Packet => {}
            ReaderPhase::Spent => self.forget(ReaderPhase::Packet),
            ReaderPhase::SpentHead(left) => self.forget(ReaderPhase::Payload(left)),
            ReaderPhase::Payload(_) => {}
        }
        if let ReaderPhase::Payload(left) = self.phase {
            return Ok(self.payload(left, input));
        }
        if !self.pending.is_empty() {
            return self.straddling(input);
        }
        if input.is_empty() {
            return Ok(None);
        }
        let bytes: &'i [u8] = input;
        match self.have(bytes)? {
            Have::More(_) => {
                self.pending.extend_from_slice(bytes);
                *input = &[];
                Ok(None)
            }
            Have::Whole(header) => {
                let (packet, rest) = bytes.split_at(header.total);
                *input = rest;
                let packet = Packet::decode(header.first, &packet[header.len..], self.version)?;
                Self::learn(&mut self.version, &packet);
                Ok(Some(Event::Packet(packet)))
            }
            Have::Head(header, end) => {
                let (head, rest) = bytes.split_at(end);
                *input = rest;
                let payload = (header.total - end) as u32;
                self.phase = ReaderPhase::Payload(payload);
                Self::begin(header, head, payload, self.version).map(Some)
            }
        }
    }

    /// A packet whose first bytes came with earlier input.
    fn straddling<'e, 'i: 'e>(&'e mut self, input: &mut &'i [u8]) -> Result<Option<Event<'e>>, Error> {
        loop {
            match self.have(&self.pending)? {
                Have::More(enough) => {
                    let fresh = (enough - self.pending.len()).min(input.len());
                    if fresh == 0 {
                        return Ok(None);
                    }
                    let (taken, rest) = input.split_at(fresh);
                    *input = rest;
                    self.pending.extend_from_slice(taken);
                }
                Have::Whole(header) => {
                    self.phase = ReaderPhase::Spent;
                    let packet = Packet::decode(header.first, &self.pending[header.len..], self.version)?;
                    Self::learn(&mut self.version, &packet);
                    return Ok(Some(Event::Packet(packet)));
                }
                Have::Head(header, end) => {
                    let payload = (header.total - end) as u32;
                    self.phase = ReaderPhase::SpentHead(payload);
                    return Self::begin(header, &self.pending, payload, self.version).map(Some);
                }
            }
        }
    }

    /// Looks what the bytes at the beginning of a packet are enough for.
    #[inline]
    fn have(&self, bytes: &[u8]) -> Result<Have, Error> {
        let Some((&first, rest)) = bytes.split_first() else { return Ok(Have::More(2)) };
        let fail =
            |violation| Error { packet: PacketKind::from_bits(first >> 4), violation, version: self.version };
        let Some(remaining) = variable_integer(rest).map_err(fail)? else {
            return Ok(Have::More(bytes.len() + 1));
        };
        if !remaining.minimal && self.version == Version::V5 {
            return Err(fail(Violation::IntegerNotMinimal));
        }
        let len = 1 + remaining.length;
        let total = len + remaining.value as usize;
        if total > self.limits.packet as usize {
            return Err(fail(Violation::PacketTooLarge));
        }
        let header = Header { first, len, total };
        if total > self.limits.whole as usize {
            return self.have_head(header, bytes).map_err(fail);
        }
        Ok(if bytes.len() < total { Have::More(total) } else { Have::Whole(header) })
    }

    #[cold]
    fn have_head(&self, header: Header, bytes: &[u8]) -> Result<Have, Violation> {
        if header.first >> 4 != PacketKind::Publish as u8 {
            return Err(Violation::PacketTooLarge);
        }
        // What lies behind the limit is not looked at, so that the answer does not depend on the pieces in which it came.
        let most = bytes.len().min(self.limits.whole as usize).max(header.len);
        let (len, known) = match head_len(header.first, &bytes[header.len..most], self.version)? {
            Ok(len) => (len, true),
            Err(len) => (len, false),
        };
        let end = header.len + len;
        if end > self.limits.whole as usize {
            return Err(Violation::PacketTooLarge);
        }
        Ok(if known && bytes.len() >= end { Have::Head(header, end) } else { Have::More(end) })
    }

    fn begin(header: Header, head: &[u8], payload: u32, version: Version) -> Result<Event<'_>, Error> {
        let publish = Publish::decode(header.first & 15, &head[header.len..], version)
            .map_err(|violation| Error { packet: Some(PacketKind::Publish), violation, version })?;
        Ok(Event::Begin { publish, payload })
    }

    fn payload<'i>(&mut self, left: u32, input: &mut &'i [u8]) -> Option<Event<'i>> {
        if left == 0 {
            self.phase = ReaderPhase::Packet;
            return Some(Event::End);
        }
        let taken = input.len().min(left as usize);
        if taken == 0 {
            return None;
        }
        let (piece, rest) = input.split_at(taken);
        *input = rest;
        self.phase = ReaderPhase::Payload(left - taken as u32);
        Some(Event::Payload(piece))
    }

    fn forget(&mut self, phase: ReaderPhase) {
        self.phase = phase;
        self.pending.clear();
        self.pending.shrink_to(KEPT);
    }

    fn learn(version: &mut Version, packet: &Packet<'_>) {
        if let Packet::Connect(connect) = packet {
            *version = connect.version;
        }
    }

    /// Whether a message has begun and is not complete.
    pub fn is_inside_message(&self) -> bool {
        match self.phase {
            ReaderPhase::Packet => {
                self.pending.first().is_some_and(|first| first >> 4 == PacketKind::Publish as u8)
            }
            ReaderPhase::Spent => false,
            ReaderPhase::SpentHead(_) | ReaderPhase::Payload(_) => true,
        }
    }

    /// Bytes of memory that the reader holds beside itself.
    pub fn memory(&self) -> usize {
        self.pending.capacity()
    }
}
