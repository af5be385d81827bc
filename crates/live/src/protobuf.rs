//! Metrics as `io.prometheus.client.MetricFamily`, each behind its length: the form in which Prometheus collects native
//! histograms.
//!
//! The messages are those of `metrics.proto` in Prometheus' `client_model`, without the fields that weir leaves empty.

use crate::buckets::{Buckets, SCHEMA, Sparse, ZERO_WIDTH};
use crate::family::{Family, FamilyKind, Label, Sample};
use prost::Message;

/// All of it.
pub(crate) fn encode(families: &[Family]) -> Vec<u8> {
    let encode = |family: &Family| MetricFamily::of(family).encode_length_delimited_to_vec();
    families.iter().flat_map(encode).collect()
}

#[derive(Clone, PartialEq, Message)]
struct MetricFamily {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    help: String,
    #[prost(enumeration = "MetricType", tag = "3")]
    kind: i32,
    #[prost(message, repeated, tag = "4")]
    metrics: Vec<Metric>,
    #[prost(string, tag = "5")]
    unit: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
enum MetricType {
    Counter = 0,
    Gauge = 1,
    Histogram = 4,
}

#[derive(Clone, PartialEq, Message)]
struct Metric {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<LabelPair>,
    #[prost(message, optional, tag = "2")]
    gauge: Option<Value>,
    #[prost(message, optional, tag = "3")]
    counter: Option<Value>,
    #[prost(message, optional, tag = "7")]
    histogram: Option<Histogram>,
}

#[derive(Clone, PartialEq, Message)]
struct LabelPair {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

/// `Gauge` and `Counter`, which look the same.
#[derive(Clone, PartialEq, Message)]
struct Value {
    #[prost(double, tag = "1")]
    value: f64,
}

#[derive(Clone, PartialEq, Message)]
struct Histogram {
    #[prost(uint64, tag = "1")]
    sample_count: u64,
    #[prost(double, tag = "2")]
    sample_sum: f64,
    #[prost(message, repeated, tag = "3")]
    buckets: Vec<Bucket>,
    #[prost(sint32, tag = "5")]
    schema: i32,
    #[prost(double, tag = "6")]
    zero_threshold: f64,
    #[prost(uint64, tag = "7")]
    zero_count: u64,
    #[prost(message, repeated, tag = "9")]
    negative_spans: Vec<BucketSpan>,
    #[prost(sint64, repeated, tag = "10")]
    negative_deltas: Vec<i64>,
    #[prost(message, repeated, tag = "12")]
    positive_spans: Vec<BucketSpan>,
    #[prost(sint64, repeated, tag = "13")]
    positive_deltas: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Bucket {
    #[prost(uint64, tag = "1")]
    cumulative_count: u64,
    #[prost(double, tag = "2")]
    upper_bound: f64,
}

#[derive(Clone, PartialEq, Message)]
struct BucketSpan {
    #[prost(sint32, tag = "1")]
    offset: i32,
    #[prost(uint32, tag = "2")]
    length: u32,
}

impl MetricFamily {
    fn of(family: &Family) -> Self {
        let kind = match family.kind {
            FamilyKind::Counter => MetricType::Counter,
            // `metrics.proto` has no type for what is always 1.
            FamilyKind::Gauge | FamilyKind::Info => MetricType::Gauge,
            FamilyKind::Histogram => MetricType::Histogram,
        };
        let metric = |(labels, sample): &(Vec<Label>, Sample)| Metric::of(kind, labels, sample);
        Self {
            name: family.full_name(),
            help: format!("{}.", family.help),
            kind: kind.into(),
            metrics: family.series.iter().map(metric).collect(),
            unit: family.unit.suffix().trim_start_matches('_').to_owned(),
        }
    }
}

impl Metric {
    fn of(kind: MetricType, labels: &[Label], sample: &Sample) -> Self {
        let pair = |(name, value): &Label| LabelPair { name: (*name).to_owned(), value: value.clone() };
        let mut metric = Self { labels: labels.iter().map(pair).collect(), ..Self::default() };
        match sample {
            Sample::Histogram(buckets) => metric.histogram = Some(Histogram::of(buckets)),
            Sample::Whole(_) | Sample::Number(_) => {
                let value = Some(Value { value: sample.number() });
                let place = if kind == MetricType::Counter { &mut metric.counter } else { &mut metric.gauge };
                *place = value;
            }
        }
        metric
    }
}

impl Histogram {
    fn of(buckets: &Buckets) -> Self {
        let bucket = |(upper_bound, cumulative_count)| Bucket { cumulative_count, upper_bound };
        Self {
            sample_count: buckets.count,
            sample_sum: buckets.sum,
            buckets: buckets.cumulative().map(bucket).collect(),
            schema: SCHEMA,
            zero_threshold: ZERO_WIDTH,
            zero_count: buckets.zeros,
            negative_spans: spans(&buckets.negative),
            negative_deltas: buckets.negative.deltas.clone(),
            positive_spans: spans(&buckets.positive),
            positive_deltas: buckets.positive.deltas.clone(),
        }
    }
}

fn spans(sparse: &Sparse) -> Vec<BucketSpan> {
    sparse.spans.iter().map(|(offset, length)| BucketSpan { offset: *offset, length: *length }).collect()
}
