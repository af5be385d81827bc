//! No answer of a broker makes weir panic, and none takes more memory than a small multiple of its bytes, or than a budget says if it is
//! compressed; a batch of records is read to its end or is refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use weir_kafka::{
    ApiVersions, Budget, Challenge, CreateTopics, DeleteRecords, DescribeConfigs, Fetch, InitProducerId,
    ListOffsets, MetadataRequest, Produce, Record, RecordBatch, SaslAuthenticate, SaslHandshake, Scram,
    ScramHash, ServerSignature, answer, partition_of, read_batches,
};

/// Bytes that compressed records may have here.
const MOST: usize = 1 << 20;

/// Where a batch has its length, its format, its checksum, its attributes and the number of its records, and where these begin.
const LENGTH: usize = 8;
const MAGIC: usize = 16;
const SUM: usize = 17;
const ATTRIBUTES: usize = 21;
const COUNT: usize = 57;
const RECORDS: usize = 61;

/// A record of these bytes is read as it was written.
fn written(bytes: &[u8]) {
    let (key, value) = bytes.split_at(bytes.len() / 2);
    let headers = [("name", key), ("", value)];
    let mut batch = RecordBatch::default();
    let record = Record { time: bytes.len() as i64, key, value, headers: &headers };
    let size = batch.size_with(&record);
    batch.push(&record);
    let producer = weir_kafka::ProducerId { error: weir_kafka::ErrorCode::NONE, id: 1, epoch: 0 };
    let out = batch.finish(producer, 0);
    assert_eq!(out.len(), size);
    let mut found = 0;
    let next = read_batches(&out, &mut Budget::new(MOST), |record| {
        assert_eq!((record.key, record.value), (Some(key), Some(value)));
        assert_eq!(record.headers, [(&b"name"[..], key), (&b""[..], value)]);
        found += 1;
    });
    assert_eq!((next, found), (Ok(Some(1)), 1));
}

/// A batch that has at least its attributes, with length, format and checksum that fit.
fn fitting(mut batch: Vec<u8>) -> Vec<u8> {
    let length = (batch.len() - LENGTH - 4) as u32;
    batch[LENGTH..LENGTH + 4].copy_from_slice(&length.to_be_bytes());
    batch[MAGIC] = 2;
    let sum = weir_kafka::checksum(&batch[ATTRIBUTES..]);
    batch[SUM..ATTRIBUTES].copy_from_slice(&sum.to_be_bytes());
    batch
}

/// These bytes as records that are compressed by each codec, and by an unknown one.
fn compressed(data: &[u8]) {
    for codec in 1..=5 {
        let mut batch = vec![0; RECORDS];
        batch[ATTRIBUTES + 1] = codec;
        batch[COUNT..RECORDS].copy_from_slice(&i32::MAX.to_be_bytes());
        batch.extend_from_slice(data);
        let mut bytes = 0;
        let _ = read_batches(&fitting(batch), &mut Budget::new(MOST), |record| {
            bytes += record.key.unwrap_or_default().len() + record.value.unwrap_or_default().len();
        });
        assert!(bytes <= MOST);
    }
}

/// What a server says in a login is refused or answered.
fn login(data: &[u8]) {
    let nonce = "mine";
    let _ = Challenge::read(data, nonce);
    let _ = Challenge::read(&[b"r=mine", data].concat(), nonce);
    // The thousands of rounds that it takes are done once.
    static SIGNATURE: LazyLock<ServerSignature> = LazyLock::new(|| {
        let scram = Scram::new(ScramHash::Sha256, "me", "password", "mine");
        scram.last_message(b"r=mine+,s=AAAA,i=4096").expect("what a server may ask for").1
    });
    assert!(SIGNATURE.check(data).is_err(), "nobody guesses it");
}

fuzz_target!(|data: &[u8]| {
    let _ = answer::<ApiVersions>(data);
    let _ = answer::<MetadataRequest<'_>>(data);
    let _ = answer::<CreateTopics<'_>>(data);
    let _ = answer::<DescribeConfigs<'_>>(data);
    let _ = answer::<ListOffsets<'_>>(data);
    let _ = answer::<DeleteRecords<'_>>(data);
    let _ = answer::<InitProducerId>(data);
    let _ = answer::<Produce<'_>>(data);
    let _ = answer::<SaslHandshake>(data);
    let _ = answer::<SaslAuthenticate<'_>>(data);
    if let Ok((_, fetched)) = answer::<Fetch<'_>>(data) {
        assert!(fetched.partitions.iter().map(|it| it.records.len()).sum::<usize>() <= data.len());
    }
    // With a checksum that fits, or hardly anything is read.
    let _ = read_batches(data, &mut Budget::new(MOST), |_| ());
    if data.len() > ATTRIBUTES {
        let batch = fitting(data.to_vec());
        let _ = read_batches(&batch, &mut Budget::new(MOST), |record| assert!(record.headers.len() <= MOST));
    }
    compressed(data);
    login(data);
    assert!(partition_of(data, 7) < 7);
    written(data);
});
