//! MQTT clients on the rig, with a broker of a few bytes, on virtual time: links that break, messages that are cut.

#[path = "mqtt/shared_subscriptions.rs"]
mod shared_subscriptions;
#[path = "mqtt/subscriber_breaks.rs"]
mod subscriber_breaks;

use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;
use weir_clients::{
    Ending, Filling, MqttOptions, MqttVersion, PlannedStart, PlayOptions, PublishOptions, Published, Qos,
    ShardRecorder, Turn, Workload, mqtt,
};
use weir_metrics::common::{PLAYING, SEND_LAG, UNITS, UNITS_SHORT};
use weir_metrics::{Failure, Recorder};
use weir_mqtt::{Event as Read, Limits, Mark, Packet, Reader, Version};
use weir_shard::{Event, Rig, Session};

const CONNACK: [u8; 5] = [0x20, 3, 0, 0, 0];
const CONNACK_WITH_SESSION: [u8; 5] = [0x20, 3, 1, 0, 0];

fn options(qos: Qos) -> MqttOptions {
    MqttOptions { qos, rate: 10.0, reconnect: true, filling: Filling::Size(8), ..MqttOptions::default() }
}

fn publishers(options: &MqttOptions) -> Workload {
    let url = ["mqtt://127.0.0.1:1/t".to_owned()];
    mqtt::publish(&url, &PublishOptions::default(), options).unwrap()
}

fn subscribers(options: &MqttOptions) -> Workload {
    let url = ["mqtt://127.0.0.1:1/t".to_owned()];
    mqtt::play(&url, &PlayOptions::default(), options).unwrap()
}

struct Stage {
    rig: Rig<ShardRecorder>,
    client: Box<dyn Session<ShardRecorder>>,
    reader: Reader,
    version: Version,
}

/// What a client said, in short: packet, and of messages number, DUP and packet identifier.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Connect { clean: bool },
    Publish { number: u64, dup: bool, id: Option<u16>, last: bool },
    Subscribe(u16),
    Other,
}

impl Stage {
    /// A client whose link is established.
    fn new(workload: &Workload, version: Version) -> Self {
        let mut stage = Self::unlinked(workload, version);
        stage.dispatch(Event::Connected);
        stage
    }

    /// A client whose link is being opened.
    fn unlinked(workload: &Workload, version: Version) -> Self {
        let mut rig = Rig::new(ShardRecorder::new([workload.schema]).keeping_endings());
        let planned = PlannedStart { client: 0, workload: 0, cell: 0, at: rig.now, turn: Turn::default() };
        let client = workload.start(planned, rig.now, &mut rig.world);
        let reader = Reader::new(version, Limits::default());
        let mut stage = Self { rig, client, reader, version };
        stage.dispatch(Event::Opening);
        stage
    }

    /// A publisher that has been let in.
    fn publisher(mqtt: &MqttOptions) -> Self {
        let mut stage = Self::new(&publishers(mqtt), Version::V5);
        assert!(matches!(stage.said()[..], [Said::Connect { .. }]));
        stage.hear(&CONNACK);
        stage
    }

    /// A subscriber whose subscription is granted.
    fn subscriber(mqtt: &MqttOptions) -> Self {
        let version = mqtt.version;
        let mut stage = Self::new(&subscribers(mqtt), version);
        stage.said();
        stage.hear(if version == Version::V5 { &CONNACK } else { &[0x20, 2, 0, 0] });
        stage.grant();
        stage
    }

    fn grant(&mut self) {
        let [Said::Subscribe(id)] = self.said()[..] else { panic!("no SUBSCRIBE") };
        let [high, low] = id.to_be_bytes();
        let v5: &[u8] = &[0x90, 4, high, low, 0, 0];
        let v311: &[u8] = &[0x90, 3, high, low, 0];
        self.hear(if self.version == Version::V5 { v5 } else { v311 });
    }

    fn dispatch(&mut self, event: Event<'_>) {
        self.rig.dispatch(&mut *self.client, event);
        if self.rig.pulled {
            self.rig.pulled = false;
            self.rig.dispatch(&mut *self.client, Event::Bytes(&[]));
        }
    }

    fn hear(&mut self, bytes: &[u8]) {
        self.dispatch(Event::Bytes(bytes));
    }

    fn handle_timeout(&mut self, millis: u64) {
        self.rig.advance(&mut *self.client, Duration::from_millis(millis));
    }

    fn breaks(&mut self) {
        self.dispatch(Event::Closed { failure: Failure::ClosedByPeer, words: "" });
        self.forget_input();
    }

    /// What it says next is on another link.
    fn forget_input(&mut self) {
        self.reader = Reader::new(self.version, Limits::default());
    }

    /// Lets time pass until it connects again, and establishes the link.
    fn comes_back(&mut self) {
        self.comes_back_within(1_000);
    }

    fn comes_back_within(&mut self, millis: u64) {
        for _ in 0..millis / 10 {
            self.handle_timeout(10);
            if self.rig.reopened.take().is_some() {
                return self.dispatch(Event::Connected);
            }
        }
        panic!("it does not come back");
    }

    /// The broker accepts every message of QoS 1 that it has not accepted.
    fn acknowledge(&mut self, ids: impl IntoIterator<Item = u16>) {
        let packets: Vec<u8> = ids.into_iter().flat_map(|id| [0x40, 2, (id >> 8) as u8, id as u8]).collect();
        self.hear(&packets);
    }

    fn said(&mut self) -> Vec<Said> {
        let bytes = self.rig.take_sent();
        let (mut input, mut said) = (&bytes[..], Vec::new());
        while let Some(event) = self.reader.next(&mut input).unwrap() {
            said.push(match event {
                Read::Packet(Packet::Connect(connect)) => Said::Connect { clean: connect.clean_start },
                Read::Packet(Packet::Publish(message)) => {
                    let mark = Mark::of(&message).0.unwrap();
                    let id = message.packet_id.map(NonZero::get);
                    let (number, dup, last) = (mark.sequence_number, message.dup, mark.last);
                    Said::Publish { number, dup, id, last }
                }
                Read::Packet(Packet::Subscribe(subscribe)) => Said::Subscribe(subscribe.packet_id.get()),
                _ => Said::Other,
            });
        }
        said
    }

    fn numbers(&mut self) -> Vec<(u64, bool)> {
        let number = |said| match said {
            Said::Publish { number, dup, .. } => Some((number, dup)),
            _ => None,
        };
        self.said().into_iter().filter_map(number).collect()
    }

    fn ended(&mut self) -> (Vec<Ending>, Recorder) {
        let ended = self.rig.world.take_ended().into_iter().map(|(_, ending)| ending).collect();
        (ended, self.rig.world.take_figures().remove(0))
    }

    fn figure(&mut self, name: &str) -> u64 {
        let planned =
            PlannedStart { client: 0, workload: 0, cell: 0, at: self.rig.now, turn: Turn::default() };
        own(self.rig.world.of(planned), name)
    }
}

fn own(recorder: &Recorder, name: &str) -> u64 {
    recorder.number(recorder.schema().position(name).unwrap_or_else(|| panic!("no figure {name}")))
}

#[test]
fn a_publisher_outlives_a_broker_that_restarts_and_keeps_its_schedule() {
    let mut stage = Stage::publisher(&options(Qos::AtMostOnce));
    stage.handle_timeout(350);
    assert_eq!(stage.numbers(), [(0, false), (1, false), (2, false), (3, false)]);
    stage.breaks();
    assert!(stage.rig.stands_by && !stage.rig.closed);
    assert_eq!(stage.figure("playing"), 0);
    stage.comes_back();
    assert_eq!(stage.said(), [Said::Connect { clean: true }]);
    stage.handle_timeout(400);
    assert_eq!(stage.numbers(), [], "nothing is sent before the broker has consented");
    stage.hear(&CONNACK);
    let late = stage.numbers();
    let first_due = late.last().unwrap().0;
    assert_eq!(late, (4..=first_due).map(|number| (number, false)).collect::<Vec<_>>());
    // What it was late is the broker's doing and not weir's.
    stage.handle_timeout(300);
    stage.dispatch(Event::Stop);
    let (ended, figures) = stage.ended();
    assert_eq!(ended, [Ending::OnTime]);
    assert_eq!((own(&figures, "mqtt.reconnects"), own(&figures, "mqtt.held_up")), (1, 1));
    assert_eq!(figures.counter(UNITS) + own(&figures, "mqtt.unsent"), first_due + 4);
    assert!(figures.spread(SEND_LAG).max() < 1_000, "{}", figures.spread(SEND_LAG).max());
    let lag = figures.schema().position("mqtt.publish_lag").unwrap() as u16;
    assert!(figures.spread(weir_metrics::Spread(lag)).max() > 300_000);
    assert_eq!((figures.gauge(PLAYING), own(&figures, "mqtt.sessions_lost")), (0, 0));
}

#[test]
fn what_was_not_acknowledged_is_sent_again_if_the_session_is_resumed_and_counted_if_it_is_not() {
    for (session, connack, again) in [
        (Some(Duration::from_secs(60)), &CONNACK_WITH_SESSION, true),
        (Some(Duration::from_secs(60)), &CONNACK, false),
        (None, &CONNACK, false),
    ] {
        let mut stage =
            Stage::publisher(&MqttOptions { session, count: Some(5), ..options(Qos::AtLeastOnce) });
        stage.handle_timeout(350);
        let ids: Vec<u16> = stage
            .said()
            .into_iter()
            .map(|said| if let Said::Publish { id: Some(id), .. } = said { id } else { panic!("{said:?}") })
            .collect();
        assert_eq!(ids.len(), 4);
        stage.acknowledge([ids[0], ids[2]]);
        stage.breaks();
        stage.comes_back();
        assert_eq!(stage.said(), [Said::Connect { clean: session.is_none() }]);
        stage.hear(connack);
        stage.handle_timeout(200);
        let said = stage.said();
        let last = Said::Publish { number: 4, dup: false, id: None, last: true };
        let resent = [(1, ids[1]), (3, ids[3])].map(|(number, id)| Said::Publish {
            number,
            dup: true,
            id: Some(id),
            last: false,
        });
        let Some(Said::Publish { id: Some(id), .. }) = said.last() else { panic!("{said:?}") };
        let id = *id;
        let expected: Vec<Said> = resent.into_iter().filter(|_| again).collect();
        assert_eq!(said[..said.len() - 1], expected[..], "{session:?}");
        let Said::Publish { number, dup, last, .. } = last else { unreachable!() };
        assert_eq!(said.last(), Some(&Said::Publish { number, dup, id: Some(id), last }));
        stage.acknowledge(if again { vec![ids[1], ids[3], id] } else { vec![id] });
        let (ended, figures) = stage.ended();
        assert_eq!(ended, [Ending::OnTime], "it leaves when its count is reached");
        let (unacknowledged, acknowledged) = if again { (0, 5) } else { (2, 3) };
        assert_eq!(own(&figures, "mqtt.unacknowledged"), unacknowledged);
        assert_eq!(own(&figures, "mqtt.acknowledged"), acknowledged);
        assert_eq!((figures.counter(UNITS), figures.counter(UNITS_SHORT)), (5, 0));
        assert_eq!(own(&figures, "mqtt.sessions_lost"), u64::from(session.is_some() && !again));
    }
}

#[test]
fn a_broker_that_does_not_come_back_has_failed_its_client_when_that_is_told_to_stop() {
    for client in [Stage::publisher, Stage::subscriber] {
        let mut stage = client(&MqttOptions { count: Some(9), ..options(Qos::AtLeastOnce) });
        stage.handle_timeout(150);
        stage.breaks();
        for _ in 0..3 {
            stage.comes_back();
            stage.breaks();
        }
        stage.handle_timeout(20);
        stage.dispatch(Event::Stop);
        assert!(stage.rig.closed);
        let words = stage.rig.world.take_failures().remove(0).words;
        let (ended, figures) = stage.ended();
        assert_eq!(ended, [Ending::Failed(Failure::ClosedByPeer)]);
        assert_eq!(words, "the broker closed the link; no connection again in 4 attempts");
        assert_eq!((figures.gauge(PLAYING), own(&figures, "mqtt.reconnects")), (0, 0));
    }
}

#[test]
fn the_first_break_is_the_end_of_a_client_that_is_not_to_reconnect() {
    for client in [Stage::publisher, Stage::subscriber] {
        let mut stage = client(&MqttOptions { reconnect: false, ..options(Qos::AtMostOnce) });
        stage.breaks();
        assert!(!stage.rig.stands_by);
        assert_eq!(stage.ended().0, [Ending::Failed(Failure::ClosedByPeer)]);
    }
}

#[test]
fn links_break_on_purpose_at_one_moment_and_clients_come_back_until_they_are_told_to_stop() {
    for (client, subscribes) in [(Stage::publisher as fn(&_) -> _, false), (Stage::subscriber, true)] {
        let every = Some(Duration::from_secs(1));
        let mut stage = client(&MqttOptions { break_every: every, ..options(Qos::AtMostOnce) });
        for time in 1..=2 {
            stage.handle_timeout(600);
            assert_eq!(stage.figure("playing"), 1);
            stage.handle_timeout(400);
            assert_eq!(stage.figure("playing"), 0, "break {time}");
            stage.rig.take_sent();
            stage.reader = Reader::new(stage.version, Limits::default());
            stage.comes_back();
            assert!(matches!(stage.said()[..], [Said::Connect { .. }]));
            stage.hear(&CONNACK);
            if subscribes {
                stage.grant();
            }
            assert_eq!((stage.figure("playing"), stage.figure("mqtt.reconnects")), (1, time));
            stage.said();
        }
        stage.dispatch(Event::Stop);
        assert_eq!(stage.ended().0, [Ending::OnTime]);
    }
}

#[test]
fn a_client_whose_link_the_run_has_cut_just_now_ends_as_planned_and_one_that_could_not_come_back_fails() {
    for client in [Stage::publisher as fn(&_) -> _, Stage::subscriber] {
        for (refused, expected) in [(false, Ending::OnTime), (true, Ending::Failed(Failure::Reset))] {
            let every = Some(Duration::from_secs(1));
            let session = Some(Duration::from_secs(60));
            let mut stage = client(&MqttOptions { break_every: every, session, ..options(Qos::AtLeastOnce) });
            stage.handle_timeout(1_000);
            assert_eq!(stage.figure("playing"), 0);
            if refused {
                stage.rig.take_sent();
                stage.comes_back();
                stage.breaks();
            }
            stage.dispatch(Event::Stop);
            assert_eq!(stage.ended().0, [expected]);
        }
    }
}

#[test]
fn what_a_link_takes_with_it_that_the_run_breaks_on_purpose_is_not_the_brokers_doing() {
    let every = Duration::from_secs(1);
    let mut stage = Stage::publisher(&MqttOptions {
        break_every: Some(every),
        linger: every,
        ..options(Qos::AtLeastOnce)
    });
    stage.handle_timeout(1_000);
    stage.said();
    assert_eq!((stage.figure("playing"), stage.figure("mqtt.in_flight")), (0, 0));
    stage.reader = Reader::new(stage.version, Limits::default());
    stage.comes_back();
    stage.hear(&CONNACK);
    stage.said();
    stage.breaks();
    stage.comes_back();
    stage.hear(&CONNACK);
    // Those of the second break, which was the broker's.
    let lost = stage.figure("mqtt.unacknowledged");
    assert!((1..=3).contains(&lost), "{lost}");
    stage.handle_timeout(300);
    let in_flight = stage.figure("mqtt.in_flight");
    stage.dispatch(Event::Stop);
    stage.handle_timeout(1_000);
    let (ended, figures) = stage.ended();
    assert_eq!(ended, [Ending::OnTime]);
    assert_eq!(own(&figures, "mqtt.unanswered"), in_flight);
    assert_eq!(own(&figures, "mqtt.unacknowledged"), lost + in_flight);
}

#[test]
fn a_publisher_that_is_told_to_stop_waits_for_its_acknowledgements_until_the_time_for_goodbyes_is_over() {
    let linger = Duration::from_millis(900);
    for (acknowledged, unacknowledged) in [(4, 0), (3, 1)] {
        let mut stage = Stage::publisher(&MqttOptions { linger, ..options(Qos::AtLeastOnce) });
        stage.handle_timeout(350);
        stage.dispatch(Event::Stop);
        stage.handle_timeout(880);
        assert!(!stage.rig.closed, "a broker that writes to its disk takes longer than others");
        stage.acknowledge(1..=acknowledged);
        assert_eq!(stage.rig.closed, unacknowledged == 0);
        stage.handle_timeout(30);
        assert!(stage.rig.closed);
        let (ended, figures) = stage.ended();
        assert_eq!(ended, [Ending::OnTime]);
        let counted = ["mqtt.unacknowledged", "mqtt.unanswered"].map(|name| own(&figures, name));
        assert_eq!(counted, [unacknowledged; 2]);
    }
}

#[test]
fn clients_that_are_told_to_stop_again_end_without_what_they_wait_for() {
    let linger = Duration::from_secs(60);
    let mut publisher = Stage::publisher(&MqttOptions { linger, ..options(Qos::AtLeastOnce) });
    publisher.handle_timeout(350);
    publisher.dispatch(Event::Stop);
    assert!(!publisher.rig.closed);
    publisher.dispatch(Event::Stop);
    assert!(publisher.rig.closed);
    let (ended, figures) = publisher.ended();
    assert_eq!(ended, [Ending::OnTime]);
    assert_eq!(["mqtt.unacknowledged", "mqtt.unanswered"].map(|name| own(&figures, name)), [4; 2]);

    let published = Arc::new(Published::default());
    let met = |mqtt| MqttOptions { published: Some(published.clone()), linger, ..mqtt };
    let mut subscriber = Stage::subscriber(&met(options(Qos::AtMostOnce)));
    let mut sender = Stage::publisher(&met(MqttOptions { count: Some(2), ..options(Qos::AtMostOnce) }));
    sender.handle_timeout(150);
    subscriber.dispatch(Event::Stop);
    assert!(!subscriber.rig.closed, "two messages are on their way");
    subscriber.dispatch(Event::Stop);
    assert!(subscriber.rig.closed);
    assert_eq!(subscriber.ended().0, [Ending::OnTime]);
}

#[test]
fn messages_that_a_broker_refuses_are_counted_and_its_reason_is_kept_once() {
    let mut stage = Stage::publisher(&options(Qos::AtLeastOnce));
    stage.handle_timeout(350);
    let puback = |id: u8, reason: u8| [0x40, 3, 0, id, reason];
    // Not authorized, no matching subscribers, which is a success, and another error.
    stage.hear(&[puback(1, 0x87), puback(2, 0x10), puback(3, 0x97), puback(4, 0)].concat());
    let failures = stage.rig.world.take_failures();
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0].failure, Failure::MessageRefused);
    assert_eq!(failures[0].words, "PUBACK 0x87 Not authorized");
    let counted = ["mqtt.refused", "mqtt.acknowledged", "mqtt.unmatched"].map(|name| stage.figure(name));
    assert_eq!(counted, [2, 2, 1]);
    stage.dispatch(Event::Stop);
    assert_eq!(stage.ended().0, [Ending::OnTime]);
}

#[test]
fn a_publisher_with_a_count_whose_broker_acknowledges_nothing_fails_and_says_what_waits() {
    for (qos, window) in [(Qos::AtLeastOnce, 1_000), (Qos::ExactlyOnce, 1_000), (Qos::ExactlyOnce, 3)] {
        let mut stage = Stage::publisher(&MqttOptions { count: Some(6), window, ..options(qos) });
        // 6 messages within 0.5 s, of which the window may hold back some; then 10 s without a word.
        stage.handle_timeout(700);
        stage.handle_timeout(9_000);
        assert!(!stage.rig.closed);
        stage.handle_timeout(1_200);
        assert!(stage.rig.closed);
        let waiting = window.min(6);
        let words =
            format!("the broker has acknowledged nothing for 10 s, and {waiting} messages wait for it");
        assert_eq!(stage.rig.world.take_failures()[0].words, words);
        let (ended, figures) = stage.ended();
        assert_eq!(ended, [Ending::Failed(Failure::SendTimeout)]);
        let counted = ["mqtt.unacknowledged", "units_short"].map(|name| own(&figures, name));
        assert_eq!(counted, [u64::from(waiting), 6 - u64::from(waiting)]);
    }
    // One without a count goes on with its schedule, and ends with its run.
    let mut stage = Stage::publisher(&options(Qos::AtLeastOnce));
    stage.handle_timeout(15_000);
    assert!(!stage.rig.closed);
}

#[test]
fn an_acknowledgement_that_is_repeated_is_counted() {
    let mut stage = Stage::publisher(&MqttOptions { count: Some(2), ..options(Qos::AtLeastOnce) });
    stage.handle_timeout(50);
    stage.acknowledge([1, 1]);
    assert_eq!(stage.figure("mqtt.acknowledged_again"), 1);
    stage.said();
    stage.handle_timeout(100);
    let [Said::Publish { id: Some(id), .. }] = stage.said()[..] else { panic!("no second message") };
    stage.acknowledge([id]);
    let (ended, figures) = stage.ended();
    assert_eq!((ended, own(&figures, "mqtt.acknowledged")), (vec![Ending::OnTime], 2));
}

#[test]
fn a_broker_that_closes_the_link_before_connack_may_not_know_mqtt_5() {
    for make in [publishers as fn(&_) -> _, subscribers] {
        for (version, more) in [(MqttVersion::V5, "; try `mqtt_version: 3.1.1`"), (MqttVersion::V311, "")] {
            let mut stage = Stage::new(&make(&MqttOptions { version, ..options(Qos::AtMostOnce) }), version);
            stage.breaks();
            let words = stage.rig.world.take_failures().remove(0).words;
            assert_eq!(words, format!("the broker closed the link before it answered CONNECT{more}"));
        }
    }
}

/// Message `number` of publisher 7, which has been sent now; in front of the payload in MQTT 3.1.1.
#[test]
fn a_client_whose_first_connection_fails_tries_again_if_it_is_to() {
    for (make, is_subscriber) in [
        (publishers as fn(&MqttOptions) -> Workload, false),
        (subscribers as fn(&MqttOptions) -> Workload, true),
    ] {
        let mqtt = options(Qos::AtMostOnce);
        let mut stage = Stage::unlinked(&make(&mqtt), mqtt.version);
        stage.breaks();
        assert_eq!(stage.ended().0, [Ending::Failed(Failure::ClosedByPeer)]);
        let mqtt = MqttOptions { retry_connect: true, ..mqtt };
        let mut stage = Stage::unlinked(&make(&mqtt), mqtt.version);
        stage.breaks();
        stage.comes_back();
        // Now the broker takes the link, and closes it without a word.
        assert_eq!(stage.said(), [Said::Connect { clean: true }]);
        stage.breaks();
        stage.comes_back();
        assert_eq!(stage.said(), [Said::Connect { clean: true }]);
        stage.hear(&CONNACK);
        if is_subscriber {
            stage.grant();
        }
        let figures = ["playing", "started", "connected", "mqtt.connects", "mqtt.reconnects"];
        assert_eq!(figures.map(|name| stage.figure(name)), [1, 1, 1, 1, 0]);
        // One that the broker never takes has failed after a minute.
        let mut stage = Stage::unlinked(&make(&mqtt), mqtt.version);
        for _ in 0..200 {
            stage.breaks();
            stage.handle_timeout(5_000);
        }
        assert_eq!(stage.ended().0, [Ending::Failed(Failure::ClosedByPeer)]);
    }
}

#[test]
fn messages_that_arrive_as_a_poisson_process_are_acknowledged_by_the_moments_they_were_due() {
    let mqtt =
        MqttOptions { arrivals: mqtt::Arrivals::Poisson, count: Some(50), ..options(Qos::AtLeastOnce) };
    let mut stage = Stage::publisher(&mqtt);
    let mut ids = Vec::new();
    for _ in 0..200 {
        stage.handle_timeout(100);
        let sent = stage.said().into_iter().filter_map(|said| match said {
            Said::Publish { id, .. } => id,
            _ => None,
        });
        ids.extend(sent);
        if ids.len() == 50 {
            break;
        }
    }
    assert_eq!(ids.len(), 50, "at ten a second they are over in 20 s");
    stage.acknowledge(ids);
    let (ended, figures) = stage.ended();
    assert_eq!((ended, own(&figures, "mqtt.acknowledged")), (vec![Ending::OnTime], 50));
    let response = figures.schema().position("mqtt.response_time").unwrap() as u16;
    let response = figures.spread(weir_metrics::Spread(response));
    // The first waited for all of the time; the last at most for one of these steps.
    assert!(response.max() > 2_000_000 && response.min() <= 100_000, "{} {}", response.min(), response.max());
}
