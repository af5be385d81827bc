//! What a run asks of its target by default: a function of the scenario's workloads, so that every
//! verb asks the same. What only one protocol promises stands in its row of [`weir_protocols::PROTOCOLS`].

use crate::plan::Schedule;
use crate::scenario::facts::host;
use crate::scenario::role::Role;
use crate::scenario::{Scenario, WorkloadSpec};
use crate::threshold::Threshold;
use std::time::Duration;
use weir_metrics::FigureGroup;
use weir_protocols::{Circumstances, Given, Load, Output, Unfilled, Verb, asked, of_url};

/// What publishers with a count are asked.
const OF_COUNTING: &str = "units_short == 0";
/// What subscribers are asked to whom the scenario itself publishes.
const RECEIVED: &str = "units > 0";
/// What is asked of those that save messages: each record arrives, and is one.
const OF_SAVING: [&str; 2] = ["lost == 0", "dead_lettered == 0"];

/// How long a client may take from its start to where messages reach it: several turns of the slowest links.
const CONNECTED_WITHIN: Duration = Duration::from_secs(3);

impl Scenario {
    /// What is asked of the target: the thresholds of the scenario, and the defaults for figures that none of them is
    /// about.
    pub fn asked(&self) -> Vec<Threshold> {
        self.asked_of(false)
    }

    /// The same of a run whose load one process makes, or several.
    pub fn asked_of(&self, is_distributed: bool) -> Vec<Threshold> {
        let mut defaults: Vec<(Threshold, Vec<u16>)> = Vec::new();
        let schedules = self.schedules().unwrap_or_default();
        for (workload, number) in self.workloads.iter().zip(0..) {
            let members_leave = workload.life.is_some() || shrinks(schedules.get(usize::from(number)));
            let own = self.of_workload(workload, is_distributed, members_leave).into_iter();
            let received = self.received(usize::from(number), &schedules);
            for threshold in own.chain(self.shown(workload)).chain(received) {
                match defaults.iter_mut().find(|(other, _)| *other == threshold) {
                    Some((_, workloads)) => workloads.push(number),
                    None => defaults.push((threshold, vec![number])),
                }
            }
        }
        let said = |default: &Threshold| self.thresholds.iter().any(|it| it.is_about_the_same_as(default));
        // Viewers that wait while the run itself has a publisher away, or the server, wait for the run.
        let is_interrupted =
            !self.during.is_empty() || self.workloads.iter().any(|it| it.republish.is_some());
        let waits = |default: &Threshold| {
            let stands_still = default.text() == asked::STALLED.of_run || default.is_about_growing_drift();
            stands_still || default.is_about_an_excess()
        };
        let is_excused = |default: &Threshold| is_interrupted && waits(default);
        let defaults = defaults.into_iter().filter(|(default, _)| !said(default) && !is_excused(default));
        let defaults = defaults.map(|(threshold, workloads)| threshold.by_default(workloads));
        self.thresholds.iter().cloned().chain(defaults).collect()
    }

    /// What subscribers are asked that are there while the scenario itself publishes to them: that anything comes.
    fn received(&self, number: usize, schedules: &[Schedule]) -> Option<Threshold> {
        let subscribers = &self.workloads[number];
        let play = &subscribers.play.0;
        let play_of = of_url(play.first()?)?.play.as_ref()?;
        let least_published = play_of.least_published.filter(|_| !subscribers.background)?;
        let subscribing = Load { urls: play, given: &subscribers.options };
        let has_life = |it: &WorkloadSpec| it.life.is_some() || it.republish.is_some();
        let is_enough = |(publishers, schedule): (&WorkloadSpec, &Schedule)| {
            let publishing = Load { urls: &publishers.publish.0, given: &publishers.options };
            let output = publishers.output().filter(|_| !has_life(publishers))?;
            let least = least_published(&subscribing, &publishing)?;
            Some(messages_while(schedules.get(number)?, schedule, &output)? >= f64::from(least))
        };
        let mut others = self.workloads.iter().zip(schedules);
        let is_asked = !has_life(subscribers) && others.any(|it| is_enough(it) == Some(true));
        is_asked.then(|| RECEIVED.parse().ok()).flatten()
    }

    /// What the viewers of streams are asked that the scenario itself publishes at the same URLs: all of it is shown.
    fn shown(&self, viewers: &WorkloadSpec) -> Vec<Threshold> {
        let is_source = |it: &&WorkloadSpec| {
            !viewers.play.0.is_empty() && viewers.play.0.iter().all(|url| it.publish.0.contains(url))
        };
        let Some(source) = self.workloads.iter().find(is_source).filter(|_| !viewers.background) else {
            return Vec::new();
        };
        let play = of_url(&viewers.play.0[0]).and_then(|protocol| protocol.play.as_ref());
        let Some([pictures, sound]) = play.and_then(|play| play.shown) else { return Vec::new() };
        let has_sound = source.output().is_some_and(|output| output.sound);
        [Some(pictures), has_sound.then_some(sound)].into_iter().flatten().flat_map(str::parse).collect()
    }

    /// Whether it publishes pictures to a host of these URLs.
    fn publishes_pictures(&self, urls: &[String]) -> bool {
        let has_pictures = |it: &WorkloadSpec| it.output().is_some_and(|output| output.frame_time.is_some());
        let sources = self.workloads.iter().filter(|it| !it.background && has_pictures(it));
        let mut published = sources.flat_map(|it| &it.publish.0).filter_map(|url| host(url));
        published.any(|published| urls.iter().any(|url| host(url) == Some(published)))
    }

    /// What one workload is asked. What its protocol promises goes before what is asked of all about the same figure.
    fn of_workload(
        &self,
        workload: &WorkloadSpec,
        is_distributed: bool,
        members_leave: bool,
    ) -> Vec<Threshold> {
        let Ok((role, urls)) = workload.verb() else { return Vec::new() };
        if workload.background {
            return Vec::new();
        }
        if role == Role::Ingest {
            return OF_SAVING.iter().flat_map(|text| text.parse()).collect();
        }
        let protocol = urls.first().and_then(|url| of_url(url));
        let restarts = !self.during.is_empty();
        let promised = protocol.and_then(|protocol| match role {
            Role::Play => protocol.play.as_ref().map(|play| {
                let of_same = |it: &&WorkloadSpec| {
                    let other = it.publish.0.first().and_then(|url| of_url(url));
                    other.is_some_and(|other| std::ptr::eq(other, protocol))
                };
                let publishers: Vec<&Given> =
                    self.workloads.iter().filter(of_same).map(|it| &it.options).collect();
                let circumstances = Circumstances {
                    urls,
                    restarts,
                    publishers: &publishers,
                    is_distributed,
                    members_leave,
                    publishes_pictures: self.publishes_pictures(urls),
                };
                (play.asked)(&workload.options, &circumstances)
            }),
            _ => protocol.publish.as_ref().map(|publish| (publish.asked)(&workload.options, restarts)),
        });
        // A viewer that falls behind by more than it buffers shows another time than it began with.
        let has_drift = protocol.is_some_and(|protocol| {
            let unfilled = protocol.unfilled(Verb::Play, &workload.options);
            Unfilled::instead_of(unfilled, FigureGroup::Playout).is_none()
        });
        // A queue that fills up in front of a narrow link is no server's doing.
        let has_drift = has_drift && !weir_protocols::is_narrow(&workload.options);
        let buffer = has_drift && promised.iter().flatten().any(|it| *it == asked::STALLED.of_run);
        let buffer = if buffer { weir_protocols::buffer(&workload.options) } else { None };
        let keeping_up = buffer.map(|it| format!("drift.growth <= {}s", it.as_secs_f64()));
        let expecting = (role == Role::Play && workload.expect.is_some()).then_some(asked::BIT_RATE.of_run);
        let counts = workload.output().is_some_and(|output| output.count.is_some());
        let counting = counts.then_some(OF_COUNTING);
        let asked = promised
            .into_iter()
            .flatten()
            .chain(keeping_up.as_deref())
            .chain(asked::OF_ALL.map(|it| it.of_run))
            .chain(expecting)
            .chain(counting);
        let mut thresholds: Vec<Threshold> = Vec::new();
        for threshold in asked.flat_map(str::parse::<Threshold>) {
            if !thresholds.iter().any(|it| it.is_about_the_same_as(&threshold)) {
                thresholds.push(threshold);
            }
        }
        thresholds
    }
}

/// Whether a workload has fewer clients in a stage than in the one before.
fn shrinks(schedule: Option<&Schedule>) -> bool {
    schedule.is_some_and(|it| it.stages.windows(2).any(|pair| pair[1].clients < pair[0].clients))
}

/// How many messages a publisher sends by the plan while all subscribers are there.
fn messages_while(subscribers: &Schedule, publishers: &Schedule, output: &Output) -> Option<f64> {
    let rate = output.messages_per_second?;
    let [subscribed, connected] = [subscribers, publishers].map(|it| {
        let first = it.stages.first().filter(|_| it.stages.iter().all(|stage| stage.clients > 0));
        first.map(|first| (it.delay + first.ramp + CONNECTED_WITHIN).as_secs_f64())
    });
    let [gone, ended] = [subscribers, publishers].map(|it| {
        let length: Duration = it.stages.iter().map(|stage| stage.ramp + stage.hold).sum();
        if it.until_the_end { f64::MAX } else { (it.delay + length).as_secs_f64() }
    });
    let while_there = (gone.min(ended) - subscribed?.max(connected?)) * rate;
    // The last of a count may be sent before the last subscriber is there.
    let begun = publishers.delay.as_secs_f64();
    let early = (subscribed? - begun).max(0.0) * rate;
    Some(output.count.map_or(while_there, |count| while_there.min(count as f64 - early)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Vec<(String, bool)> {
        let scenario = Scenario::parse(text).unwrap();
        scenario.asked().iter().map(|it| (it.text().to_owned(), it.is_default())).collect()
    }

    fn defaults(workload: &str) -> String {
        let asked = asked(&format!("workloads: [{workload}]"));
        assert!(asked.iter().all(|(_, default)| *default));
        asked.into_iter().map(|(text, _)| text).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn every_load_is_asked_to_play_and_viewers_what_their_protocol_promises() {
        let all = "failed.ratio <= 1%, played.ratio >= 99%";
        let viewers = format!(
            "bitrate.ratio >= 90%, frames.ratio >= 90%, stalled.ratio <= 1%, starved.ratio <= 1%, blackouts == 0, drift.growth <= 1s, {all}"
        );
        let packets = "bitrate.ratio >= 90%, stalled.ratio <= 1%, starved.ratio <= 1%, blackouts == 0";
        assert_eq!(defaults("{publish: rtmp://h/a/b}"), all);
        assert_eq!(defaults("{play: rtmps://h/a/b}"), viewers);
        assert_eq!(
            defaults("{play: HTTP://h/a}"),
            format!("{packets}, ts.lost_packets == 0, drift.growth <= 1s, {all}")
        );
        let services = format!(
            "{packets}, failed.ratio == 0, ts.lost_packets == 0, drift.growth <= 1s, played.ratio >= 99%"
        );
        assert_eq!(defaults("{play: mirakurun+http://h}"), services);
        assert_eq!(defaults("{play: mqtt://h/a}"), all);
        assert_eq!(defaults("{play: mqtt://h/a, qos: 1}"), format!("lost == 0, {all}"));
        assert_eq!(defaults("{publish: mqtt://h/a, count: 5}"), format!("{all}, units_short == 0"));
        let taken = "mqtt.refused == 0, mqtt.unacknowledged == 0";
        assert_eq!(defaults("{publish: mqtt://h/a, qos: 2}"), format!("{taken}, {all}"));
        assert_eq!(defaults("{play: bulk://h:1}"), all);
        assert_eq!(defaults("{play: bulk://h:1, expect: 1mbps}"), format!("{all}, bitrate.ratio >= 90%"));
        assert_eq!(defaults("{play: bulk://h:1, background: true}"), "");
    }

    #[test]
    fn messages_that_are_lost_with_a_link_which_the_scenario_cuts_are_not_asked_of_the_broker() {
        let text = "{before: [{start: broker}], workloads: [{publish: mqtt://h/a, qos: 1}], during: [{at: 1s, restart: broker}]}";
        let asked: Vec<_> = asked(text).into_iter().map(|(text, _)| text).collect();
        assert_eq!(asked[..2], ["mqtt.refused == 0", "mqtt.unanswered == 0"]);
    }

    #[test]
    fn what_a_subscriber_misses_is_asked_where_it_is_the_brokers_doing() {
        let of = |publish: &str, play: &str, more: &str, is_distributed: bool| {
            let publish = format!("{{publish: 'mqtt://h/a', {publish}}}");
            let text = format!("{{workloads: [{publish}, {{play: 'mqtt://h/{play}, duration: 9s}}]{more}}}");
            let asked = Scenario::parse(&text).unwrap().asked_of(is_distributed);
            asked.iter().any(|it| it.text() == "lost == 0")
        };
        let during = ", before: [{start: broker}], during: [{at: 1s, restart: broker}]";
        for (publish, play, more, is_distributed, expected) in [
            ("qos: 1", "a', qos: 1", "", false, true),
            ("qos: 1", "a', qos: 1", "", true, true),
            ("qos: 1", "a', qos: 1", during, false, false),
            ("qos: 1", "a', qos: 1, break_every: 5s", "", false, true),
            ("qos: 1, break_every: 5s", "a', qos: 1", "", false, true),
            ("qos: 1, break_every: 5s", "a', qos: 1", "", true, false),
            ("qos: 1, break_every: 5s, session: 1h", "a', qos: 1", "", true, true),
            ("qos: 0, break_every: 5s", "a', qos: 1", "", false, false),
            ("qos: 0", "a', qos: 1, break_every: 5s, session: 1h", "", false, false),
            ("qos: 0", "a', qos: 1", "", false, true),
            ("qos: 1", "$share/g/a', qos: 1", "", false, true),
            ("qos: 1", "$share/g/a', qos: 1", "", true, false),
            ("qos: 1", "$share/g/a', qos: 1, break_every: 5s", "", false, false),
            ("qos: 1", "$share/g/a', qos: 1, life: 5s", "", false, false),
            ("qos: 1", "a', qos: 1, life: 5s", "", false, true),
            ("qos: 1", "$share/g/a', qos: 1, break_every: 5s, session: 1h", "", false, true),
        ] {
            let name = format!("{publish} {play} {more} {is_distributed}");
            assert_eq!(of(publish, play, more, is_distributed), expected, "{name}");
        }
    }

    #[test]
    fn a_subscriber_to_which_the_run_publishes_all_the_time_must_hear_something() {
        let of = |publish: &str, play: &str| {
            let text = format!(
                "workloads: [{{publish: 'mqtt://h/a/{{client}}', {publish}}}, {{play: 'mqtt://h/{play}}}]"
            );
            let asked = Scenario::parse(&text).unwrap().asked();
            asked.iter().filter(|it| it.text() == "units > 0").count()
        };
        for (publish, play, expected) in [
            ("qos: 0", "a/#', duration: 9s", 1),
            ("qos: 0", "a/#', duration: 4s", 0),
            ("wait_before_publishing: true", "a/#', duration: 9s", 0),
            ("qos: 0", "b/#', duration: 9s", 0),
            ("qos: 0", "b/#', filter: 'a/+', duration: 9s", 1),
            ("qos: 0", "', connect_only: true, duration: 9s", 0),
            ("qos: 0", "$share/g/a/#', duration: 9s", 0),
            ("qos: 0", "a/#', duration: 9s, background: true", 0),
            ("qos: 0", "a/#', duration: 9s, life: 1s", 0),
            // Those whose messages were all sent, or are rare, and those that begin when the subscribers are gone.
            ("count: 100, rate: 100/s, retain: true", "a/#', duration: 9s, delay: 5s", 0),
            ("count: 100, rate: 100/s, delay: 5s", "a/#', duration: 10s", 1),
            ("count: 100, rate: 100/s, delay: 5s", "a/#', duration: 7s", 0),
            ("count: 100, rate: 20/s", "a/#', duration: 9s", 1),
            ("rate: 0.1/s", "a/#', duration: 9s", 0),
            ("rate: 2/s, arrivals: poisson", "a/#', duration: 9s", 0),
            ("rate: 4/s, arrivals: poisson", "a/#', duration: 9s", 1),
            ("delay: 20s, duration: 30s", "a/#', duration: 9s", 0),
        ] {
            assert_eq!(of(publish, play), expected, "{publish}; {play}");
        }
    }

    #[test]
    fn a_stream_that_the_run_publishes_itself_must_be_shown() {
        let of = |publish: &str, play: &str| {
            let texts = asked(&format!("workloads: [{{publish: {publish}}}, {{play: {play}}}]"));
            let texts = texts.into_iter().map(|(text, _)| text).filter(|text| text.ends_with("> 0"));
            texts.collect::<Vec<_>>().join(", ")
        };
        assert_eq!(of("rtmp://h/a/b", "rtmp://h/a/b"), "keyframes > 0, rtmp.audio_frames > 0");
        assert_eq!(of("rtmp://h/a/b, audio_bitrate: '0'", "rtmp://h/a/b"), "keyframes > 0");
        assert_eq!(of("rtmp://h/a/b", "rtmp://h/a/c"), "");
        assert_eq!(of("mqtt://h/a", "mqtt://h/a"), "");
    }

    #[test]
    fn pictures_that_the_run_publishes_must_come() {
        let of = |publish: &str| {
            let texts =
                asked(&format!("workloads: [{{publish: '{publish}'}}, {{play: 'whep+http://h:80/a/b'}}]"));
            texts.iter().filter(|(text, _)| text == "rtc.without_pictures == 0").count()
        };
        assert_eq!(of("whip+http://h/a/b"), 1);
        assert_eq!(of("rtmp://h/a/b"), 1);
        assert_eq!(of("rtmp://other/a/b"), 0);
        assert_eq!(of("mqtt://h/a"), 0);
    }

    #[test]
    fn a_threshold_of_the_same_figure_takes_the_place_of_a_default() {
        let text = "{workloads: [{play: rtmp://h/a/b}], thresholds: [slots_failed <= 5, played > 3, startup.p99 < 1s]}";
        let said = |text: &str| (text.to_owned(), false);
        let expected = [
            said("slots_failed <= 5"),
            said("played > 3"),
            said("startup.p99 < 1s"),
            ("bitrate.ratio >= 90%".to_owned(), true),
            ("frames.ratio >= 90%".to_owned(), true),
            ("stalled.ratio <= 1%".to_owned(), true),
            ("starved.ratio <= 1%".to_owned(), true),
            ("blackouts == 0".to_owned(), true),
            ("drift.growth <= 1s".to_owned(), true),
        ];
        assert_eq!(asked(text), expected);
    }

    #[test]
    fn every_default_fits_the_figures_of_its_protocol() {
        for scheme in ["rtmp", "http", "mirakurun+http", "whep+http", "ws", "mqtt", "bulk"] {
            let schema = weir_protocols::schema_of(scheme).unwrap();
            let mqtt = if scheme == "mqtt" { ", qos: 2" } else { "" };
            let text = format!("workloads: [{{play: '{scheme}://h/a', expect: 1mbps{mqtt}}}]");
            let asked = Scenario::parse(&text).unwrap().asked();
            assert!(asked.len() >= 3, "{scheme}");
            asked.iter().for_each(|it| it.check(&[schema]).unwrap());
        }
        let published = Scenario::parse("workloads: [{publish: mqtt://h/a, qos: 1, count: 1}]").unwrap();
        let schema = weir_protocols::schema_of("mqtt").unwrap();
        published.asked().iter().for_each(|it| it.check(&[schema]).unwrap());
    }
}
