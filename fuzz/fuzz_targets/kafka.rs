//! No answer of a broker makes weir panic, and none takes more memory than a small multiple of its bytes; a batch of records is read
//! to its end or is refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_kafka::{
    ApiVersions, CreateTopics, DeleteRecords, DescribeConfigs, Fetch, InitProducerId, ListOffsets,
    MetadataRequest, Produce, Record, RecordBatch, answer, partition_of, read_batches,
};

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
    let next = read_batches(&out, |record| {
        assert_eq!((record.key, record.value), (Some(key), Some(value)));
        assert_eq!(record.headers, [(&b"name"[..], key), (&b""[..], value)]);
        found += 1;
    });
    assert_eq!((next, found), (Ok(Some(1)), 1));
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
    if let Ok((_, fetched)) = answer::<Fetch<'_>>(data) {
        assert!(fetched.iter().map(|it| it.records.len()).sum::<usize>() <= data.len());
    }
    // With a checksum that fits, or hardly anything is read.
    let _ = read_batches(data, |_| ());
    let mut batch = data.to_vec();
    if batch.len() > 21 {
        let length = batch.len() - 12;
        batch[8..12].copy_from_slice(&(length as u32).to_be_bytes());
        batch[16] = 2;
        let sum = weir_kafka::checksum(&batch[21..]);
        batch[17..21].copy_from_slice(&sum.to_be_bytes());
        let _ = read_batches(&batch, |record| assert!(record.headers.len() <= data.len()));
    }
    assert!(partition_of(data, 7) < 7);
    written(data);
});
