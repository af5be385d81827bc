//! `/metrics` for Prometheus (text format 0.0.4), and nothing else of HTTP.

use crate::counts::Counts;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_web::{Message, Requests};

/// How long a client may take to ask and to be answered, however many reads that is.
const PATIENCE: Duration = Duration::from_secs(2);

/// Connections that are served at once; more wait in the listener's queue. Prometheus needs one; a client that asks slowly
/// holds another for [`PATIENCE`] at most.
const CONNECTIONS: usize = 4;

/// A listener with threads of its own, which end with the process.
#[derive(Debug)]
pub struct Metrics {
    address: SocketAddr,
}

impl Metrics {
    /// Answers at this address from now on.
    ///
    /// # Errors
    /// The address is taken, or is not of this machine.
    pub fn listen(address: SocketAddr, counts: &Arc<Counts>) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        for _ in 0..CONNECTIONS {
            let (listener, counts) = (listener.try_clone()?, counts.clone());
            std::thread::Builder::new().name("weir-metrics".to_owned()).spawn(move || {
                for stream in listener.incoming().flatten() {
                    // Whoever breaks off has not been waiting for the rest.
                    let _ = answer(stream, &counts);
                }
            })?;
        }
        Ok(Self { address })
    }

    /// Where it answers.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

fn answer(mut stream: TcpStream, counts: &Counts) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    // The answer is a few kilobytes, which the kernel takes at once: a peer that does not read holds nobody.
    stream.set_write_timeout(Some(PATIENCE))?;
    let (mut requests, mut piece) = (Requests::new(0), [0; 1024]);
    let answer = loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let read = stream.read(&mut piece)?;
        match requests.take(&mut &piece[..read]) {
            Ok(None) if read == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(None) => {}
            Ok(Some(request)) if request.method == "GET" && request.path == "/metrics" => {
                let kind = "text/plain; version=0.0.4; charset=utf-8";
                break Message::response(200).field("Content-Type", kind).body(text(counts));
            }
            Ok(Some(_)) => break Message::response(404).body(""),
            Err(bad) => break Message::response(bad.status()).body(""),
        }
    };
    stream.write_all(&answer.keep_alive(false).end())
}

/// All counters in Prometheus' words.
pub(crate) fn text(counts: &Counts) -> String {
    let totals = counts.totals();
    let mut out = String::new();
    let mut put = |name: &str, kind: &str, help: &str, value: f64| {
        // A string takes all.
        let _ = write!(
            out,
            "# HELP weir_ingest_{name} {help}\n# TYPE weir_ingest_{name} {kind}\nweir_ingest_{name} {value}\n"
        );
    };
    for (name, help, value) in [
        ("messages_total", "Messages that came from the broker.", totals.messages),
        ("payload_bytes_total", "Bytes of their payloads.", totals.bytes),
        ("records_received_total", "Records settled: saved, dead-lettered or duplicate.", totals.received),
        ("records_saved_total", "Records committed to the table.", totals.saved),
        (
            "records_dead_lettered_total",
            "Records and messages put among the dead letters.",
            totals.dead_lettered,
        ),
        ("records_duplicate_total", "Records that had been saved before.", totals.duplicate),
        (
            "records_conflict_total",
            "Records saved though their publisher and number were there with another payload.",
            totals.conflict,
        ),
        ("records_unmarked_total", "Records without publisher and sequence number.", totals.unmarked),
        ("messages_acknowledged_total", "Messages acknowledged to the broker.", totals.acknowledged),
        ("commits_total", "Batches committed.", totals.commits),
        ("store_retries_total", "Attempts at saving that failed and were made again.", totals.retries),
        ("reconnects_total", "Connections to the broker after the first.", totals.reconnects),
        (
            "sessions_lost_total",
            "Connections at which the broker had forgotten the session.",
            totals.sessions_lost,
        ),
    ] {
        put(name, "counter", help, value as f64);
    }
    put("decode_seconds_total", "counter", "Time spent decoding.", totals.decode.as_secs_f64());
    put("save_seconds_total", "counter", "Time spent saving.", totals.save.as_secs_f64());
    put("messages_unsettled", "gauge", "Messages that came and are not saved yet.", totals.left as f64);
    put("messages_missing", "gauge", "Messages missing in the publishers' numbers.", totals.missing as f64);
    put("queued_bytes", "gauge", "Bytes that wait to be saved.", Counts::of(&counts.queued) as f64);
    put(
        "subscribed",
        "gauge",
        "1 while the broker has granted the subscription.",
        Counts::of(&counts.subscribed) as f64,
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    /// A client that sends a byte of its request now and then, until it is told to stop or is cut off.
    fn dawdle(address: SocketAddr, stop: &AtomicBool) -> bool {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        while !stop.load(Relaxed) {
            let is_over = match stream.read(&mut [0]) {
                Ok(_) => true,
                Err(error) => !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut),
            };
            if is_over || stream.write_all(b"G").is_err() {
                return true;
            }
        }
        false
    }

    #[test]
    fn clients_that_ask_slowly_are_cut_off_and_others_are_answered() {
        let metrics = Metrics::listen("127.0.0.1:0".parse().unwrap(), &Arc::default()).unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let slow: Vec<_> =
                (0..2 * CONNECTIONS).map(|_| scope.spawn(|| dawdle(metrics.address(), &stop))).collect();
            // Each of them was cut off: none holds its place for ever.
            assert!(slow.into_iter().all(|client| client.join().unwrap()));
            let held = scope.spawn(|| dawdle(metrics.address(), &stop));
            let mut stream = TcpStream::connect(metrics.address()).unwrap();
            stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
            let mut page = String::new();
            stream.read_to_string(&mut page).unwrap();
            stop.store(true, Relaxed);
            held.join().unwrap();
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n";
            assert!(page.starts_with(head), "{page}");
            assert!(page.contains("weir_ingest_records_conflict_total 0\n"), "{page}");
        });
    }
}
