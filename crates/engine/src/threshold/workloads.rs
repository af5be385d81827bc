//! Whether some workload of a scenario can have the figure that a threshold is on. A figure may be declared and never filled: the
//! stalls of subscribers to messages are 0 whatever a broker does. Knows no protocol: what clients lack is said by theirs.

use super::{FigureRatio, Subject, Threshold, ThresholdError};
use crate::ingest;
use crate::scenario::role::Role;
use crate::scenario::{Scenario, WorkloadSpec};
use weir_metrics::FigureGroup;
use weir_protocols::{Unfilled, Verb, of_url};

/// What to ask instead of the share of messages that was lost where it is unknown how many there were.
const UNPUBLISHED: &str = "this run publishes nothing, so the number sent is unknown; ask for saved >= 1000, or publish in the same run";

/// Whether a workload can have a figure.
enum Has {
    Yes,
    /// Its clients have no such figure.
    Undeclared,
    /// Its clients never fill it: why, and what to ask instead.
    No(&'static str),
}

impl Threshold {
    /// Checks before the run that some workload can have the figure at all.
    ///
    /// # Errors
    /// None can; the error says what to ask instead.
    pub fn check_workloads(&self, scenario: &Scenario) -> Result<(), ThresholdError> {
        if matches!(self.subject, Subject::Growth(_) | Subject::Load(_) | Subject::Reconnected) {
            return Ok(());
        }
        let mut lacking = None;
        for spec in scenario.workloads.iter().filter(|spec| !spec.background) {
            match self.has(spec, scenario) {
                Has::Yes => return Ok(()),
                Has::Undeclared => {}
                Has::No(instead) => lacking = lacking.or(Some(instead)),
            }
        }
        match lacking {
            Some(instead) => Err(ThresholdError::Lacking { text: self.text.clone(), instead }),
            // That a figure is known at all is checked beside this.
            None => Ok(()),
        }
    }

    fn has(&self, spec: &WorkloadSpec, scenario: &Scenario) -> Has {
        let Ok((role, urls)) = spec.verb() else { return Has::Yes };
        // What a probe or an ingester reads, it is not a client of.
        let protocol = urls.first().and_then(|url| of_url(url));
        let schema = if spec.saves() { Some(ingest::SCHEMA) } else { protocol.map(|it| it.schema) };
        let Some(schema) = schema else { return Has::Yes };
        let group = match &self.subject {
            Subject::Ratio(FigureRatio::Excess(it)) if schema.position(it.count).is_none() => {
                return Has::Undeclared;
            }
            Subject::Ratio(ratio) => ratio.group(),
            Subject::Figure(name) => match schema.figures().find(|figure| figure.is_called(name)) {
                Some(figure) => figure.group,
                None => return Has::Undeclared,
            },
            Subject::Growth(_) | Subject::Load(_) | Subject::Reconnected => return Has::Yes,
        };
        let publishes = scenario.workloads.iter().any(|it| !it.publish.0.is_empty());
        // What is expected may be said, and what the run itself publishes is known.
        if group == FigureGroup::Expected && (spec.expect.is_some() || publishes) {
            return Has::Yes;
        }
        let verb = match role {
            Role::Play => Verb::Play,
            Role::Publish => Verb::Publish,
            Role::Ingest => Verb::Ingest,
        };
        let unfilled = protocol.map_or(&[][..], |protocol| protocol.unfilled(verb, &spec.options));
        if let Some(instead) = Unfilled::instead_of(unfilled, group) {
            return Has::No(instead);
        }
        let is_of_lost = self.subject == Subject::Ratio(FigureRatio::Lost);
        if is_of_lost && role == Role::Ingest && !publishes { Has::No(UNPUBLISHED) } else { Has::Yes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(workloads: &str, threshold: &str) -> Option<String> {
        let scenario = Scenario::parse(&format!("workloads: [{workloads}]")).unwrap();
        let threshold: Threshold = threshold.parse().unwrap();
        threshold.check_workloads(&scenario).err().map(|it| it.to_string())
    }

    const SUBSCRIBER: &str = "{play: 'mqtt://h/a', duration: 1s}";
    const VIEWER: &str = "{play: 'rtmp://h/a/b', duration: 1s}";
    const TS_VIEWER: &str = "{play: 'http://h/a.ts', duration: 1s}";
    const PUBLISHER: &str = "{publish: 'mqtt://h/a'}";
    const CONNECTION: &str = "{play: 'mqtt://h', connect_only: true, duration: 1s}";
    const INGESTER: &str = "{ingest: 'mqtt://h/a', into: {save: 'sqlite:f'}, duration: 1s}";
    const FILLER: &str = "{play: 'bulk://h', duration: 1s}";

    #[test]
    fn what_no_workload_can_have_is_refused_with_what_to_ask_instead() {
        for (workload, threshold, words) in [
            (SUBSCRIBER, "stalls == 0", "messages.rate > 100/s"),
            (SUBSCRIBER, "stalled_seconds < 1s", "no media time"),
            (
                SUBSCRIBER,
                "stalled.ratio <= 1%",
                "'stalled.ratio <= 1%': no workload here can have this figure",
            ),
            (SUBSCRIBER, "bitrate.ratio >= 90%", "`expect` 2Mbps"),
            (SUBSCRIBER, "mqtt.response_time.p99 < 1s", "weir publish"),
            (SUBSCRIBER, "first_byte.p99 < 1s", "startup.p99 < 1s"),
            (CONNECTION, "latency.p99 < 1s", "receive no message"),
            (CONNECTION, "lost == 0", "receive no message"),
            (CONNECTION, "lost.ratio <= 1%", "receive no message"),
            (CONNECTION, "messages.rate > 1/s", "mqtt.connects.rate"),
            (PUBLISHER, "latency.p99 < 1s", "weir play"),
            (PUBLISHER, "lost.ratio <= 1%", "weir play"),
            (TS_VIEWER, "lost == 0", "ts.lost_packets == 0"),
            (TS_VIEWER, "latency.p99 < 1s", "ts.lost_packets == 0"),
            (VIEWER, "send_lag.p99 < 1s", "weir publish"),
            (FILLER, "stalls == 0", "media.rate"),
            (INGESTER, "lost.ratio <= 1%", "publish in the same run"),
            (INGESTER, "latency.p99 < 1s", "lag.p99"),
        ] {
            let said = refusal(workload, threshold).unwrap_or_else(|| panic!("{workload} {threshold}"));
            assert!(said.contains(words), "{said}");
        }
    }

    #[test]
    fn what_one_of_them_can_have_is_asked_of_it() {
        let both = |one: &str, other: &str| format!("{one}, {other}");
        let expecting = "{play: 'mqtt://h/a', duration: 1s, expect: 2Mbps}".to_owned();
        let background = |spec: &str| spec.replace('}', ", background: true}");
        for (workloads, threshold) in [
            (both(SUBSCRIBER, VIEWER), "stalls == 0"),
            (both(SUBSCRIBER, PUBLISHER), "mqtt.response_time.p99 < 1s"),
            (both(SUBSCRIBER, PUBLISHER), "bitrate.ratio >= 98%"),
            (both(PUBLISHER, INGESTER), "lost.ratio <= 1%"),
            (expecting, "bitrate.ratio >= 98%"),
            (SUBSCRIBER.to_owned(), "lost.ratio <= 1%"),
            (SUBSCRIBER.to_owned(), "server.cpu < 80%"),
            (SUBSCRIBER.to_owned(), "no_such == 0"),
            (CONNECTION.to_owned(), "mqtt.connects.rate > 100/s"),
            (CONNECTION.to_owned(), "startup.p99 < 1s"),
            // What the session had subscribed to goes on.
            (CONNECTION.replace('}', ", client_id: a, session: 1h}"), "lost == 0"),
            (INGESTER.to_owned(), "lag.p99 < 1s"),
        ] {
            assert_eq!(refusal(&workloads, threshold), None, "{workloads} {threshold}");
        }
        let said = refusal(&both(SUBSCRIBER, &background(VIEWER)), "stalls == 0");
        assert!(said.is_some(), "what is in the background is asked nothing");
    }
}
