//! Topics that compress what they are sent: what lies there is read back and recognised.

use crate::PATIENT;
use crate::bench::kafka;
use std::io::{Read, Write};
use std::net::TcpStream;
use weir_ingest::{Decode, Destination, Durability, Loader};
use weir_kafka::{CreateTopics, CreatedTopic, ErrorCode, Output, Request, answer, request};
use weir_testing::{KAFKA, KAFKA_3, Kafka};

const CODECS: [&str; 4] = ["gzip", "snappy", "lz4", "zstd"];

/// Creates a topic with one partition that compresses by each codec: Kafka's own tool takes seconds for each.
struct CreateCompressed;

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u16).to_be_bytes(), text.as_bytes()].concat()
}

impl Request for CreateCompressed {
    const KEY: i16 = CreateTopics::KEY;
    const VERSION: i16 = CreateTopics::VERSION;
    type Response = Vec<CreatedTopic>;

    fn put(&self, out: &mut Output) {
        out.extend((CODECS.len() as u32).to_be_bytes());
        for codec in CODECS {
            out.extend(text(codec));
            // One partition, one copy of it, no assignments, one setting.
            out.extend([0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
            out.extend(text("compression.type"));
            out.extend(text(codec));
        }
        // In 30 s; not only checked.
        out.extend(30_000_u32.to_be_bytes());
        out.push(0);
    }
}

fn create(server: &Kafka) {
    let mut link = TcpStream::connect(server.address()).unwrap();
    let mut frame = Vec::new();
    request(&CreateCompressed, 1, &mut frame);
    link.write_all(&frame).unwrap();
    let mut length = [0; 4];
    link.read_exact(&mut length).unwrap();
    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
    link.read_exact(&mut frame).unwrap();
    let (_, created) = answer::<CreateCompressed>(&frame).unwrap();
    assert!(created.iter().all(|topic| topic.error == ErrorCode::NONE), "{created:?}");
}

fn what_is_compressed_is_recognised(server: &Kafka) {
    create(server);
    let payloads = |from: u32, to: u32| -> Vec<_> {
        (from..to).map(|number| format!("payload {number} ").repeat(20).into_bytes()).collect()
    };
    for codec in CODECS {
        let destination: Destination = server.url(codec).parse().unwrap();
        let loader = || Loader::new(&destination, "unused", &Decode::raw(), Durability::Full);
        let mut decode = Decode::raw();
        let mut first = loader();
        first.open(&PATIENT).unwrap();
        for from in [0, 500] {
            let filled = first.fill(&mut decode, &payloads(from, from + 500), 7, from.into()).unwrap();
            assert_eq!(filled.rows, 500, "{codec}");
        }
        // Another, which knows by reading.
        let mut second = loader();
        second.open(&PATIENT).unwrap();
        assert_eq!(second.fill(&mut decode, &payloads(0, 1_010), 7, 0).unwrap().rows, 10, "{codec}");
        assert_eq!(first.fill(&mut decode, &payloads(0, 1_010), 7, 0).unwrap().rows, 0, "{codec}");
        assert_eq!(first.contents(&PATIENT).unwrap().rows, 1_010, "{codec}");
    }
}

#[test]
fn the_last_kafka_before_4_compresses_and_what_comes_again_is_recognised() {
    what_is_compressed_is_recognised(&kafka(KAFKA_3));
}

#[test]
fn kafka_4_compresses_and_what_comes_again_is_recognised() {
    what_is_compressed_is_recognised(&kafka(KAFKA));
}
