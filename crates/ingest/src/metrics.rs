//! `/metrics` for Prometheus (text format 0.0.4), and nothing else of HTTP.

use crate::counts::Counts;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// How long a client may take to ask.
const PATIENCE: Duration = Duration::from_secs(2);

/// The longest request that is read, in bytes.
const REQUEST: usize = 8 * 1024;

/// A listener with a thread of its own, which ends with the process.
#[derive(Debug)]
pub struct Metrics {
    address: SocketAddr,
}

impl Metrics {
    /// Answers at this address from now on.
    ///
    /// # Errors
    /// The address is taken, or is not of this machine.
    pub fn listen(address: SocketAddr, counts: Arc<Counts>) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        std::thread::Builder::new().name("weir-metrics".to_owned()).spawn(move || {
            for stream in listener.incoming().flatten() {
                // Whoever breaks off has not been waiting for the rest.
                let _ = answer(stream, &counts);
            }
        })?;
        Ok(Self { address })
    }

    /// Where it answers.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

fn answer(mut stream: TcpStream, counts: &Counts) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < REQUEST {
        match stream.read(&mut piece)? {
            0 => break,
            read => request.extend_from_slice(&piece[..read]),
        }
    }
    let found = request.starts_with(b"GET /metrics ") || request.starts_with(b"GET /metrics?");
    let (status, body) = if found { ("200 OK", text(counts)) } else { ("404 Not Found", String::new()) };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
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
