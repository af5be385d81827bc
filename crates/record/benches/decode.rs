//! Decoding of records, beside the floor, a copy of their bytes, and beside the decoders of libraries.
//!
//! The record is that of the measurement that weir replaces (`scenarios/schemas/SimpleClass.avsc`): about 955 bytes in
//! Avro. Each record is decoded, and each column of it read once. All take turns in this process, in rounds, over 256
//! different records, so that branches are not learnt by heart. Printed are median and least of the rounds, in CPU time of
//! this thread, and the least beside that of the copy of the same bytes.
//!
//! Libraries of JSON read into a structure that was written for this very record, with what can be borrowed borrowed: the
//! best that they can do, and more than a program can that learns of the schema when it runs. What such a program can do is
//! in `decode/tape.rs`. apache-avro reads into its own values.

#[path = "decode/tape.rs"]
mod tape;

use base64::Engine;
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use tape::Tape;
use weir_record::{Decoder, Encoder, Format, Framing, Generator, Record, Schema, Value};

const RECORDS: usize = 256;
const PASSES: usize = 100;
const ROUNDS: usize = 21;

/// One way to spend time on the records; gives how many bytes a record has.
type Work<'w> = (String, usize, Box<dyn FnMut() -> u64 + 'w>);

fn main() {
    // `cargo test` runs benches as well, and wants to know only whether this one runs.
    let quick = std::env::args().all(|argument| argument != "--bench");
    let (passes, rounds) = if quick { (1, 1) } else { (PASSES, ROUNDS) };
    let schema =
        Schema::parse(include_str!("../../../scenarios/schemas/SimpleClass.avsc")).expect("a schema");
    let formats = [
        Format::Avro(Framing::Schemaless),
        Format::Avro(Framing::SingleObject),
        Format::Avro(Framing::Container),
        Format::Json,
    ];
    let payloads = formats.map(|format| payloads(&schema, format));
    let mut work: Vec<Work<'_>> = Vec::new();
    for (format, payloads) in formats.iter().zip(&payloads) {
        let bytes = payloads.iter().map(Vec::len).sum::<usize>() / payloads.len();
        let mut room = vec![0; 4 * bytes];
        work.push((format!("{format}: copy"), bytes, Box::new(move || copy(payloads, &mut room, passes))));
        let mut decoder = Decoder::new(&schema, *format);
        work.push((
            format!("{format}: decode"),
            bytes,
            Box::new(move || decode(payloads, &mut decoder, passes)),
        ));
        work.extend(libraries(*format, &schema, payloads, bytes, passes));
        let mut generator = Generator::new(&schema, 1);
        let mut encoder = Encoder::new(&schema, *format);
        let mut out = Vec::new();
        work.push((
            format!("{format}: generate and encode"),
            bytes,
            Box::new(move || {
                let mut sum = 0;
                for number in 0..(passes * RECORDS / 8) as u64 {
                    encoder.push(generator.record(number).expect("a small record")).expect("of this schema");
                    out.clear();
                    encoder.finish(&mut out);
                    sum += black_box(&out).len() as u64;
                }
                sum
            }),
        ));
    }
    let mut seconds = vec![Vec::new(); work.len()];
    for _ in 0..rounds {
        for ((.., work), seconds) in work.iter_mut().zip(&mut seconds) {
            let started = thread_cpu();
            black_box(work());
            seconds.push(thread_cpu() - started);
        }
    }
    println!("{:<44} {:>8} {:>10} {:>10} {:>8}", "", "bytes", "ns/record", "least", "x copy");
    let mut floor = 1.0;
    for ((name, bytes, _), mut seconds) in work.into_iter().zip(seconds) {
        seconds.sort_by(f64::total_cmp);
        let records = if name.ends_with("encode") { passes * RECORDS / 8 } else { passes * RECORDS };
        let [median, least] = [seconds[seconds.len() / 2], seconds[0]].map(|it| it * 1e9 / records as f64);
        if name.ends_with("copy") {
            floor = least;
        }
        println!("{name:<44} {bytes:>8} {median:>10.1} {least:>10.1} {:>8.1}", least / floor);
    }
}

/// The record in JSON, as whoever knows it would write it down.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct SimpleClass<'r> {
    my_int: i32,
    my_long: i64,
    my_bool: bool,
    my_double: f64,
    my_float: f32,
    /// In base64.
    my_bytes: &'r str,
    my_filename: &'r str,
    my_string: &'r str,
    my_array: Vec<f64>,
}

/// What libraries make of the payloads of a format, if they read it.
fn libraries<'w>(
    format: Format,
    schema: &Schema,
    payloads: &'w [Vec<u8>],
    bytes: usize,
    passes: usize,
) -> Vec<Work<'w>> {
    let text = include_str!("../../../scenarios/schemas/SimpleClass.avsc");
    match format {
        Format::Avro(Framing::Schemaless) => {
            let apache = apache_avro::Schema::parse_str(text).expect("a schema");
            vec![typed("Avro (schemaless): decode, apache-avro", payloads, bytes, passes, move |payload| {
                let reader = apache_avro::reader::datum::GenericDatumReader::builder(&apache);
                let value = reader.build().expect("a schema").read_value(&mut &payload[..]);
                black_box(value.expect("a record"));
                1
            })]
        }
        Format::Json | Format::AvroJson => vec![
            typed("JSON: decode, serde_json", payloads, bytes, passes, |payload| {
                add(&serde_json::from_slice(payload).expect("a record"))
            }),
            typed("JSON: decode, sonic-rs", payloads, bytes, passes, |payload| {
                add(&sonic_rs::from_slice(payload).expect("a record"))
            }),
            by_schema("serde_json", Tape::serde_json, schema, payloads, bytes, passes),
            by_schema("sonic-rs", Tape::sonic, schema, payloads, bytes, passes),
            by_schema("sonic-rs, lazily", Tape::sonic_lazily, schema, payloads, bytes, passes),
            by_schema("sonic-rs, get_many", Tape::sonic_many, schema, payloads, bytes, passes),
        ],
        Format::Avro(_) => Vec::new(),
    }
}

/// A library of JSON, driven by the schema.
fn by_schema<'w>(
    library: &str,
    decode: fn(&mut Tape, &[u8]) -> u64,
    schema: &Schema,
    payloads: &'w [Vec<u8>],
    bytes: usize,
    passes: usize,
) -> Work<'w> {
    let mut tape = Tape::new(schema);
    // They read what weir reads.
    let mut decoder = Decoder::new(schema, Format::Json);
    for payload in payloads {
        assert_eq!(decode(&mut tape, payload), touch(decoder.one(payload).expect("a record")));
    }
    let all = move || (0..passes).flat_map(|_| payloads).map(|payload| decode(&mut tape, payload)).sum();
    (format!("JSON: decode by schema, {library}"), bytes, Box::new(all))
}

fn typed<'w>(
    name: &str,
    payloads: &'w [Vec<u8>],
    bytes: usize,
    passes: usize,
    decode: impl Fn(&'w [u8]) -> u64 + 'w,
) -> Work<'w> {
    let all = move || (0..passes).flat_map(|_| payloads).map(|payload| decode(payload)).sum();
    (name.to_owned(), bytes, Box::new(all))
}

/// Reads each column once; what stands in base64 is bytes then.
fn add(record: &SimpleClass<'_>) -> u64 {
    let bytes = base64::engine::general_purpose::STANDARD.decode(record.my_bytes).expect("base64").len();
    black_box((record.my_int, record.my_long, record.my_bool, record.my_double.to_bits()));
    black_box((record.my_float.to_bits(), record.my_filename, record.my_string, &record.my_array));
    bytes as u64
}

fn thread_cpu() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn payloads(schema: &Schema, format: Format) -> Vec<Vec<u8>> {
    let mut generator = Generator::new(schema, 1);
    let mut encoder = Encoder::new(schema, format);
    let payload = |number| {
        let mut out = Vec::new();
        encoder.push(generator.record(number).expect("a small record")).expect("of this schema");
        encoder.finish(&mut out);
        out
    };
    (0..RECORDS as u64).map(payload).collect()
}

fn copy(payloads: &[Vec<u8>], room: &mut [u8], passes: usize) -> u64 {
    let mut sum = 0;
    for _ in 0..passes {
        for payload in payloads {
            room[..payload.len()].copy_from_slice(payload);
            sum += u64::from(black_box(&*room)[0]);
        }
    }
    sum
}

fn decode(payloads: &[Vec<u8>], decoder: &mut Decoder, passes: usize) -> u64 {
    let mut sum = 0;
    for _ in 0..passes {
        for payload in payloads {
            sum += touch(decoder.one(payload).expect("a record"));
        }
    }
    sum
}

/// Reads each column once.
#[inline]
fn touch(record: Record<'_>) -> u64 {
    record
        .columns()
        .map(|value| match black_box(value) {
            Value::Int(value) => value as u64,
            Value::Long(value) => value as u64,
            Value::Boolean(value) => value.into(),
            Value::Double(value) => value.to_bits(),
            Value::Float(value) => value.to_bits().into(),
            Value::Bytes(bytes) => bytes.len() as u64,
            Value::String(text) => text.len() as u64,
            Value::Array(array) => array.doubles().map_or(0, |doubles| doubles.len() as u64),
            _ => 0,
        })
        .fold(0, u64::wrapping_add)
}
