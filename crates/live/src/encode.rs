//! Metrics in the forms that Prometheus asks for: its text, OpenMetrics' text, and protobuf, which alone has native histograms.

use crate::family::{Family, FamilyKind, PREFIX, Sample};
use crate::protobuf;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, prometheus_text, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;

/// A form of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exposition {
    /// Prometheus' text, version 0.0.4: what a person sees, and what is sent to whoever asks for nothing.
    Text,
    OpenMetrics,
    /// `io.prometheus.client.MetricFamily`, each behind its length.
    Protobuf,
}

impl Exposition {
    /// What an `Accept` field asks for first among what there is (RFC 9110, section 12.5.1).
    pub(crate) fn accepted(accept: &str) -> Self {
        let mut best = (0.0, Self::Text);
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let form = match parts.next().unwrap_or_default().to_ascii_lowercase().as_str() {
                "application/vnd.google.protobuf" => {
                    let is_ours = range.contains("io.prometheus.client.MetricFamily");
                    if is_ours && range.contains("delimited") { Self::Protobuf } else { continue }
                }
                "application/openmetrics-text" => Self::OpenMetrics,
                "text/plain" | "text/*" | "*/*" => Self::Text,
                _ => continue,
            };
            let weight = parts.find_map(|it| it.strip_prefix("q=")).map_or(Some(1.0), |q| q.parse().ok());
            // At equal weight the first that is named.
            if weight.is_some_and(|weight: f64| weight > best.0) {
                best = (weight.unwrap_or_default(), form);
            }
        }
        best.1
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Text => prometheus_text::CONTENT_TYPE,
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }

    /// All of it. Empty if an encoder fails, which a string does not make it do.
    pub(crate) fn encode(self, families: Vec<Family>) -> Vec<u8> {
        let mut out = String::new();
        let encoded = match self {
            Self::Text => prometheus_text::encode(&mut out, &registry(families)),
            Self::OpenMetrics => text::encode(&mut out, &registry(families)),
            Self::Protobuf => return protobuf::encode(&families),
        };
        encoded.map(|()| out.into_bytes()).unwrap_or_default()
    }
}

fn registry(families: Vec<Family>) -> Registry {
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(Families(families)));
    registry
}

#[derive(Debug)]
struct Families(Vec<Family>);

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for family in &self.0 {
            let unit = match family.unit {
                weir_metrics::Unit::Count => None,
                weir_metrics::Unit::Bytes => Some(Unit::Bytes),
                weir_metrics::Unit::Micros => Some(Unit::Seconds),
            };
            let kind = match family.kind {
                FamilyKind::Counter => MetricType::Counter,
                FamilyKind::Gauge => MetricType::Gauge,
                FamilyKind::Histogram => MetricType::Histogram,
                FamilyKind::Info => MetricType::Info,
            };
            let mut metric =
                encoder.encode_descriptor(&family.name, &format!("{}.", family.help), unit.as_ref(), kind)?;
            for (labels, sample) in &family.series {
                if family.kind == FamilyKind::Info {
                    metric.encode_info(labels)?;
                } else {
                    encode_sample(metric.encode_family(labels)?, family.kind, sample)?;
                }
            }
        }
        Ok(())
    }
}

fn encode_sample(mut metric: MetricEncoder<'_>, kind: FamilyKind, sample: &Sample) -> Result<(), fmt::Error> {
    let none: Option<&Exemplar<NoLabelSet, f64>> = None;
    match (kind, sample) {
        (FamilyKind::Counter, Sample::Whole(value)) => metric.encode_counter(value, none),
        (FamilyKind::Counter, Sample::Number(value)) => metric.encode_counter(value, none),
        (_, Sample::Whole(value)) => metric.encode_gauge(value),
        (_, Sample::Number(value)) => metric.encode_gauge(value),
        (_, Sample::Histogram(it)) => {
            metric.encode_histogram::<NoLabelSet>(it.sum, it.count, &it.classic, None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_prometheus_prefers_is_what_it_gets() {
        let protobuf =
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
        for (accept, form) in [
            ("", Exposition::Text),
            ("*/*", Exposition::Text),
            ("text/html, image/png", Exposition::Text),
            // Prometheus 2.42 without and with native histograms.
            (
                "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                Exposition::OpenMetrics,
            ),
            (
                &format!("{protobuf},application/openmetrics-text;version=1.0.0;q=0.8,*/*;q=0.1"),
                Exposition::Protobuf,
            ),
            (&format!("text/plain,{protobuf};q=0.3"), Exposition::Text),
            (
                "application/vnd.google.protobuf;proto=other;encoding=delimited,text/plain;q=0.2",
                Exposition::Text,
            ),
            ("application/openmetrics-text;q=nonsense", Exposition::Text),
        ] {
            assert_eq!(Exposition::accepted(accept), form, "{accept}");
        }
    }
}
