//! A WebRTC viewer on the rig, against a server of a few lines that can do wrong, on virtual time.

#[path = "rtc/hostile.rs"]
mod hostile;
#[path = "rtc/keyframes.rs"]
mod keyframes;
#[path = "rtc/narrow_link.rs"]
mod narrow_link;
#[path = "rtc/oven.rs"]
mod oven;
#[path = "rtc/padding.rs"]
mod padding;
#[path = "rtc/relays.rs"]
mod relays;
#[path = "rtc/stage.rs"]
mod stage;
#[path = "rtc/whep.rs"]
mod whep;

use stage::{Server, Stage, counter, server_address};
use std::time::Duration;
use weir_clients::Ending;
use weir_metrics::common::{BURST, DRIFT, RECOVERY};
use weir_metrics::{Failure, Recorder};
use weir_rtc::srtp::Outbound;
use weir_shard::{Event, clock};

#[test]
fn a_viewer_plays_with_its_first_whole_keyframe_and_says_goodbye() {
    for client in [0, 5] {
        let mut stage = Stage::playing(client);
        assert!(stage.rig.hung_up, "the link of the signalling is of no more use");
        stage.keyframe(6, server_address());
        let figures = stage.figures();
        assert_eq!((counter(&figures, "played"), counter(&figures, "units")), (1, 6));
        assert_eq!((counter(&figures, "frames"), counter(&figures, "rtc.decrypted")), (1, 6));
        stage.keyframe(6, server_address());
        // A witness decrypts on, the others do not.
        let decrypted = counter(&stage.figures(), "rtc.decrypted");
        assert_eq!(decrypted, if client == 0 { 6 } else { 0 });
        stage.dispatch(Event::Stop);
        assert_eq!(stage.rig.world.take_ended()[0].1, Ending::OnTime);
        assert!(stage.rig.reopened.is_some() && !stage.rig.closed);
        stage.dispatch(Event::Connected);
        let said = String::from_utf8(stage.rig.take_sent()).unwrap();
        assert!(said.starts_with("DELETE /session/1 HTTP/1.1\r\n"), "{said}");
        stage.answer("200 OK", "", "");
        assert!(stage.rig.closed);
    }
}

#[test]
fn a_viewer_that_gets_no_packet_for_its_timeout_plays_no_more_although_the_path_holds() {
    for client in [0, 5] {
        let mut stage = Stage::playing(client);
        stage.keyframe(6, server_address());
        let supply = |stage: &mut Stage| {
            let figures = stage.figures();
            ["playing", "starving", "starved"].map(|name| counter(&figures, name))
        };
        let pass = |stage: &mut Stage, tenths: u32| {
            for _ in 0..tenths {
                stage.exchange();
                stage.handle_timeout(Duration::from_millis(100));
            }
        };
        pass(&mut stage, 28);
        assert_eq!(supply(&mut stage), [1, 0, 0], "client {client}");
        pass(&mut stage, 4);
        assert_eq!(supply(&mut stage), [0, 1, 1], "client {client}");
        stage.keyframe(6, server_address());
        assert_eq!(supply(&mut stage), [1, 0, 0], "client {client}");
        stage.dispatch(Event::Stop);
        assert_eq!(supply(&mut stage), [0, 0, 0], "client {client}");
    }
}

#[test]
fn frames_that_were_held_up_and_come_together_have_a_drift_each() {
    for client in [0, 5] {
        let mut stage = Stage::playing(client);
        stage.keyframe(6, server_address());
        stage.figures();
        stage.handle_timeout(Duration::from_millis(900));
        stage.burst(3);
        let figures = stage.figures();
        let drift = figures.signed(DRIFT);
        assert_eq!((counter(&figures, "frames"), drift.len()), (3, 3));
        // The first should have come after 100 ms, the last after 300 ms.
        let ends = [0.0, 1.0].map(|quantile| drift.value_at_quantile(quantile));
        assert!((590_000..=610_000).contains(&ends[0]) && (790_000..=810_000).contains(&ends[1]), "{ends:?}");
    }
}

#[test]
fn what_a_server_may_answer_is_told_apart() {
    let (_, offer) = Stage::new(0);
    let (_, good) = Server::answer(&offer, clock::now());
    let without = |what: &str| {
        let lines = good.lines().filter(|line| !line.contains(what));
        lines.map(|line| format!("{line}\r\n")).collect::<String>()
    };
    for (status, body, failure, words) in [
        ("201 Created", "v=0\r\nm=video x\r\n".to_owned(), Failure::MalformedInput, "line 2"),
        ("201 Created", without("fingerprint"), Failure::MalformedInput, "no fingerprint"),
        ("201 Created", without("ice-pwd"), Failure::MalformedInput, "no ICE credentials"),
        ("201 Created", String::new(), Failure::MalformedInput, "sent no answer"),
        ("201 Created", "x".repeat(200_000), Failure::MalformedInput, "over"),
        ("406 Not Acceptable", good.clone(), Failure::CounterOffer, "counter-offer"),
        ("409 Conflict", good.clone(), Failure::CounterOffer, "counter-offer"),
        ("409 Conflict", "no stream".to_owned(), Failure::StreamNotFound, "no stream"),
        ("401 Unauthorized", String::new(), Failure::Unauthorized, "401"),
        ("503 Service Unavailable", String::new(), Failure::Unavailable, "503"),
        ("500 Oh", String::new(), Failure::Rejected, "500"),
    ] {
        let (mut stage, _) = Stage::new(0);
        stage.answer(status, "", &body);
        let (found, said) = stage.failure();
        assert_eq!(found, failure, "{status}: {said}");
        assert!(said.contains(words), "{status}: {said}");
        assert!(stage.rig.closed);
    }
    let (mut stage, _) = Stage::new(0);
    stage.dispatch(Event::HungUp { failure: Failure::ClosedByPeer, words: "" });
    assert_eq!(stage.failure().0, Failure::ClosedByPeer);
}

#[test]
fn each_phase_that_lasts_too_long_has_a_name() {
    let wait = |stage: &mut Stage| {
        for _ in 0..40 {
            stage.handle_timeout(Duration::from_millis(100));
            stage.rig.take_datagrams();
        }
        stage.failure()
    };
    let (mut stage, _) = Stage::new(0);
    assert_eq!(wait(&mut stage).0, Failure::RequestTimeout);

    let (mut stage, offer) = Stage::new(0);
    let (_, answer) = Server::answer(&offer, stage.rig.now);
    stage.answer("201 Created", "", &answer);
    assert_eq!(wait(&mut stage).0, Failure::IceTimeout);

    let mut stage = Stage::playing(0);
    assert_eq!(wait(&mut stage).0, Failure::NoMedia);

    // The server protects with other keys than it has agreed on.
    let mut stage = Stage::playing(0);
    let server = stage.server.as_mut().unwrap();
    let (_, key) = server.keys.take().unwrap();
    let other = Stage::playing(1).server.unwrap().keys.unwrap().1;
    assert_ne!(key, other);
    server.keys = Some((Outbound::new(&other).unwrap(), other));
    stage.keyframe(5, server_address());
    let (failure, words) = wait(&mut stage);
    assert_eq!(failure, Failure::SrtpFailed);
    assert!(words.starts_with("5 packets came"), "{words}");
}

#[test]
fn the_sources_rate_does_not_shrink_with_the_loss() {
    let source = |drops: bool, reports: bool| {
        let mut stage = Stage::playing(5);
        stage.keyframe(5, server_address());
        stage.figures();
        for frame in 0..100 {
            stage.handle_timeout(Duration::from_millis(100));
            stage.rig.take_datagrams();
            let server = stage.server.as_mut().unwrap();
            let mut datagrams = server.keyframe(5);
            if drops {
                datagrams.remove(frame % 5);
            }
            if reports && frame % 10 == 5 {
                datagrams.push(server.report());
            }
            for datagram in datagrams {
                stage.rig.tell_datagram(&mut *stage.viewer, server_address(), &datagram);
            }
        }
        let figures = stage.figures();
        let time = counter(&figures, "source_time") as f64;
        let rate = counter(&figures, "source") as f64 / time;
        // A tenth of a second a frame.
        let fps = counter(&figures, "source_frames") as f64 / time * 1e6;
        assert!((9.0..=11.0).contains(&fps), "{fps} {drops} {reports}");
        assert_eq!(counter(&figures, "numbered"), if drops { 400 } else { 500 });
        assert!(counter(&figures, "lost") >= if drops { 80 } else { 0 });
        rate
    };
    let whole = source(false, false);
    for reports in [false, true] {
        let share = source(true, reports) / whole;
        assert!((0.96..=1.04).contains(&share), "{share} of the rate, with reports: {reports}");
    }
}

#[test]
fn a_group_of_pictures_out_of_a_cache_is_a_burst_and_no_earliness() {
    for client in [0, 5] {
        let mut stage = Stage::playing(client);
        stage.keyframe(6, server_address());
        // Two seconds at once, and then on the clock.
        stage.burst(20);
        for _ in 0..30 {
            stage.handle_timeout(Duration::from_millis(100));
            stage.burst(1);
        }
        let figures = stage.figures();
        let drift = figures.signed(DRIFT);
        let ends = [0.0, 1.0].map(|quantile| drift.value_at_quantile(quantile));
        assert!(drift.len() >= 30 && ends.iter().all(|end| end.abs() <= 2_000), "{ends:?}");
        let burst = figures.spread(BURST);
        assert_eq!(burst.len(), 1);
        assert!((1_980_000..=2_020_000).contains(&burst.max()), "{}", burst.max());
    }
}

/// A viewer of a source whose pictures stop for two seconds, while sound goes on, and then go on or begin again.
fn interrupted(client: u32, begins_again: bool) -> Recorder {
    let mut stage = Stage::playing(client);
    stage.keyframe(6, server_address());
    let pass = |stage: &mut Stage, frames: u32, pictures: bool| {
        for _ in 0..frames {
            stage.exchange();
            stage.handle_timeout(Duration::from_millis(100));
            let sound = stage.server.as_mut().unwrap().sound();
            stage.rig.tell_datagram(&mut *stage.viewer, server_address(), &sound);
            if pictures {
                stage.burst(1);
            }
        }
    };
    pass(&mut stage, 20, true);
    pass(&mut stage, 20, false);
    if begins_again {
        stage.server.as_mut().unwrap().begin_again();
    }
    pass(&mut stage, 30, true);
    stage.figures()
}

/// For how many tenths of a second it was without pictures.
fn recoveries(client: u32, begins_again: bool) -> Vec<u64> {
    let figures = interrupted(client, begins_again);
    let recorded = figures.spread(RECOVERY).iter_recorded();
    recorded.map(|value| (value.value_iterated_to() + 50_000) / 100_000).collect()
}

#[test]
fn a_viewer_of_a_source_that_begins_again_plays_on_as_soon_as_its_buffer_is_full() {
    for (client, begins_again) in [(0, false), (0, true), (5, false), (5, true)] {
        let figures = interrupted(client, begins_again);
        let stalled = counter(&figures, "stalled") / 100_000;
        assert_eq!(counter(&figures, "stalls"), 1, "{client} {begins_again}");
        assert!((5..25).contains(&stalled), "{client} {begins_again}: {stalled} tenths of a second");
    }
}

#[test]
fn a_witness_is_without_pictures_until_one_comes_that_can_be_shown() {
    assert_eq!(recoveries(0, false), [21]);
    // The packets of the first picture prove that the numbers have begun again; the second picture is whole.
    assert_eq!(recoveries(0, true), [22]);
    assert!(recoveries(5, false).is_empty(), "of the others it is not known what is a keyframe");
}

/// Parameter sets, an IDR slice, another slice, and the message of a recovery point.
const SPS: &[u8] = &[0x67, 66, 0, 30];
const PPS: &[u8] = &[0x68, 0xCE];
const IDR: &[u8] = &[0x65, 0x88, 1];
const SLICE: &[u8] = &[0x41, 0x9A, 1];
const RECOVERY_POINT: &[u8] = &[0x06, 6, 1, 0xC4, 0x80];

/// A viewer of pictures of these payloads, whose parameter sets no description has, each a tenth of a second after the one before.
fn shown(client: u32, pictures: &[&[&[u8]]]) -> Stage {
    let mut stage = Stage::undescribed(client);
    for payloads in pictures {
        for packet in stage.server.as_mut().unwrap().picture(payloads) {
            stage.rig.tell_datagram(&mut *stage.viewer, server_address(), &packet);
        }
        stage.exchange();
        stage.handle_timeout(Duration::from_millis(100));
    }
    stage
}

#[test]
fn pictures_without_parameter_sets_are_no_media_that_says_what_is_missing() {
    for client in [0, 5] {
        for (pictures, missing) in [
            (&[&[IDR][..], &[SLICE]][..], "without SPS and PPS of the H.264"),
            (&[&[PPS, IDR], &[SLICE]], "without SPS of the H.264"),
            (&[&[SLICE], &[SLICE]], "no decodable frame in time"),
        ] {
            let mut stage = shown(client, pictures);
            for _ in 0..40 {
                stage.exchange();
                stage.handle_timeout(Duration::from_millis(100));
            }
            let (failure, words) = stage.failure();
            assert_eq!(failure, Failure::NoMedia);
            assert!(words.contains(missing), "{words}");
        }
    }
}

#[test]
fn pictures_begin_with_parameter_sets_in_band_and_at_a_recovery_point() {
    for client in [0, 5] {
        for pictures in [
            &[&[SPS, PPS, IDR][..]][..],
            &[&[SLICE], &[SPS, PPS, SLICE], &[IDR]],
            &[&[SPS, PPS, SLICE], &[RECOVERY_POINT, SLICE]],
        ] {
            let figures = shown(client, pictures).figures();
            assert_eq!(counter(&figures, "played"), 1, "{client} {pictures:?}");
        }
    }
}

#[test]
fn a_gap_in_the_sound_is_no_freeze() {
    let mut stage = Stage::playing(5);
    stage.keyframe(6, server_address());
    for frame in 0..40 {
        stage.handle_timeout(Duration::from_millis(100));
        stage.burst(1);
        // Sound pauses for 2 s.
        if !(10..30).contains(&frame) {
            let datagrams: Vec<_> = (0..5).map(|_| stage.server.as_mut().unwrap().sound()).collect();
            for datagram in datagrams {
                stage.rig.tell_datagram(&mut *stage.viewer, server_address(), &datagram);
            }
        }
    }
    stage.dispatch(Event::Stop);
    let figures = stage.figures();
    assert!(counter(&figures, "rtc.audio_packets") >= 100);
    assert_eq!((counter(&figures, "rtc.freezes"), counter(&figures, "rtc.frozen")), (0, 0));
}
