//! Metrics as requests of Prometheus remote write 1.0: the series of `/metrics`, each with one sample.
//!
//! Sums are cumulative, so that the next request replaces one that was lost. It must not know a link or a clock.

use crate::family::{Family, FamilyKind, Sample};
use prost::Message;
use std::collections::BTreeSet;

/// Fields of each request's head.
pub(crate) const HEAD: [(&str, &str); 3] = [
    ("Content-Type", "application/x-protobuf"),
    ("Content-Encoding", "snappy"),
    ("X-Prometheus-Remote-Write-Version", "0.1.0"),
];

/// The value of a series that goes on no longer: the one NaN of all that Prometheus takes for that.
const STALE: u64 = 0x7ff0_0000_0000_0002;

#[derive(Clone, PartialEq, Message)]
struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    series: Vec<TimeSeries>,
}

#[derive(Clone, PartialEq, Message)]
struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Pair>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Point>,
}

/// `Label`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Message)]
struct Pair {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

/// `Sample`.
#[derive(Clone, PartialEq, Message)]
struct Point {
    #[prost(double, tag = "1")]
    value: f64,
    #[prost(int64, tag = "2")]
    timestamp: i64,
}

/// Makes requests, and knows which series the receiver has.
#[derive(Debug)]
pub(crate) struct Requests {
    /// Labels of every series beside its own.
    labels: Vec<Pair>,
    /// Series that the receiver may have as going on.
    known: BTreeSet<Vec<Pair>>,
    /// Series of the latest request.
    latest: BTreeSet<Vec<Pair>>,
    /// Milliseconds of the latest request.
    at: i64,
}

impl Requests {
    /// With these labels in each series.
    pub(crate) fn new(labels: &[(&str, &str)]) -> Self {
        let labels = labels.iter().map(|(name, value)| pair(name, value)).collect();
        Self { labels, known: BTreeSet::new(), latest: BTreeSet::new(), at: 0 }
    }

    /// A request's body, of what is at this many milliseconds since 1970.
    pub(crate) fn next(&mut self, families: &[Family], millis: i64) -> Vec<u8> {
        // "Senders MUST send samples for any given series in timestamp order": a clock may be set back.
        self.at = millis.max(self.at + 1);
        let values: Vec<_> = families.iter().flat_map(|family| self.values(family)).collect();
        self.latest = values.iter().map(|(labels, _)| labels.clone()).collect();
        let gone = self.known.difference(&self.latest).cloned();
        let stale = gone.map(|labels| (labels, f64::from_bits(STALE)));
        let series = values
            .into_iter()
            .chain(stale)
            .map(|(labels, value)| TimeSeries { labels, samples: vec![Point { value, timestamp: self.at }] });
        let request = WriteRequest { series: series.collect() };
        // Only one of more than 4 GiB cannot be compressed.
        snap::raw::Encoder::new().compress_vec(&request.encode_to_vec()).unwrap_or_default()
    }

    /// The receiver has taken the latest request. One that it has not taken it may have taken in part.
    pub(crate) fn is_taken(&mut self, taken: bool) {
        let latest = std::mem::take(&mut self.latest);
        if taken {
            self.known = latest;
        } else {
            self.known.extend(latest);
        }
    }

    fn values(&self, family: &Family) -> Vec<(Vec<Pair>, f64)> {
        let name = family.full_name();
        let mut values = Vec::new();
        for (labels, sample) in &family.series {
            let own: Vec<_> = labels.iter().map(|(name, value)| pair(name, value)).collect();
            let mut add = |ending: &str, bound: Option<f64>, value: f64| {
                let bound = bound.map(|bound| pair("le", &bound_text(bound)));
                let mut labels = vec![pair("__name__", &format!("{name}{ending}"))];
                labels.extend(self.labels.iter().chain(&own).chain(&bound).cloned());
                // "MUST have label names sorted", and "MUST NOT contain any empty label names or values".
                labels.retain(|it| !it.value.is_empty());
                labels.sort();
                values.push((labels, value));
            };
            match sample {
                Sample::Histogram(buckets) => {
                    buckets.cumulative().for_each(|(bound, count)| add("_bucket", Some(bound), count as f64));
                    add("_sum", None, buckets.sum);
                    add("_count", None, buckets.count as f64);
                }
                _ if family.kind == FamilyKind::Info => add("", None, 1.0),
                Sample::Whole(_) | Sample::Number(_) => add("", None, sample.number()),
            }
        }
        values
    }
}

fn pair(name: &str, value: &str) -> Pair {
    Pair { name: name.to_owned(), value: value.to_owned() }
}

/// A bucket's upper bound as OpenMetrics writes it, and Prometheus from 3.0 whatever it collects: `1.0`, `+Inf`.
fn bound_text(bound: f64) -> String {
    if bound.is_infinite() { "+Inf".to_owned() } else { format!("{bound:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Board, Origin};
    use weir_metrics::common::{RECEIVED, STARTUP};
    use weir_metrics::{Recorder, Schema};

    fn decoded(body: &[u8]) -> WriteRequest {
        WriteRequest::decode(&*snap::raw::Decoder::new().decompress_vec(body).unwrap()).unwrap()
    }

    /// Each series as Prometheus writes it, and its value.
    fn lines(request: &WriteRequest) -> Vec<(String, f64)> {
        let line = |series: &TimeSeries| {
            let labels: Vec<_> =
                series.labels.iter().map(|it| format!("{}={:?}", it.name, it.value)).collect();
            (labels.join(","), series.samples[0].value)
        };
        request.series.iter().map(line).collect()
    }

    fn board() -> Board {
        let board = Board::default();
        board.begin(vec![("run", "demo-1".to_owned()), ("name", String::new())]);
        let mut figures = Recorder::new(Schema::new(&[]));
        figures.count(RECEIVED, 1_000);
        figures.record(STARTUP, 120_000);
        figures.record(STARTUP, 700_000);
        let play = Origin { workload: "play".into(), protocol: "rtmp".into(), target: "h:1935".into() };
        board.show(3, [(play, figures)]);
        board
    }

    #[test]
    fn a_request_has_the_series_of_the_metrics_with_names_and_labels_in_their_order() {
        let mut requests = Requests::new(&[("job", "weir"), ("instance", "bench")]);
        let request = decoded(&requests.next(&board().families(), 1_700_000_000_000));
        let lines = lines(&request);
        let of = |name: &str| {
            let of = |(line, value): &(String, f64)| {
                line.contains(&format!("__name__={name:?}")).then(|| format!("{line} {value}"))
            };
            lines.iter().filter_map(of).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(
            of("weir_run_info"),
            "__name__=\"weir_run_info\",instance=\"bench\",job=\"weir\",run=\"demo-1\" 1"
        );
        let labels = "instance=\"bench\",job=\"weir\",protocol=\"rtmp\",target=\"h:1935\",workload=\"play\"";
        assert_eq!(
            of("weir_received_bytes_total"),
            format!("__name__=\"weir_received_bytes_total\",{labels} 1000")
        );
        assert_eq!(
            of("weir_startup_seconds_count"),
            format!("__name__=\"weir_startup_seconds_count\",{labels} 2")
        );
        let buckets = of("weir_startup_seconds_bucket");
        for (bound, count) in [("0.1", 0), ("0.25", 1), ("1.0", 2), ("60.0", 2), ("+Inf", 2)] {
            let line = format!(
                "job=\"weir\",le={bound:?},protocol=\"rtmp\",target=\"h:1935\",workload=\"play\" {count}"
            );
            assert!(buckets.contains(&line), "{line} is not in\n{buckets}");
        }
        for series in &request.series {
            assert!(series.labels.is_sorted_by(|a, b| a.name < b.name), "{series:?}");
            assert_eq!(series.samples[0].timestamp, 1_700_000_000_000);
        }
        let mut names: Vec<_> = lines.iter().map(|(line, _)| line).collect();
        names.sort();
        assert!(names.windows(2).all(|two| two[0] != two[1]), "a series is there twice");
    }

    #[test]
    fn a_series_that_is_gone_is_marked_until_the_receiver_knows() {
        let mut requests = Requests::new(&[]);
        let board = board();
        requests.next(&board.families(), 1);
        requests.is_taken(true);
        board.begin(vec![("run", "demo-2".to_owned())]);
        let mut stale = |taken| {
            let request = decoded(&requests.next(&board.families(), 2));
            requests.is_taken(taken);
            let is_stale = |it: &&(String, f64)| it.1.to_bits() == STALE;
            lines(&request).iter().filter(is_stale).map(|(line, _)| line.clone()).collect::<Vec<_>>()
        };
        let marked = ["__name__=\"weir_run_info\",run=\"demo-1\""];
        assert_eq!(stale(false), marked);
        assert_eq!(stale(true), marked);
        assert_eq!(stale(true), [""; 0]);
    }

    #[test]
    fn samples_are_in_order_where_the_clock_was_set_back() {
        let mut requests = Requests::new(&[]);
        let mut at =
            |millis| decoded(&requests.next(&board().families(), millis)).series[0].samples[0].timestamp;
        assert_eq!([at(1_000), at(900), at(1_001), at(5_000)], [1_000, 1_001, 1_002, 5_000]);
    }
}
