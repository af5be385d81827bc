//! What a subscriber misses while its link is away, and what it waits for at its end.

use crate::{CONNACK, CONNACK_WITH_SESSION, Stage, options, own};
use std::sync::Arc;
use std::time::Duration;
use weir_clients::{Ending, MqttOptions, MqttVersion, Published, Qos};
use weir_metrics::Failure;
use weir_metrics::common::{DUPLICATE, LATENCY, LOST, MEDIA, OPEN_ENDS, UNITS};
use weir_mqtt::mark::Clocks;
use weir_mqtt::{Event as Read, Limits, Mark, Packet, Publish, Reader, Version};
use weir_shard::Event;

pub(crate) fn message(stage: &Stage, number: u64, payload: usize, last: bool) -> Vec<u8> {
    let sent = Clocks { monotonic: stage.rig.now.as_nanos(), wall: 0, boot: 0 };
    let mark = Mark { publisher: 7, sequence_number: number, begun: 0, sent, last };
    let mut body = vec![9; payload];
    mark.put(&mut body);
    let mut packet = Vec::new();
    Publish::new("t", &body).encode(stage.version, &mut packet).unwrap();
    packet
}

#[test]
fn a_subscriber_comes_back_and_what_it_has_missed_is_lost() {
    for (session, resumed) in [(None, false), (Some(Duration::from_secs(9)), true)] {
        let mut stage = Stage::subscriber(&MqttOptions { session, ..options(Qos::AtMostOnce) });
        let first = message(&stage, 0, 100, false);
        stage.hear(&first);
        stage.breaks();
        assert_eq!(stage.figure("playing"), 0);
        stage.comes_back();
        stage.said();
        stage.hear(if resumed { &CONNACK_WITH_SESSION } else { &CONNACK });
        if resumed {
            assert_eq!(stage.said(), [], "the broker has kept the subscription");
        } else {
            stage.grant();
        }
        assert_eq!(stage.figure("playing"), 1);
        let last = message(&stage, 5, 100, true);
        stage.hear(&last);
        stage.dispatch(Event::Stop);
        let (ended, figures) = stage.ended();
        assert_eq!(ended, [Ending::OnTime]);
        assert_eq!((figures.counter(LOST), figures.counter(OPEN_ENDS)), (4, 0));
        assert_eq!((own(&figures, "mqtt.reconnects"), own(&figures, "mqtt.sessions_lost")), (1, 0));
    }
}

/// A broker that sends on what it has, to a subscriber that it knows.
fn numbered(stage: &mut Stage, numbers: impl IntoIterator<Item = u64>, last: Option<u64>) {
    for number in numbers {
        let bytes = message(stage, number, 100, last == Some(number));
        stage.hear(&bytes);
    }
}

/// The run cuts the link, and the client has a new one on which it has sent CONNECT.
fn cut(stage: &mut Stage) {
    stage.handle_timeout(1_000);
    assert_eq!(stage.figure("playing"), 0);
    stage.rig.take_sent();
    stage.forget_input();
    stage.comes_back();
    stage.said();
}

#[test]
fn what_is_published_between_a_cut_by_the_run_and_the_next_subscription_is_not_lost() {
    let every = Some(Duration::from_secs(1));
    // A session that was kept for less time than the client was away is over as a clean one is.
    for (session, refused, lost) in [(None, 0, 2), (Some(1), 0, 26), (Some(1), 20, 2)] {
        let session = session.map(Duration::from_secs);
        let mqtt = MqttOptions { break_every: every, session, ..options(Qos::AtLeastOnce) };
        let mut stage = Stage::subscriber(&mqtt);
        numbered(&mut stage, [0, 1, 3], None);
        cut(&mut stage);
        for _ in 0..refused {
            stage.breaks();
            stage.comes_back_within(10_000);
            stage.said();
        }
        stage.hear(&CONNACK);
        stage.grant();
        // 2 is missing from before the cut. What was sent again came a second time; 28 was on its way.
        numbered(&mut stage, [3, 29, 28, 30, 32], Some(32));
        stage.dispatch(Event::Stop);
        let (ended, figures) = stage.ended();
        assert_eq!(ended, [Ending::OnTime]);
        assert_eq!(
            (figures.counter(LOST), figures.counter(OPEN_ENDS), figures.counter(DUPLICATE)),
            (lost, 0, 1),
            "{session:?}, {refused}"
        );
    }
}

#[test]
fn a_cut_by_the_run_excuses_what_publishers_of_the_run_sent_meanwhile_and_nothing_else() {
    for comes_back in [true, false] {
        let published = Arc::new(Published::default());
        let met = |mqtt| MqttOptions { published: Some(published.clone()), ..mqtt };
        let every = Some(Duration::from_secs(1));
        let mut subscriber =
            Stage::subscriber(&met(MqttOptions { break_every: every, ..options(Qos::AtLeastOnce) }));
        let mut publishers =
            [12, 8].map(|count| MqttOptions { count: Some(count), ..options(Qos::AtMostOnce) });
        let [mut first, mut second] = publishers.each_mut().map(|mqtt| Stage::publisher(&met(mqtt.clone())));
        first.handle_timeout(550);
        let sent = first.rig.take_sent();
        // Of 0 to 5 the broker loses the third.
        let length = sent.len() / 6;
        subscriber.hear(&[&sent[..2 * length], &sent[3 * length..]].concat());
        if comes_back {
            cut(&mut subscriber);
        } else {
            subscriber.handle_timeout(1_000);
        }
        // 6 to 8, and all of the second publisher, while the subscriber is away.
        first.handle_timeout(300);
        second.handle_timeout(2_000);
        if comes_back {
            subscriber.hear(&CONNACK);
            subscriber.grant();
        }
        first.handle_timeout(2_000);
        assert_eq!([first.ended().0, second.ended().0], [[Ending::OnTime]; 2]);
        // Of what follows, 9 to 11, nothing comes.
        subscriber.dispatch(Event::Stop);
        let lost = subscriber.ended().1.counter(LOST);
        assert_eq!(lost, if comes_back { 1 + 3 } else { 1 });
    }
}

#[test]
fn without_its_last_message_a_publishers_end_is_not_known() {
    for (last, open) in [(true, 0), (false, 1)] {
        let mut stage = Stage::subscriber(&options(Qos::AtMostOnce));
        for number in [0, 2] {
            let bytes = message(&stage, number, 100, last && number == 2);
            stage.hear(&bytes);
        }
        stage.dispatch(Event::Stop);
        let figures = stage.ended().1;
        assert_eq!((figures.counter(LOST), figures.counter(OPEN_ENDS)), (1, open));
    }
}

#[test]
fn a_large_message_is_counted_and_timed_at_its_last_byte_and_one_that_is_cut_apart() {
    const LARGE: usize = 3 << 20;
    for version in [MqttVersion::V5, MqttVersion::V311] {
        let mut stage =
            Stage::subscriber(&MqttOptions { version, reconnect: false, ..options(Qos::AtMostOnce) });
        let bytes = message(&stage, 0, LARGE, false);
        let (begin, end) = bytes.split_at(bytes.len() - 1);
        for piece in begin.chunks(1 << 20) {
            stage.hear(piece);
            stage.handle_timeout(100);
        }
        assert_eq!(stage.figure("units"), 0, "one byte is still to come");
        stage.hear(end);
        assert_eq!((stage.figure("units"), stage.figure("stamped")), (1, 1), "{version:?}");
        // The next one is cut within its payload, and a small one within its head.
        let bytes = message(&stage, 1, LARGE, false);
        stage.hear(&bytes[..2_000_000]);
        stage.breaks();
        let (ended, figures) = stage.ended();
        assert_eq!(ended, [Ending::Failed(Failure::ClosedByPeer)]);
        assert_eq!((figures.counter(UNITS), own(&figures, "mqtt.cut")), (1, 1));
        assert!(figures.counter(MEDIA) < LARGE as u64 + 2_000_000 && figures.counter(MEDIA) > LARGE as u64);
        assert_eq!(figures.signed(LATENCY).len(), 1);
    }
    let mut stage = Stage::subscriber(&MqttOptions { reconnect: false, ..options(Qos::AtMostOnce) });
    let bytes = message(&stage, 0, 1_000, false);
    stage.hear(&bytes[..500]);
    stage.dispatch(Event::Stop);
    let figures = stage.ended().1;
    assert_eq!((figures.counter(UNITS), own(&figures, "mqtt.cut"), figures.counter(MEDIA)), (0, 1, 0));
}

#[test]
fn in_one_run_what_was_acknowledged_and_did_not_come_is_lost_though_nothing_came_behind_it() {
    let published = Arc::new(Published::default());
    let met = |mqtt| MqttOptions { published: Some(published.clone()), ..mqtt };
    let mut subscriber = Stage::subscriber(&met(options(Qos::AtLeastOnce)));
    let mut publisher = Stage::publisher(&met(MqttOptions { count: Some(10), ..options(Qos::AtLeastOnce) }));
    publisher.handle_timeout(2_000);
    let mut packets = Vec::new();
    let mut ids = Vec::new();
    let sent = publisher.rig.take_sent();
    let mut reader = Reader::new(Version::V5, Limits::default());
    let mut input = &sent[..];
    while let Some(Read::Packet(Packet::Publish(message))) = reader.next(&mut input).unwrap() {
        ids.push(message.packet_id.unwrap().get());
        let mut packet = Vec::new();
        message.encode(Version::V5, &mut packet).unwrap();
        packets.push(packet);
    }
    assert_eq!(ids.len(), 10);
    // The broker accepts all but the last, and hands on the first three and the fifth.
    publisher.acknowledge(ids[..9].iter().copied());
    for number in [0, 1, 2, 4] {
        subscriber.hear(&packets[number]);
    }
    publisher.dispatch(Event::Stop);
    publisher.handle_timeout(500);
    assert_eq!(publisher.ended().0, [Ending::OnTime]);
    subscriber.dispatch(Event::Stop);
    let figures = subscriber.ended().1;
    // 3, 5, 6, 7 and 8; it is unknown whether the broker ever had 9.
    assert_eq!((figures.counter(UNITS), figures.counter(LOST), figures.counter(OPEN_ENDS)), (4, 5, 0));
}

#[test]
fn a_subscriber_that_is_told_to_stop_waits_for_what_is_on_its_way() {
    let published = Arc::new(Published::default());
    let linger = Duration::from_millis(500);
    let met = |mqtt| MqttOptions { published: Some(published.clone()), linger, ..mqtt };
    let mut subscriber = Stage::subscriber(&met(options(Qos::AtMostOnce)));
    let mut publisher = Stage::publisher(&met(MqttOptions { count: Some(2), ..options(Qos::AtMostOnce) }));
    publisher.handle_timeout(150);
    let sent = publisher.rig.take_sent();
    assert_eq!(publisher.ended().0, [Ending::OnTime]);
    subscriber.dispatch(Event::Stop);
    subscriber.handle_timeout(300);
    assert!(!subscriber.rig.closed, "two messages are on their way");
    // The DISCONNECT behind them is not the broker's to hand on.
    subscriber.hear(&sent[..sent.len() - 2]);
    subscriber.handle_timeout(100);
    assert!(subscriber.rig.closed);
    let figures = subscriber.ended().1;
    assert_eq!((figures.counter(UNITS), figures.counter(LOST), figures.counter(OPEN_ENDS)), (2, 0, 0));
}
