//! A well-behaved client beside the attacker, which has to be served.

use crate::process::{Process, TEST_TIMEOUT};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Which listener it asks what, and how the answer begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    pub(crate) scheme: &'static str,
    pub(crate) ask: &'static [u8],
    pub(crate) answer: &'static [u8],
}

/// Over HTTP, on the worker that serves RTMP, WebRTC and HTTP.
pub(crate) const HTTP: Question = Question {
    scheme: "http",
    ask: b"GET /api/version HTTP/1.1\r\nHost: weir\r\n\r\n",
    answer: b"HTTP/1.1 200",
};

/// A segment of a stream that is not there, by HTTP/1.1.
pub(crate) const HLS: Question = Question {
    scheme: "http+hls",
    ask: b"GET /live/none/1.ts HTTP/1.1\r\nHost: weir\r\n\r\n",
    answer: b"HTTP/1.1 404",
};

/// CONNECT of MQTT 5 without an identifier and with keep-alive 60: CONNACK.
pub(crate) const MQTT: Question = Question {
    scheme: "mqtt",
    ask: &[0x10, 13, 0, 4, b'M', b'Q', b'T', b'T', 5, 2, 0, 60, 0, 0, 0],
    answer: &[0x20],
};

/// What a witness has seen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WitnessReport {
    pub(crate) answers: usize,
    /// The most processor time that the server used while one answer was waited for.
    pub(crate) longest: Duration,
}

/// Asks again and again until `done`, and once more then.
pub(crate) fn watch(
    server: &Process,
    address: SocketAddr,
    question: Question,
    done: &AtomicBool,
) -> WitnessReport {
    let mut seen = WitnessReport::default();
    loop {
        let is_last = done.load(Ordering::Relaxed);
        let before = server.spent().expect("the server has ended").processor;
        let mut stream = TcpStream::connect_timeout(&address, TEST_TIMEOUT).expect("a witness is let in");
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        stream.write_all(question.ask).unwrap();
        let mut answer = vec![0; question.answer.len()];
        stream.read_exact(&mut answer).expect("a witness is answered");
        assert_eq!(answer, question.answer);
        let after = server.spent().expect("the server has ended").processor;
        seen.longest = seen.longest.max(after - before);
        seen.answers += 1;
        if is_last {
            return seen;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
