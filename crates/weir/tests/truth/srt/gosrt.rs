//! gosrt as a server, which shares nothing with weir or libsrt: what it counts of each connection is what weir counts.

use super::{Loses, PASSPHRASE, Relay};
use crate::support::{Publishing, go, measure, no_file_has, shared};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{ChildStdout, Command, Stdio};
use weir_testing::Kept;

/// One running server.
struct Gosrt {
    process: Kept,
    said: BufReader<ChildStdout>,
    address: SocketAddr,
}

impl Gosrt {
    /// Starts it; without a passphrase it takes callers without one.
    fn start(passphrase: Option<&str>) -> Self {
        let mut command = Command::new(go::program("gosrt"));
        command.arg("serve").args(passphrase).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Kept::start(&mut command);
        let mut said = BufReader::new(process.0.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let address = ([127, 0, 0, 1], line.trim().parse().unwrap()).into();
        Self { process, said, address }
    }

    /// Ends it; the connections that it has had.
    fn end(mut self) -> Vec<Value> {
        drop(self.process.0.stdin.take());
        let mut text = String::new();
        self.said.read_to_string(&mut text).unwrap();
        self.process.ended();
        let said: Value = serde_json::from_str(&text).unwrap();
        said.as_array().unwrap().clone()
    }
}

/// What it has counted of a connection.
fn counted(connection: &Value) -> impl Fn(&str) -> f64 {
    let counts = connection["counts"].clone();
    move |name| counts[name].as_f64().unwrap_or_else(|| panic!("{name} is not in {counts}"))
}

fn url(address: SocketAddr, stream_id: &str, passphrase: Option<&str>) -> String {
    let secret = passphrase.map_or_else(String::new, |text| format!("&passphrase={text}"));
    format!("srt://{address}?streamid={stream_id}&latency=600{secret}")
}

#[test]
fn gosrt_counts_what_is_published_into_it_and_what_a_relay_has_left_out() {
    let _machine = shared();
    for passphrase in [None, Some(PASSPHRASE)] {
        let server = Gosrt::start(passphrase);
        let relay = Relay::start(server.address, 20, Loses::OfTheCaller);
        let id = "#!::r=live/a,m=publish";
        let url = url(relay.address, id, passphrase);
        let run = measure(["publish", &url, "-c", "1", "-d", "6s", "--warmup", "1s", "--bitrate", "2mbps"]);
        assert_eq!((run.code, run.total("played")), (0, 1.0), "{}", run.err);
        let left_out = relay.end() as f64;
        let [connection] = &server.end()[..] else { panic!("one caller, one connection") };
        assert_eq!((&connection["stream_id"], &connection["latency_ms"]), (&id.into(), &600.into()));
        assert_eq!(connection["is_encrypted"], passphrase.is_some());
        let (theirs, ours) = (counted(connection), |name: &str| run.total(name));
        assert!(left_out > 20.0, "{left_out}");
        // Whatever left weir and was not left out came, and what says that it was sent again is a copy.
        let (sent, repeated) = (ours("srt.sent"), ours("srt.retransmitted"));
        assert_eq!(theirs("PktRecv"), sent + repeated - left_out, "{connection}");
        assert_eq!(theirs("PktRecvRetrans"), repeated, "{connection}");
        assert!(repeated >= left_out - 1.0, "{repeated} of {left_out}");
        // It counts each gap as one packet more than it has (0.9.0, `receiver.Push`), and none behind the last packet.
        let (missing, reports) = (theirs("PktRecvLoss"), theirs("PktSentNAK"));
        assert!(missing > left_out && missing <= 2.0 * left_out, "{connection}, {left_out}");
        // What it says while weir leaves is not heard.
        let heard = ours("srt.loss_reports_received");
        assert!(heard <= reports && heard >= reports - 2.0, "{heard}, {connection}");
        let acknowledged = ours("srt.acks_received");
        let acknowledgements = theirs("PktSentACK");
        assert!(acknowledged <= acknowledgements && acknowledged > acknowledgements * 0.95, "{connection}");
        assert!(ours("srt.reported_missing") >= left_out - 1.0);
        // What was recovered is in the stream.
        let zeros = ["PktRecvUndecrypt", "PktSendDrop"].map(&theirs);
        let ours = ["srt.send_dropped", "srt.send_discarded", "srt.malformed", "socket_drops"].map(ours);
        assert_eq!((zeros, ours), ([0.0; 2], [0.0; 4]), "{connection}");
        no_file_has(run.directory(), PASSPHRASE);
    }
}

#[test]
fn what_gosrt_passes_on_is_played_whole_and_counted_as_it_has_counted() {
    let _machine = shared();
    for passphrase in [None, Some(PASSPHRASE)] {
        let server = Gosrt::start(passphrase);
        let publishing = Publishing::start(
            &url(server.address, "#!::r=live/a,m=publish", passphrase),
            &["--bitrate", "2mbps"],
        );
        let relay = Relay::start(server.address, 20, Loses::OfTheListener);
        let id = "#!::r=live/a,m=request";
        let url = url(relay.address, id, passphrase);
        let run = measure(["play", &url, "-c", "1", "-d", "8s", "--warmup", "0s", "--drain", "1s"]);
        assert_eq!((run.code, run.total("played")), (0, 1.0), "{}", run.err);
        let left_out = relay.end() as f64;
        publishing.finish();
        let connections = server.end();
        let connection = connections.iter().find(|it| it["publishes"] == false).unwrap();
        assert_eq!((&connection["stream_id"], &connection["latency_ms"]), (&id.into(), &600.into()));
        assert_eq!(connections.len(), 2, "{connections:?}");
        let (theirs, ours) = (counted(connection), |name: &str| run.total(name));
        assert!(left_out > 20.0, "{left_out}");
        // What it sends while weir leaves is not heard.
        let (sent, repeated) = (theirs("PktSentUnique"), theirs("PktRetrans"));
        assert_eq!(theirs("PktSent"), sent + repeated);
        let (expected, received) = (sent + repeated - left_out, ours("srt.received"));
        assert!(received <= expected && received > expected - 50.0, "{received}, {left_out}, {connection}");
        let copies = ours("srt.retransmissions_received");
        assert!(copies <= repeated && copies > repeated - 10.0, "{copies}, {connection}");
        let missing = ours("srt.missing");
        assert!(missing <= left_out && missing > left_out - 10.0, "{missing} of {left_out}");
        let reports = ours("srt.loss_reports_sent");
        let heard = theirs("PktRecvNAK");
        assert!(heard <= reports && heard >= reports - 2.0, "{reports}, {connection}");
        let zeros = ["srt.dropped", "srt.undecrypted", "srt.malformed", "ts.lost_packets", "srt.reordered"];
        assert_eq!(zeros.map(ours), [0.0; 5], "{connection}");
        assert_eq!(ours("srt.encrypted"), f64::from(u8::from(passphrase.is_some())));
        no_file_has(run.directory(), PASSPHRASE);
    }
}

#[test]
fn a_wrong_passphrase_is_refused_by_gosrt_by_its_name() {
    let _machine = shared();
    let server = Gosrt::start(Some(PASSPHRASE));
    for (passphrase, name) in [(None, "REJ_UNSECURE"), (Some("incorrect-horse"), "REJ_BADSECRET")] {
        let url = url(server.address, "live/a,m=publish", passphrase);
        let run = measure(["publish", &url, "-c", "1", "-d", "3s", "--warmup", "0s"]);
        let (kind, count, _, words) = run.failure();
        assert_eq!((&*kind, count), ("unauthorized", 1));
        assert!(words.contains(name), "{words}");
    }
    assert!(server.end().is_empty());
}
