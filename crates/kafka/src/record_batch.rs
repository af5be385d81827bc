//! Records as they lie in a log ("Record Batch", magic 2): a head of 61 bytes, then the records, whose offsets and times are
//! told from those of the first.

use crate::bytes::{Input, Malformed, put_i16, put_i32, put_i64, put_varlong, varlong_size};
use crate::compression::Budget;
use crate::produce::ProducerId;

/// Bytes before the first record.
const HEAD: usize = 61;

/// Bytes before what the length counts: base offset and length.
const BEFORE_LENGTH: usize = 12;

/// Bytes before what the checksum is of.
const BEFORE_SUM: usize = 21;

/// The format that is written and read; Kafka 0.11 brought it, Kafka 4 has no other.
const MAGIC: u8 = 2;

/// Attributes: compression, and whether these are marks of transactions.
const COMPRESSION: i16 = 0b111;
const CONTROL: i16 = 1 << 5;

/// Headers of a record that are looked at: a header may have two bytes, and what it is kept in has 32. weir writes nine.
const MOST_HEADERS: usize = 1_000;

/// A record that is to be appended.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// When it was made, in milliseconds since 1970.
    pub time: i64,
    /// Its key.
    pub key: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
    /// Headers.
    pub headers: &'a [(&'a str, &'a [u8])],
}

/// Records on their way into one partition.
#[derive(Clone, Debug, Default)]
pub struct RecordBatch {
    records: Vec<u8>,
    count: i32,
    first_time: i64,
    last_time: i64,
}

impl RecordBatch {
    /// How many records there are.
    pub fn len(&self) -> i32 {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of the batch with this record in it, which a topic's `max.message.bytes` bounds.
    pub fn size_with(&self, record: &Record<'_>) -> usize {
        let body = self.body_size(record);
        HEAD + self.records.len() + varlong_size(body as i64) + body
    }

    fn time_delta(&self, record: &Record<'_>) -> i64 {
        if self.is_empty() { 0 } else { record.time.saturating_sub(self.first_time) }
    }

    fn body_size(&self, record: &Record<'_>) -> usize {
        let long = |bytes: &[u8]| varlong_size(bytes.len() as i64) + bytes.len();
        let headers: usize =
            record.headers.iter().map(|(name, value)| long(name.as_bytes()) + long(value)).sum();
        1 + varlong_size(self.time_delta(record))
            + varlong_size(self.count.into())
            + long(record.key)
            + long(record.value)
            + varlong_size(record.headers.len() as i64)
            + headers
    }

    /// Adds a record.
    #[inline]
    pub fn push(&mut self, record: &Record<'_>) {
        let (body, delta) = (self.body_size(record), self.time_delta(record));
        if self.is_empty() {
            (self.first_time, self.last_time) = (record.time, record.time);
        }
        self.last_time = self.last_time.max(record.time);
        let out = &mut self.records;
        let put = |bytes: &[u8], out: &mut Vec<u8>| {
            put_varlong(bytes.len() as i64, out);
            out.extend_from_slice(bytes);
        };
        put_varlong(body as i64, out);
        // Attributes: none are defined.
        out.push(0);
        put_varlong(delta, out);
        put_varlong(self.count.into(), out);
        put(record.key, out);
        put(record.value, out);
        put_varlong(record.headers.len() as i64, out);
        for (name, value) in record.headers {
            put(name.as_bytes(), out);
            put(value, out);
        }
        self.count += 1;
    }

    /// The bytes, with the producer and the number that its first record has among those of this producer in this partition.
    pub fn finish(self, producer: ProducerId, sequence: i32) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEAD + self.records.len());
        put_i64(0, &mut out);
        put_i32((HEAD - BEFORE_LENGTH + self.records.len()) as i32, &mut out);
        // The leader's epoch, which the broker sets; magic; the checksum, which is known at the end.
        put_i32(-1, &mut out);
        out.push(MAGIC);
        put_i32(0, &mut out);
        put_i16(0, &mut out);
        put_i32(self.count - 1, &mut out);
        put_i64(self.first_time, &mut out);
        put_i64(self.last_time, &mut out);
        put_i64(producer.id, &mut out);
        put_i16(producer.epoch, &mut out);
        put_i32(sequence, &mut out);
        put_i32(self.count, &mut out);
        out.extend_from_slice(&self.records);
        let sum = checksum(&out[BEFORE_SUM..]);
        out[BEFORE_SUM - 4..BEFORE_SUM].copy_from_slice(&sum.to_be_bytes());
        out
    }
}

/// The checksum of a batch: CRC-32C of all that follows it.
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// A record of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRef<'a> {
    /// Its offset.
    pub offset: i64,
    /// Its key.
    pub key: Option<&'a [u8]>,
    /// Its value.
    pub value: Option<&'a [u8]>,
    /// Headers, names and values, null values as empty ones; of a thousand at most.
    pub headers: &'a [(&'a [u8], &'a [u8])],
}

/// A batch of a log that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at offset {offset}: {reason}")]
pub struct BatchError {
    /// The offset of its first record.
    pub offset: i64,
    /// What is wrong with it.
    #[source]
    pub reason: Malformed,
}

/// Reads what a broker sent of a log, and gives each record to `each`. Returns the offset behind the last whole batch, `None` if
/// there was none. Marks of transactions are left out, and so are records from before Kafka 0.11. It ends before a compressed batch for
/// which the budget has too little left.
///
/// # Errors
/// A batch is damaged, or alone too large for the budget.
pub fn read_batches(
    bytes: &[u8],
    budget: &mut Budget,
    mut each: impl FnMut(&RecordRef<'_>),
) -> Result<Option<i64>, BatchError> {
    let (mut input, mut next) = (Input(bytes), None);
    while let Ok((offset, batch)) = whole_batch(&mut input) {
        let read = read_batch(offset, Input(batch), budget, &mut each);
        match read.map_err(|reason| BatchError { offset, reason })? {
            None => break,
            behind => next = behind,
        }
    }
    Ok(next)
}

/// Reads a batch behind its length; returns the offset behind it, `None` if too little is left of the budget.
fn read_batch(
    base: i64,
    mut batch: Input<'_>,
    budget: &mut Budget,
    each: &mut impl FnMut(&RecordRef<'_>),
) -> Result<Option<i64>, Malformed> {
    let (_leader_epoch, magic) = (batch.i32()?, batch.i8()?);
    if magic != MAGIC as i8 {
        // Of several in one its offset is that of the last.
        return Ok(Some(base.saturating_add(1)));
    }
    if batch.u32()? != checksum(batch.0) {
        return Err(Malformed::Checksum);
    }
    let (attributes, last) = (batch.i16()?, batch.i32()?);
    // Times, the producer, its epoch and its number.
    let _ = (batch.i64()?, batch.i64()?, batch.i64()?, batch.i16()?, batch.i32()?);
    let count = batch.i32()?;
    if attributes & CONTROL == 0 {
        let decompressed = match attributes & COMPRESSION {
            0 => None,
            codec => match budget.decompress(codec, batch.0)? {
                None => return Ok(None),
                records => records,
            },
        };
        let mut records = decompressed.as_deref().map_or(batch, Input);
        for _ in 0..count {
            read_record(&mut records, base, each)?;
        }
    }
    Ok(Some(base.saturating_add(last.into()).saturating_add(1)))
}

/// The base offset of the next batch and what its length counts.
fn whole_batch<'a>(input: &mut Input<'a>) -> Result<(i64, &'a [u8]), Malformed> {
    let (base, length) = (input.i64()?, input.i32()?);
    Ok((base, input.take(usize::try_from(length).map_err(|_| Malformed::Length)?)?))
}

fn read_record(
    batch: &mut Input<'_>,
    base: i64,
    each: &mut impl FnMut(&RecordRef<'_>),
) -> Result<(), Malformed> {
    let mut record = Input(batch.varbytes()?.ok_or(Malformed::Length)?);
    let (_attributes, _time) = (record.i8()?, record.varlong()?);
    let offset = base.saturating_add(record.varlong()?);
    let (key, value) = (record.varbytes()?, record.varbytes()?);
    let mut headers = Vec::new();
    for _ in 0..record.varlong()? {
        let header = (record.varbytes()?.ok_or(Malformed::Length)?, record.varbytes()?.unwrap_or_default());
        if headers.len() < MOST_HEADERS {
            headers.push(header);
        }
    }
    each(&RecordRef { offset, key, value, headers: &headers });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error_code::ErrorCode;
    use proptest::prelude::*;
    use std::io::Write;

    const PRODUCER: ProducerId = ProducerId { error: ErrorCode::NONE, id: 7, epoch: 0 };

    type Owned = (i64, Vec<u8>, Vec<u8>, Vec<(String, Vec<u8>)>);

    fn batch_of(records: &[Owned]) -> Vec<u8> {
        let mut batch = RecordBatch::default();
        for (time, key, value, headers) in records {
            let headers: Vec<_> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
            let record = Record { time: *time, key, value, headers: &headers };
            let size = batch.size_with(&record);
            batch.push(&record);
            assert_eq!(size, batch.clone().finish(PRODUCER, 0).len());
        }
        batch.finish(PRODUCER, 0)
    }

    fn read(bytes: &[u8]) -> (Vec<Owned>, Option<i64>) {
        let mut found = Vec::new();
        let next = read_batches(bytes, &mut Budget::default(), |record| {
            let headers = record.headers.iter();
            let headers =
                headers.map(|(name, value)| (String::from_utf8(name.to_vec()).unwrap(), value.to_vec()));
            found.push((
                record.offset,
                record.key.unwrap().to_vec(),
                record.value.unwrap().to_vec(),
                headers.collect(),
            ));
        });
        (found, next.unwrap())
    }

    fn records() -> impl Strategy<Value = Vec<Owned>> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..200);
        let headers = prop::collection::vec(("[a-z]{1,20}", bytes()), 0..4);
        prop::collection::vec((0_i64..1 << 50, bytes(), bytes(), headers), 1..20)
    }

    proptest! {
        #[test]
        fn records_are_read_as_they_were_written(records in records()) {
            let mut bytes = batch_of(&records);
            let (found, next) = read(&bytes);
            prop_assert_eq!(next, Some(records.len() as i64));
            for ((offset, (_, key, value, headers)), found) in (0..).zip(&records).zip(&found) {
                prop_assert_eq!(&(offset, key.clone(), value.clone(), headers.clone()), found);
            }
            // A second batch that is cut off is not there yet.
            let whole = bytes.len();
            bytes.extend_from_within(..whole - 1);
            prop_assert_eq!(read(&bytes).0.len(), records.len());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read_batches(&bytes, &mut Budget::new(1 << 16), |_| ());
        }
    }

    /// The same batch with its records compressed by gzip.
    fn compressed(batch: &[u8]) -> Vec<u8> {
        let mut writer = flate2::write::GzEncoder::new(batch[..HEAD].to_vec(), flate2::Compression::fast());
        writer.write_all(&batch[HEAD..]).unwrap();
        let mut out = writer.finish().unwrap();
        let length = (out.len() - BEFORE_LENGTH) as u32;
        out[BEFORE_LENGTH - 4..BEFORE_LENGTH].copy_from_slice(&length.to_be_bytes());
        out[BEFORE_SUM + 1] = 1;
        let sum = checksum(&out[BEFORE_SUM..]);
        out[BEFORE_SUM - 4..BEFORE_SUM].copy_from_slice(&sum.to_be_bytes());
        out
    }

    #[test]
    fn compressed_batches_are_read_as_far_as_the_budget_goes() {
        let large = (1, b"key".to_vec(), vec![0; 60_000], vec![("name".to_owned(), b"value".to_vec())]);
        let mut second = batch_of(std::slice::from_ref(&large));
        second[..8].copy_from_slice(&1_u64.to_be_bytes());
        let both = [compressed(&batch_of(std::slice::from_ref(&large))), compressed(&second)].concat();
        let (found, next) = read(&both);
        assert_eq!((found.len(), next), (2, Some(2)));
        assert_eq!((&found[0].2, &found[1].3), (&large.2, &large.3));
        let mut count = 0;
        assert_eq!(read_batches(&both, &mut Budget::new(100_000), |_| count += 1), Ok(Some(1)));
        assert_eq!(count, 1);
        let too_large = read_batches(&both, &mut Budget::new(50_000), |_| ());
        assert_eq!(too_large, Err(BatchError { offset: 0, reason: Malformed::TooLarge }));
    }

    #[test]
    fn a_damaged_batch_is_refused_with_its_offset() {
        let mut bytes = batch_of(&[(1, b"key".to_vec(), b"value".to_vec(), Vec::new())]);
        let mut second = bytes.clone();
        second[..8].copy_from_slice(&7_u64.to_be_bytes());
        *second.last_mut().unwrap() ^= 1;
        bytes.extend(second);
        let refused = read_batches(&bytes, &mut Budget::default(), |_| ());
        assert_eq!(refused, Err(BatchError { offset: 7, reason: Malformed::Checksum }));
    }
}
