//! WebRTC: what the origin did to each packet, to the last one.

use crate::support::{Air, Run, air, config, measure, recomputed_as};
use std::collections::BTreeMap;
use std::time::Duration;
use weir_origin::{ANY_PORT, RTC};
use weir_runner::ErrorKind::Thresholds;
use weir_testing::undisturbed;

/// A stream on air that WebRTC plays too, with these faults.
pub(crate) fn on_air(faults: &[&str]) -> Air {
    air(&config(faults).listening(&RTC, ANY_PORT))
}

pub(crate) fn whep(air: &Air) -> String {
    format!("whep+http://{}/live/a", air.origin.address("rtc").unwrap())
}

fn oven(air: &Air) -> String {
    format!("ws://{}/live/a", air.origin.address("rtc").unwrap())
}

fn count(run: &Run, figure: &str) -> u64 {
    run.count(figure)
}

fn play(url: &str, keys: &str) -> Run {
    measure(&format!("drain: 500ms\nworkloads: [{{play: '{url}', {keys}}}]"))
}

#[test]
fn viewers_by_both_ways_of_signalling_get_every_packet() {
    let air = on_air(&[]);
    for url in [whep(&air), oven(&air)] {
        let before = air.origin.counts().sent().units();
        let run = play(&url, "clients: 10, duration: 4s");
        assert_eq!(run.well(), 10, "{:?}", run.failures());
        assert_eq!(count(&run, "played"), 10);
        std::thread::sleep(Duration::from_millis(300));
        let sent = air.origin.counts().sent().units() - before;
        let came = count(&run, "units");
        // What is under way when a viewer leaves has been sent.
        assert!(came <= sent && came + 200 >= sent && came > 1_000, "{came} of {sent}");
        assert_eq!((count(&run, "lost"), count(&run, "reordered"), count(&run, "duplicate")), (0, 0, 0));
        assert_eq!((count(&run, "rtc.frames_broken"), count(&run, "rtc.unauthentic")), (0, 0));
        assert!(count(&run, "latency") > 200, "witnesses find the stamps");
        assert_eq!(count(&run, "socket_drops"), 0);
        assert_eq!(air.origin.counts().present(), 0, "all have said goodbye");
    }
}

/// Ten bursts of five packets and one of a single one: 51 in 11 gaps.
fn bursts() -> Vec<String> {
    let burst = |n: u32| format!("drop unit={}..{} kind=video", 100 + 25 * n, 104 + 25 * n);
    (0..10).map(burst).chain(["drop unit=400 kind=video".to_owned()]).collect()
}

#[test]
fn fifty_one_packets_in_bursts_are_fifty_one_lost_in_eleven_gaps_of_witnesses_and_of_the_crowd() {
    undisturbed(|| {
        let faults = bursts();
        let air = on_air(&faults.iter().map(String::as_str).collect::<Vec<_>>());
        let run = play(&whep(&air), "clients: 6, duration: 5s, rtcp_off: [nack, pli]");
        assert_eq!(run.well(), 6, "{:?}", run.failures());
        let counts = air.origin.counts();
        let dropped: u64 = counts.viewers.iter().map(|viewer| viewer.dropped.video).sum();
        assert_eq!(dropped, 6 * 51);
        assert_eq!((count(&run, "lost"), count(&run, "rtc.video_lost")), (6 * 51, 6 * 51));
        assert_eq!((count(&run, "rtc.gaps"), count(&run, "rtc.gap_length")), (6 * 11, 6 * 11));
        let lengths = run.spread("rtc.gap_length");
        assert_eq!((lengths["min"].as_f64(), lengths["max"].as_f64()), (Some(1.0), Some(5.0)));
        assert_eq!((count(&run, "reordered"), count(&run, "rtc.recovered")), (0, 0));
        assert!(count(&run, "rtc.frames_broken") >= 6 * 11);
        assert_eq!((count(&run, "rtc.nacks"), count(&run, "rtc.plis")), (0, 0));
    });
}

#[test]
fn many_packets_lost_fail_the_run_and_stand_in_the_table_and_the_expected_rate_stays() {
    undisturbed(|| {
        let many: Vec<String> = (0..80).map(|n| format!("drop unit={} kind=video", 100 + 4 * n)).collect();
        let keys = "clients: 4, duration: 8s, rtcp_off: [nack, pli]";
        let [whole, damaged] = [Vec::new(), many].map(|faults| {
            let air = on_air(&faults.iter().map(String::as_str).collect::<Vec<_>>());
            play(&whep(&air), keys)
        });
        assert_eq!(whole.well(), 4, "{:?}", whole.failures());
        assert_eq!((count(&damaged, "lost"), damaged.missed), (4 * 80, Some(Thresholds)));
        let asked = damaged.summary["thresholds"].as_array().unwrap();
        let lost = asked.iter().find(|it| it["expression"] == "lost.ratio <= 1%").unwrap();
        assert_eq!((&lost["passed"], &lost["default"]), (&false.into(), &true.into()), "{asked:?}");
        let stage = |run: &Run| run.workloads()[0]["stages"][0].clone();
        let expected = |run: &Run| stage(run)["expected_bps"].as_f64().unwrap();
        let (of_whole, of_damaged) = (expected(&whole), expected(&damaged));
        assert!((of_damaged / of_whole - 1.0).abs() < 0.05, "{of_damaged} of {of_whole}");
        let rate = stage(&damaged)["source_fps"].as_f64().unwrap();
        assert!((24.0..=31.0).contains(&rate), "{rate}");
        let report = damaged.file("report.txt");
        let table: String = report.lines().take(40).collect::<Vec<_>>().join("\n");
        assert!(["Lost", "Broken", "FPS"].iter().all(|head| table.contains(head)), "{table}");
        assert!(report.contains("320 lost, 0 reordered, 0 duplicate"), "{report}");
        let whole = whole.file("report.txt");
        assert!(whole.contains("0 lost, 0 reordered, 0 duplicate"), "{whole}");
    });
}

#[test]
fn packets_that_are_asked_for_again_come_and_are_not_lost() {
    undisturbed(|| {
        let faults = bursts();
        let air = on_air(&faults.iter().map(String::as_str).collect::<Vec<_>>());
        let run = play(&oven(&air), "clients: 6, duration: 5s");
        assert_eq!(run.well(), 6, "{:?}", run.failures());
        assert_eq!((count(&run, "lost"), count(&run, "rtc.recovered")), (0, 6 * 51));
        assert_eq!((count(&run, "reordered"), count(&run, "rtc.frames_broken")), (0, 0));
        let (asked, rtc) = (count(&run, "rtc.nacks"), air.origin.rtc());
        assert!(asked >= 6 * 51 && rtc.nacks == asked && rtc.repeated == asked, "{asked} {rtc:?}");
        // One a second of each client.
        assert!(rtc.receiver_reports >= 6 * 4, "{rtc:?}");
    });
}

#[test]
fn swaps_are_no_loss_and_duplicates_are_told_apart() {
    let swaps = (0..10).map(|n| format!("swap unit={} kind=video viewer=1", 100 + 20 * n));
    let faults: Vec<String> =
        swaps.chain(["duplicate unit=100..102 kind=video viewer=2".to_owned()]).collect();
    let air = on_air(&faults.iter().map(String::as_str).collect::<Vec<_>>());
    let run = play(&whep(&air), "clients: 6, duration: 4s, rtcp_off: [nack]");
    assert_eq!(run.well(), 6, "{:?}", run.failures());
    assert_eq!((count(&run, "lost"), count(&run, "reordered"), count(&run, "duplicate")), (0, 10, 3));
    assert_eq!(count(&run, "rtc.frames_broken"), 0);
}

#[test]
fn a_stall_is_in_the_drift_and_a_freeze_of_its_length() {
    undisturbed(|| {
        let air = on_air(&["stall at=2s for=1500ms every=5s"]);
        let run = play(&whep(&air), "clients: 2, duration: 5s");
        assert_eq!(run.well(), 2, "{:?}", run.failures());
        let close = |seconds: f64| (1.35..1.75).contains(&seconds);
        let of = |figure: &str, key: &str| run.spread(figure)[key].as_f64().unwrap();
        // Its zero is the first frame, behind which the rest of a cached group of pictures came at once.
        let rise = of("drift", "max") - of("drift", "p50");
        assert!(close(rise), "{}", run.spread("drift"));
        assert_eq!(count(&run, "rtc.freezes"), 2);
        let lengths = ["min", "max"].map(|key| of("rtc.freeze_length", key));
        assert!(lengths.into_iter().all(close), "{lengths:?}");
    });
}

/// The rows of `clients.csv`, one a client, by the names of their columns.
fn rows(run: &Run) -> Vec<BTreeMap<String, String>> {
    let text = run.file("clients.csv");
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned));
    let names: Vec<String> = lines.next().unwrap().collect();
    lines.map(|line| names.iter().cloned().zip(line).collect()).collect()
}

#[test]
fn each_client_has_a_row_with_what_was_done_to_it_and_all_are_summed_up() {
    undisturbed(|| {
        let air = on_air(&[
            "drop unit=100..104 kind=video viewer=1",
            "drop unit=150 kind=video viewer=1",
            "swap unit=120 kind=video viewer=2",
            "duplicate unit=100..102 kind=video viewer=3",
            "stall at=1500ms for=2500ms viewer=4",
            "reject phase=play viewer=5 code=404 words=not here",
        ]);
        let run = play(&whep(&air), "clients: 5, arrival: 20/s, duration: 6s, rtcp_off: [nack]");
        assert_eq!(run.well(), 4, "{:?}", run.failures());
        let rows = rows(&run);
        let number = |client: usize, key: &str| rows[client][key].parse::<f64>().unwrap_or(f64::NAN);
        let counts = |client: usize| {
            let keys =
                ["lost", "rtc.gaps", "reordered", "duplicate", "rtc.video_lost", "rtc.video_gap_length_max"];
            keys.map(|key| rows[client][key].clone())
        };
        assert_eq!(rows.iter().map(|row| &*row["client"]).collect::<Vec<_>>(), ["1", "2", "3", "4", "5"]);
        assert_eq!(counts(0), ["6", "2", "0", "0", "6", "5"]);
        assert_eq!(counts(1), ["0", "0", "1", "0", "0", ""]);
        assert_eq!(counts(2), ["0", "0", "0", "3", "0", ""]);
        assert_eq!(counts(3), ["0", "0", "0", "0", "0", ""]);
        assert_eq!(
            (&*rows[4]["failure"], &*rows[4]["rtc.ice_state"], &*rows[4]["lost"]),
            ("stream_not_found", "new", "")
        );
        // Who was stalled has it in the delay, as one freeze of its length, and in the second of 0 frames that lies in it
        // wherever a client's seconds begin.
        let close = |seconds: f64| (2.35..2.75).contains(&seconds);
        assert!(
            close(number(3, "rtc.video_delay_max_seconds") - number(3, "rtc.video_delay_min_seconds")),
            "{rows:?}"
        );
        assert!(close(number(3, "rtc.frozen_seconds")) && number(3, "rtc.freezes") == 1.0, "{rows:?}");
        assert_eq!((number(3, "rtc.fps_min"), number(1, "rtc.freezes")), (0.0, 0.0));
        for (client, row) in rows.iter().enumerate().take(4) {
            assert_eq!((&*row["rtc.ice_state"], &*row["rtc.dtls_state"]), ("connected", "connected"));
            assert_eq!(row["rtc.path"], "UDP");
            let steps = [
                "signalling_time",
                "ice_time",
                "dtls_time",
                "first_packet",
                "first_keyframe",
                "first_whole_frame",
            ];
            let parts: f64 = steps.iter().map(|step| number(client, &format!("rtc.{step}_seconds"))).sum();
            let startup = number(client, "startup_seconds");
            assert!((parts - startup).abs() < 0.001, "{parts} of {startup}");
            assert!((20.0..40.0).contains(&number(client, "rtc.fps_max")) || client == 3, "{row:?}");
        }
        // The parts add up to the whole, and whoever was planned is in the mean.
        let clients = &run.workloads()[0]["clients"];
        let figure = |name: &str| {
            let figures = clients["figures"].as_array().unwrap();
            figures.iter().find(|figure| figure["name"] == name).unwrap().clone()
        };
        for name in ["lost", "reordered", "duplicate", "rtc.gaps", "rtc.packets"] {
            let sum: f64 = (0..4).map(|client| number(client, name)).sum();
            assert_eq!(
                (figure(name)["total"].as_f64(), figure(name)["count"].as_u64()),
                (Some(sum), Some(5)),
                "{name}"
            );
        }
        let fps: f64 = (0..4).map(|client| number(client, "rtc.fps_mean")).sum();
        assert!((figure("rtc.fps")["mean"].as_f64().unwrap() - fps / 5.0).abs() < 1e-6);
        assert_eq!(
            (figure("rtc.fps")["min"].as_f64(), figure("rtc.video_delay")["count"].as_u64()),
            (Some(0.0), Some(4))
        );
        // Summed up again it is the same, and a person is told the same.
        let text = recomputed_as("text", run.directory());
        assert!(text.contains("Connected(4)") && text.contains("client_5"), "{text}");
        assert!(text.contains("5 planned, 4 played, 1 failed"), "{text}");
        assert_eq!(recomputed_as("clients", run.directory()), run.file("clients.csv"));
    });
}

#[test]
fn who_reads_headers_only_and_who_decrypts_everything_report_the_same() {
    undisturbed(|| {
        let faults: Vec<String> = bursts().into_iter().chain(["stall at=5s for=1s".to_owned()]).collect();
        let air = on_air(&faults.iter().map(String::as_str).collect::<Vec<_>>());
        // The first four are witnesses, and so is every fifth of the rest.
        let run = play(
            &whep(&air),
            "clients: 8, arrival: 100/s, duration: 8s, witness_every: 5, rtcp_off: [nack, pli]",
        );
        assert_eq!(run.well(), 8, "{:?}", run.failures());
        let (opened, units) = (count(&run, "rtc.decrypted"), count(&run, "units"));
        assert!(
            opened * 8 > units * 5 && opened * 8 < units * 6,
            "five of eight decrypt: {opened} of {units}"
        );
        let rows = rows(&run);
        let is_witness = |client: usize| client < 4 || client.is_multiple_of(5);
        let (witnesses, crowd): (Vec<_>, Vec<_>) = (0..8).partition(|client| is_witness(*client));
        let all = |clients: &[usize], key: &str| -> Vec<f64> {
            clients
                .iter()
                .map(|client| rows[*client][key].parse().unwrap_or_else(|_| panic!("{client}: {key}")))
                .collect()
        };
        // What was done to each is told by each, to the packet.
        for (key, truth) in [
            ("lost", 51.0),
            ("rtc.gaps", 11.0),
            ("rtc.video_lost", 51.0),
            ("rtc.video_gap_length_max", 5.0),
            ("reordered", 0.0),
            ("duplicate", 0.0),
        ] {
            assert_eq!((all(&witnesses, key), all(&crowd, key)), (vec![truth; 5], vec![truth; 3]), "{key}");
        }
        // The rest is a measure: the two means differ by as much as two clients of one kind may.
        let mean = |numbers: &[f64]| numbers.iter().sum::<f64>() / numbers.len() as f64;
        for (key, margin) in [
            ("rtc.packets", 0.02),
            ("rtc.bytes", 0.02),
            ("frames", 0.02),
            ("rtc.rate_mean_bps", 0.02),
            ("rtc.fps_mean", 0.02),
        ] {
            let (of_witnesses, of_crowd) = (mean(&all(&witnesses, key)), mean(&all(&crowd, key)));
            assert!(
                (of_witnesses - of_crowd).abs() <= margin * of_witnesses,
                "{key}: {of_witnesses}, {of_crowd}"
            );
        }
        // The stall's second, from the least drift to the most, and in one freeze or none.
        let rise = |clients: &[usize]| {
            let (most, least) =
                (all(clients, "rtc.video_delay_max_seconds"), all(clients, "rtc.video_delay_min_seconds"));
            mean(&most) - mean(&least)
        };
        let (of_witnesses, of_crowd) = (rise(&witnesses), rise(&crowd));
        assert!((of_witnesses - of_crowd).abs() < 0.05, "drift: {of_witnesses}, {of_crowd}");
        assert!((0.85..1.3).contains(&of_witnesses), "{of_witnesses}");
    });
}

#[test]
fn seconds_without_a_frame_stay_in_the_minimum() {
    // Longer than four seconds, so that three whole ones lie in it wherever a client's seconds begin.
    let air = on_air(&["stall at=1500ms for=4100ms"]);
    let run = play(&whep(&air), "clients: 2, duration: 8s");
    assert_eq!(run.well(), 2, "{:?}", run.failures());
    let rate = run.spread("rtc.frames_per_second");
    assert_eq!(rate["min"].as_f64(), Some(0.0), "{rate}");
    let silent = count(&run, "rtc.silent_seconds");
    assert!((2 * 3..=2 * 4).contains(&silent), "{silent} seconds of silence");
    for row in rows(&run) {
        let seconds: f64 = row["rtc.silent_seconds"].parse().unwrap();
        assert_eq!((&*row["rtc.fps_min"], seconds >= 3.0), ("0", true), "{row:?}");
    }
}

#[test]
fn one_refusal_of_many_is_named_and_the_others_play() {
    let air = on_air(&["reject phase=play viewer=3 code=404 words=not here"]);
    for (url, played, first) in [(whep(&air), 4, true), (oven(&air), 5, false)] {
        let run = play(&url, "clients: 5, duration: 3s");
        assert_eq!(run.well(), played, "{:?}", run.failures());
        if first {
            let (kind, clients, side, words) = run.failure();
            assert_eq!((&*kind, clients, &*side), ("stream_not_found", 1, "remote"));
            assert!(words.contains("404") && words.contains("not here"), "{words}");
        }
    }
    let air = on_air(&["unauthorized phase=play viewer=2"]);
    let run = play(&oven(&air), "clients: 3, duration: 2s");
    assert_eq!((run.well(), &*run.failure().0), (2, "unauthorized"));
}

#[test]
fn a_server_that_consents_and_sends_nothing_has_no_media() {
    let air = on_air(&[]);
    let url = whep(&air).replace("live/a", "live/nobody");
    let run = play(&url, "clients: 3, duration: 4s, timeout: 2s");
    let (kind, clients, side, words) = run.failure();
    assert_eq!((&*kind, clients, &*side), ("no_media", 3, "remote"));
    assert!(words.contains("accepted, but sent no media"), "{words}");
    assert_eq!(air.origin.rtc().connected, 3, "ICE and DTLS were fine");
}
