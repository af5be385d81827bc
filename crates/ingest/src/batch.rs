//! What is saved in one transaction: rows, messages that could not be decoded, and what to acknowledge afterwards.

use crate::decode::DecodeFailure;
use crate::inbound::{InboundMessage, Origin, ReadBuffer};
use crate::payload_hash::PayloadHash;
use crate::rows::{Cell, Rows};
use std::ops::Range;
use std::sync::Arc;
use weir_mqtt::PacketId;

/// Where a row came from.
#[derive(Clone, Copy, Debug)]
struct RowOrigin {
    buffer: u32,
    message: u32,
    record: u32,
    /// Of the message's payload, if it has a mark.
    hash: Option<PayloadHash>,
}

/// Where a row or a dead letter came from.
#[derive(Clone, Copy, Debug)]
pub struct RowSource<'a> {
    /// Topic of the message.
    pub topic: &'a str,
    /// Publisher and number of the message; none without a mark.
    pub origin: Option<Origin>,
    /// Position of the record in its message, from 0.
    pub record: u32,
    /// When the message came, in microseconds since the Unix epoch.
    pub received: i64,
    /// Hash of the message's payload, if it has an origin.
    pub hash: Option<PayloadHash>,
}

/// A message that could not be decoded, or a record that the store has refused.
#[derive(Clone, Copy, Debug)]
pub struct DeadLetter<'a> {
    /// Where it came from.
    pub source: RowSource<'a>,
    /// Why it is no row, in one line.
    pub reason: &'a str,
    /// What is kept of the message's payload: of one that is over the limit, the beginning.
    pub payload: &'a [u8],
    /// Bytes of the whole payload.
    pub size: u64,
}

/// A dead letter with its payload elsewhere.
#[derive(Clone, Debug)]
struct StoredDeadLetter {
    place: RowOrigin,
    reason: String,
}

/// What is saved at once: rows, and dead letters, each numbered from 0.
#[derive(Debug, Default)]
pub struct Batch {
    pub(crate) rows: Rows,
    places: Vec<RowOrigin>,
    dead: Vec<StoredDeadLetter>,
    buffers: Vec<Arc<ReadBuffer>>,
    /// What to acknowledge, and by which connection it came.
    pub(crate) packets: Vec<(u32, PacketId)>,
    pub(crate) messages: u64,
    /// Bytes of payload.
    pub(crate) bytes: usize,
    /// Records that came without a mark.
    pub(crate) unmarked: u64,
}

impl Batch {
    /// An empty batch for rows with this many columns.
    pub(crate) fn new(columns: usize) -> Self {
        Self { rows: Rows::new(columns), ..Self::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages == 0
    }

    /// Records, each dead letter being one.
    pub(crate) fn records(&self) -> usize {
        self.places.len() + self.dead.len()
    }

    /// The buffer that messages come from next.
    pub(crate) fn open(&mut self, buffer: &Arc<ReadBuffer>) {
        if !self.buffers.last().is_some_and(|last| Arc::ptr_eq(last, buffer)) {
            self.buffers.push(buffer.clone());
        }
    }

    /// Adds the message at this position of the opened buffer. `decode` appends its records to the rows and returns their
    /// number, or why the message could not be decoded.
    ///
    /// # Errors
    /// What is needed to decode it cannot be had: the message was not added.
    #[inline]
    pub(crate) fn add(
        &mut self,
        position: usize,
        decode: impl FnOnce(&InboundMessage, &ReadBuffer, &mut Rows) -> Result<usize, DecodeFailure>,
    ) -> Result<(), DecodeFailure> {
        let Some(buffer) = self.buffers.last() else { return Ok(()) };
        let message = &buffer.messages[position];
        // What has no origin is never taken for a repetition.
        let hash = message.origin.map(|_| PayloadHash::of(buffer.payload(message), message.too_large));
        let place =
            RowOrigin { buffer: self.buffers.len() as u32 - 1, message: position as u32, record: 0, hash };
        let before = self.places.len();
        let records = match decode(message, buffer, &mut self.rows) {
            Ok(records) => {
                self.places.extend((0..records as u32).map(|record| RowOrigin { record, ..place }));
                records
            }
            Err(DecodeFailure::Dead(reason)) => {
                self.rows.truncate(before);
                self.dead.push(StoredDeadLetter { place, reason });
                1
            }
            Err(failure) => {
                self.rows.truncate(before);
                return Err(failure);
            }
        };
        self.messages += 1;
        self.bytes += message.payload.len();
        if message.origin.is_none() {
            self.unmarked += records as u64;
        }
        if let Some(id) = message.packet {
            self.packets.push((buffer.connection, id));
        }
        Ok(())
    }

    /// When its first message came, in microseconds since the Unix epoch.
    pub(crate) fn first_received(&self) -> Option<i64> {
        let first = [self.places.first(), self.dead.first().map(|dead| &dead.place)];
        first.into_iter().flatten().map(|place| self.at(*place).1.received).min()
    }

    /// The cells of a row, one for each column of the table.
    #[inline]
    pub fn cells(&self, row: usize) -> impl ExactSizeIterator<Item = Cell<'_>> {
        self.rows.cells(row)
    }

    /// Where a row came from.
    #[inline]
    pub fn source(&self, row: usize) -> RowSource<'_> {
        self.source_at(self.places[row])
    }

    #[inline]
    fn source_at(&self, place: RowOrigin) -> RowSource<'_> {
        let (buffer, message) = self.at(place);
        let InboundMessage { origin, received, .. } = *message;
        RowSource { topic: buffer.topic(message), origin, record: place.record, received, hash: place.hash }
    }

    fn at(&self, place: RowOrigin) -> (&ReadBuffer, &InboundMessage) {
        let buffer = &self.buffers[place.buffer as usize];
        (buffer, &buffer.messages[place.message as usize])
    }

    /// How many dead letters there are.
    pub(crate) fn dead_count(&self) -> usize {
        self.dead.len()
    }

    /// The dead letters of a part.
    pub fn dead_letters(&self, part: Range<usize>) -> impl ExactSizeIterator<Item = DeadLetter<'_>> {
        part.map(|position| self.dead_letter(position))
    }

    /// One dead letter.
    pub(crate) fn dead_letter(&self, position: usize) -> DeadLetter<'_> {
        let StoredDeadLetter { place, reason } = &self.dead[position];
        let (buffer, message) = self.at(*place);
        let payload = buffer.payload(message);
        let size = if message.too_large > 0 { message.too_large.into() } else { payload.len() as u64 };
        DeadLetter { source: self.source_at(*place), reason, payload, size }
    }

    /// Makes a dead letter of a row that the store refused. The rows behind it move up.
    pub(crate) fn refuse(&mut self, row: usize, reason: String) {
        self.rows.remove(row);
        self.dead.push(StoredDeadLetter { place: self.places.remove(row), reason });
    }

    /// Empties it, and returns the buffers that have no other owner.
    pub(crate) fn clear(&mut self) -> impl Iterator<Item = ReadBuffer> {
        self.rows.clear();
        self.places.clear();
        self.dead.clear();
        self.packets.clear();
        (self.messages, self.bytes, self.unmarked) = (0, 0, 0);
        self.buffers.drain(..).filter_map(Arc::into_inner)
    }
}
