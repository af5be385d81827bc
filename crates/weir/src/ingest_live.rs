//! `weir ingest --live`: its counts on a page that is renewed each second, and as metrics for Prometheus.

use crate::outlets::Outlets;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use weir_ingest::Counts;
use weir_live::{Part, Reading};
use weir_metrics::Unit;

/// How often the counts are read.
const INTERVAL: Duration = Duration::from_secs(1);

/// The page and the metrics of an ingester, renewed by a thread of their own until this value is gone.
pub(crate) struct IngestLive {
    ending: Option<Sender<String>>,
    thread: Option<JoinHandle<()>>,
}

impl IngestLive {
    /// Shows what is counted of this broker.
    ///
    /// # Errors
    /// The system has no thread left.
    pub(crate) fn start(outlets: Outlets, counts: Arc<Counts>, broker: String) -> std::io::Result<Self> {
        let (ending, ended) = channel();
        let renew = move || renew(&outlets, &counts, &broker, &ended);
        let thread = std::thread::Builder::new().name("weir-counts".to_owned()).spawn(renew)?;
        Ok(Self { ending: Some(ending), thread: Some(thread) })
    }

    /// The ingester has ended, and this is how.
    pub(crate) fn end(self, words: &str) {
        if let Some(ending) = &self.ending {
            // A thread that panicked has nothing to show.
            let _ = ending.send(words.to_owned());
        }
    }
}

impl Drop for IngestLive {
    fn drop(&mut self) {
        self.ending = None;
        if let Some(thread) = self.thread.take() {
            // One that panicked has ended as well.
            let _ = thread.join();
        }
    }
}

/// Reads and shows the counts each second, and a last time at the end.
fn renew(outlets: &Outlets, counts: &Counts, broker: &str, ended: &Receiver<String>) {
    let began = Instant::now();
    let version = env!("CARGO_PKG_VERSION").to_owned();
    outlets.board().begin(vec![("name", broker.to_owned()), ("version", version)]);
    outlets.push();
    let mut before = (Instant::now(), readings(counts));
    let mut ending: Option<String> = None;
    loop {
        let (now, readings) = (Instant::now(), readings(counts));
        outlets.board().show(began.elapsed().as_secs().min(u32::MAX.into()) as u32, []);
        outlets.board().read(readings.clone());
        if ending.is_some() || outlets.wants_body() {
            let page = page(broker, &readings, &before.1, now - before.0);
            outlets.show(move || page);
        }
        if let Some(words) = ending {
            return outlets.end(&words);
        }
        before = (now, readings);
        ending = match ended.recv_timeout(INTERVAL) {
            Ok(words) => Some(words),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some("weir ended: its terminal says why".to_owned()),
        };
    }
}

/// Each count as a metric, defined in `docs/method/ingest.md`.
fn readings(counts: &Counts) -> Vec<Reading> {
    let totals = counts.totals();
    let reading = |name, help, unit, is_counter, value| {
        let labels = Vec::new();
        Reading { name, help, unit, is_counter, labels, value }
    };
    let count = |name, help, value: u64| reading(name, help, Unit::Count, true, value as f64);
    let level = |name, help, value: u64| reading(name, help, Unit::Count, false, value as f64);
    let time = |name, help, value: Duration| reading(name, help, Unit::Micros, true, value.as_secs_f64());
    vec![
        level(
            "ingest_subscribed",
            "1 while the broker has granted the subscription",
            counts.is_subscribed().into(),
        ),
        count("ingest_messages", "Messages that came from the broker", totals.messages),
        reading("ingest_payload", "Bytes of their payloads", Unit::Bytes, true, totals.bytes as f64),
        count(
            "ingest_records_received",
            "Records settled: saved, dead-lettered or duplicate",
            totals.received,
        ),
        count("ingest_records_saved", "Records committed to the table", totals.saved),
        count(
            "ingest_records_dead_lettered",
            "Records and messages put among the dead letters",
            totals.dead_lettered,
        ),
        count("ingest_records_duplicate", "Records that had been saved before", totals.duplicate),
        count(
            "ingest_records_conflict",
            "Records saved though their publisher and number were there with another payload",
            totals.conflict,
        ),
        count("ingest_records_unmarked", "Records without publisher and sequence number", totals.unmarked),
        count("ingest_messages_acknowledged", "Messages acknowledged to the broker", totals.acknowledged),
        level("ingest_messages_unsettled", "Messages that came and are not saved yet", totals.left),
        level("ingest_messages_missing", "Messages missing in the publishers' numbers", totals.missing),
        level(
            "ingest_publishers_missing",
            "Publishers in whose numbers messages are missing",
            counts.missing().publishers,
        ),
        reading(
            "ingest_lag",
            "From the receipt of the first message of the latest batch to its commit, or until now",
            Unit::Micros,
            false,
            counts.lag.latest().as_secs_f64(),
        ),
        reading(
            "ingest_queued",
            "Bytes that wait to be saved",
            Unit::Bytes,
            false,
            counts.queued_bytes() as f64,
        ),
        count("ingest_commits", "Batches committed", totals.commits),
        count("ingest_store_retries", "Attempts at saving that failed and were made again", totals.retries),
        count("ingest_reconnects", "Connections to the broker after the first", totals.reconnects),
        count(
            "ingest_sessions_lost",
            "Connections at which the broker had forgotten the session",
            totals.sessions_lost,
        ),
        time("ingest_decode", "Time spent decoding", totals.decode),
        time("ingest_save", "Time spent saving", totals.save),
    ]
}

/// The counts as a table: all of it, and what the last second added.
fn page(broker: &str, readings: &[Reading], before: &[Reading], span: Duration) -> Vec<Part> {
    let head =
        format!("<header id=\"ingest\"><h1>weir ingest</h1><p><bdi>{}</bdi></p></header>", escaped(broker));
    let mut table = "<section id=\"counts\"><div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Counts\"><table>\
         <caption>Counts</caption><thead><tr><th scope=\"col\">what</th><th scope=\"col\" class=\"number\">so far</th>\
         <th scope=\"col\" class=\"number\">a second</th></tr></thead><tbody>"
        .to_owned();
    for (reading, before) in readings.iter().zip(before) {
        let unit = match reading.unit {
            Unit::Count => "",
            Unit::Bytes => " B",
            Unit::Micros => " s",
        };
        let digits = if reading.unit == Unit::Micros { 3 } else { 0 };
        let rate = if reading.is_counter && !span.is_zero() {
            let rate = (reading.value - before.value) / span.as_secs_f64();
            format!("{rate:.digits$}{unit}")
        } else {
            String::new()
        };
        // A string takes all.
        let _ = write!(
            table,
            "<tr><td>{}</td><td class=\"number\">{:.digits$}{unit}</td><td class=\"number\">{rate}</td></tr>",
            escaped(reading.help),
            reading.value
        );
    }
    table.push_str("</tbody></table></div></section>");
    vec![Part { id: "ingest".to_owned(), html: head }, Part { id: "counts".to_owned(), html: table }]
}

/// Text inside of an element.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn the_page_has_what_was_counted_and_what_a_second_adds() {
        let counts = Counts::default();
        counts.saved.store(40, Relaxed);
        let before = readings(&counts);
        counts.saved.store(100, Relaxed);
        let parts = page("mqtt://h/<a>", &readings(&counts), &before, Duration::from_secs(2));
        assert!(parts[0].html.contains("<bdi>mqtt://h/&lt;a&gt;</bdi>"), "{}", parts[0].html);
        let row = "<tr><td>Records committed to the table</td><td class=\"number\">100</td><td class=\"number\">30</td></tr>";
        assert!(parts[1].html.contains(row), "{}", parts[1].html);
    }

    #[test]
    fn metrics_have_the_names_that_they_always_had() {
        let readings = readings(&Counts::default());
        let names: Vec<_> = readings.iter().map(|it| it.name).collect();
        assert!(names.iter().all(|name| name.starts_with("ingest_")), "{names:?}");
        assert_eq!(names.len(), 21);
    }
}
