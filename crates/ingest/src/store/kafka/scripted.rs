//! A broker of tests: it answers as it is told, or keeps logs and refuses what it is told to refuse.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use weir_kafka::ErrorCode;

/// The body of an answer.
#[derive(Default)]
pub(super) struct Answer(Vec<u8>);

impl Answer {
    pub(super) fn number<const N: usize>(mut self, bytes: [u8; N]) -> Self {
        self.0.extend(bytes);
        self
    }

    pub(super) fn text(self, text: &str) -> Self {
        let mut with_length = self.number((text.len() as i16).to_be_bytes());
        with_length.0.extend(text.bytes());
        with_length
    }

    fn bytes(self, bytes: &[u8]) -> Self {
        let mut with_length = self.number((bytes.len() as i32).to_be_bytes());
        with_length.0.extend(bytes);
        with_length
    }

    pub(super) fn mechanisms(code: ErrorCode, names: &[&str]) -> Self {
        let head = Self::default().number(code.0.to_be_bytes()).number((names.len() as i32).to_be_bytes());
        names.iter().fold(head, |answer, name| answer.text(name))
    }

    /// Of a login that goes on, or holds for this many milliseconds.
    pub(super) fn authenticated(message: &str, lifetime: i64) -> Self {
        let head = Self::default().number([0; 2]).number((-1_i16).to_be_bytes()).number([0; 2]);
        head.text(message).number(lifetime.to_be_bytes())
    }

    /// Whatever is spoken here, in any version.
    fn versions() -> Self {
        let keys = [0_i16, 1, 2, 3, 17, 19, 21, 22, 32, 36];
        let head = Self::default().number([0; 2]).number((keys.len() as i32).to_be_bytes());
        keys.iter().fold(head, |answer, key| {
            answer.number(key.to_be_bytes()).number([0; 2]).number(20_i16.to_be_bytes())
        })
    }
}

/// A broker that answers what is asked, and the keys of what it was asked.
pub(super) fn broker(answer: impl Fn(i16, &[u8]) -> Answer + Send + Sync + 'static) -> (u16, Receiver<i16>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (port, serve(listener, answer))
}

fn serve(
    listener: TcpListener,
    answer: impl Fn(i16, &[u8]) -> Answer + Send + Sync + 'static,
) -> Receiver<i16> {
    let (sender, receiver) = channel();
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for link in listener.incoming() {
            let (mut link, sender, answer) = (link.unwrap(), sender.clone(), answer.clone());
            std::thread::spawn(move || {
                let mut length = [0; 4];
                while link.read_exact(&mut length).is_ok() {
                    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
                    link.read_exact(&mut frame).unwrap();
                    let key = i16::from_be_bytes([frame[0], frame[1]]);
                    let body = if key == 18 { Answer::versions() } else { answer(key, &frame[8..]) };
                    let _ = sender.send(key);
                    let length = (body.0.len() as u32 + 4).to_be_bytes();
                    // At once: what is sent in pieces waits for acknowledgements.
                    link.write_all(&[&length, &frame[4..8], &body.0].concat()).unwrap();
                }
            });
        }
    });
    receiver
}

/// A question, read from the front.
struct Question<'a>(&'a [u8]);

impl<'a> Question<'a> {
    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }

    fn i32(&mut self) -> i32 {
        i32::from_be_bytes(self.take(4).try_into().unwrap())
    }

    fn i64(&mut self) -> i64 {
        i64::from_be_bytes(self.take(8).try_into().unwrap())
    }

    fn text(&mut self) -> String {
        let length = i16::from_be_bytes(self.take(2).try_into().unwrap());
        String::from_utf8(self.take(length as usize).to_vec()).unwrap()
    }
}

/// The log of a partition.
#[derive(Default)]
pub(super) struct Log {
    /// The first offset that is there.
    pub(super) start: i64,
    pub(super) end: i64,
    /// Batches with the offsets of their first records.
    pub(super) batches: Vec<(i64, Vec<u8>)>,
}

/// Logs by topic and partition.
pub(super) type Logs = Arc<Mutex<HashMap<(String, i32), Log>>>;

/// A cluster of one broker, each of whose topics has two partitions. `refuse` is asked about each batch: its partition, the number of its
/// records, and its bytes.
pub(super) fn cluster(
    refuse: impl Fn(i32, i32, usize) -> ErrorCode + Send + Sync + 'static,
) -> (u16, Logs, Receiver<i16>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let logs = Logs::default();
    let kept = logs.clone();
    let asked = serve(listener, move |key, body| {
        let mut question = Question(body);
        assert_eq!(question.text(), "weir");
        let mut logs = kept.lock().unwrap();
        match key {
            0 => produce(question, &mut logs, &refuse),
            1 => fetch(question, &mut logs),
            2 => offsets(question, &mut logs),
            3 => metadata(question, port),
            22 => Answer::default().number([0; 4 + 2 + 8 + 2]),
            32 => {
                let head = Answer::default().number([0; 4]).number(1_i32.to_be_bytes()).number([0; 2]);
                let head = head.number([0xFF; 2]).number([2]).text("t").number(1_i32.to_be_bytes());
                head.text("max.message.bytes").text("1048588").number([0; 3 + 4])
            }
            _ => panic!("{key}"),
        }
    });
    (port, logs, asked)
}

fn metadata(mut question: Question<'_>, port: u16) -> Answer {
    let names: Vec<_> = (0..question.i32()).map(|_| question.text()).collect();
    let one = 1_i32.to_be_bytes();
    // One broker, which is the controller.
    let head = Answer::default().number([0; 4]).number(one).number(one).text("127.0.0.1");
    let head = head.number(i32::from(port).to_be_bytes()).number([0xFF; 4]).number(one);
    names.iter().fold(head.number((names.len() as i32).to_be_bytes()), |answer, name| {
        let topic = answer.number([0; 2]).text(name).number([0]).number(2_i32.to_be_bytes());
        (0..2_i32).fold(topic, |answer, partition| {
            answer.number([0; 2]).number(partition.to_be_bytes()).number(one).number([0; 12])
        })
    })
}

fn produce(
    mut question: Question<'_>,
    logs: &mut HashMap<(String, i32), Log>,
    refuse: &impl Fn(i32, i32, usize) -> ErrorCode,
) -> Answer {
    question.take(2 + 2 + 4);
    let topics = question.i32();
    let mut answer = Answer::default().number(topics.to_be_bytes());
    for _ in 0..topics {
        let (name, partitions) = (question.text(), question.i32());
        answer = answer.text(&name).number(partitions.to_be_bytes());
        for _ in 0..partitions {
            let (partition, length) = (question.i32(), question.i32() as usize);
            let mut batch = question.take(length).to_vec();
            // The number of records is the last field before them.
            let records = i32::from_be_bytes(batch[57..61].try_into().unwrap());
            let error = refuse(partition, records, length);
            let log = logs.entry((name.clone(), partition)).or_default();
            let offset = if error.is_none() { log.end } else { -1 };
            if error.is_none() {
                batch[..8].copy_from_slice(&offset.to_be_bytes());
                log.batches.push((offset, batch));
                log.end += i64::from(records);
            }
            answer = answer.number(partition.to_be_bytes()).number(error.0.to_be_bytes());
            answer = answer.number(offset.to_be_bytes()).number([0; 16]);
        }
    }
    answer.number([0; 4])
}

fn fetch(mut question: Question<'_>, logs: &mut HashMap<(String, i32), Log>) -> Answer {
    question.take(4 + 4 + 4 + 4 + 1 + 4 + 4 + 4);
    let (name, partitions) = (question.text(), question.i32());
    let mut answer = Answer::default().number([0; 4 + 2 + 4]).number(1_i32.to_be_bytes()).text(&name);
    answer = answer.number(partitions.to_be_bytes());
    for _ in 0..partitions {
        let (partition, _epoch, offset, _) =
            (question.i32(), question.i32(), question.i64(), question.take(12));
        let log = logs.entry((name.clone(), partition)).or_default();
        let is_there = (log.start..=log.end).contains(&offset);
        let error = if is_there { ErrorCode::NONE } else { ErrorCode::OFFSET_OUT_OF_RANGE };
        // From the batch on that has the offset.
        let before = log.batches.partition_point(|(first, _)| *first <= offset).saturating_sub(1);
        let records: Vec<u8> =
            log.batches[before..].iter().flat_map(|(_, batch)| batch).copied().filter(|_| is_there).collect();
        answer = answer.number(partition.to_be_bytes()).number(error.0.to_be_bytes());
        answer = answer.number([0; 24 + 4]).bytes(&records);
    }
    answer
}

fn offsets(mut question: Question<'_>, logs: &mut HashMap<(String, i32), Log>) -> Answer {
    question.take(4 + 1 + 4);
    let (name, partitions) = (question.text(), question.i32());
    let mut answer = Answer::default().number([0; 4]).number(1_i32.to_be_bytes()).text(&name);
    answer = answer.number(partitions.to_be_bytes());
    for _ in 0..partitions {
        let (partition, time) = (question.i32(), question.i64());
        let log = logs.entry((name.clone(), partition)).or_default();
        let offset = if time == weir_kafka::LATEST { log.end } else { log.start };
        answer = answer.number(partition.to_be_bytes()).number([0; 2 + 8]).number(offset.to_be_bytes());
    }
    answer
}
