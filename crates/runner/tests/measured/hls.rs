//! HLS: weir plays what nginx's RTMP module cuts into segments, and what ffmpeg's muxer does with nginx as the web server.

use crate::support::{Publishing, Run, measure};
use std::collections::BTreeSet;
use weir_runner::ErrorKind::Invalid;
use weir_testing::{KilledOnDrop, Nginx, no_file_has, program, soon, undisturbed};

#[test]
fn viewers_of_nginx_load_each_segment_once_and_play_without_a_stall() {
    undisturbed(|| {
        let nginx = Nginx::start();
        let _publishing =
            Publishing::start(&nginx.url("a").replace("/live/", "/hls/"), "gop: 1s, bitrate: 1mbps");
        let url = nginx.playlist("a");
        soon("four segments are there", || nginx.segments("a") >= 4);
        let run = measure(&format!("warmup: 0s\nworkloads: [{{play: '{url}', clients: 5, duration: 12s}}]"));
        plays(&run, 5.0);
        // From three target durations before the end, what twelve seconds bring: no viewer is much behind or before another.
        let seconds = run.total("hls.loaded");
        assert!((5.0 * 10.0..=5.0 * 20.0).contains(&seconds), "{seconds}");
        assert!(run.total("hls.announced") >= seconds);
    });
}

/// A server that tells its viewers apart by cookies sees as many as there are, and each with its own.
#[test]
fn each_viewer_sends_its_own_cookie_back() {
    undisturbed(|| {
        let nginx = Nginx::start();
        let _publishing =
            Publishing::start(&nginx.url("a").replace("/live/", "/hls/"), "gop: 1s, bitrate: 1mbps");
        soon("four segments are there", || nginx.segments("a") >= 4);
        let run = measure(&format!(
            "warmup: 0s\nworkloads: [{{play: '{}', clients: 5, duration: 6s}}]",
            nginx.playlist_of_members("a")
        ));
        plays(&run, 5.0);
        let members = nginx.members();
        assert!(members.iter().all(|[.., status]| status == "200"), "{members:?}");
        let distinct = |of: fn(&[String; 3]) -> String| members.iter().map(of).collect::<BTreeSet<_>>().len();
        // Each keeps its connection, and has one cookie there.
        let counts = [
            distinct(|[port, ..]| port.clone()),
            distinct(|[_, cookie, _]| cookie.clone()),
            distinct(|[port, cookie, _]| format!("{port} {cookie}")),
        ];
        assert_eq!(counts, [5, 5, 5], "{members:?}");
        assert!(members.iter().all(|[_, cookie, _]| cookie.len() == 32), "{members:?}");
    });
}

#[test]
fn viewers_of_ffmpegs_muxer_play_ts_and_fragmented_mp4_from_slow_to_fast() {
    undisturbed(|| {
        let nginx = Nginx::start();
        // Pictures that are decoded in another order than they are shown, with and without sound; noise is what fills a rate.
        const REORDERED: &[&str] = &["-preset", "veryfast", "-bf", "2"];
        const AT_ONCE: &[&str] = &["-preset", "ultrafast"];
        const NOISE: &[&str] = &["-preset", "ultrafast", "-bf", "2", "-vf", "noise=alls=90:allf=t"];
        for (name, kind, rate, settings, has_sound) in [
            ("slow", "mpegts", "60k", AT_ONCE, true),
            ("fast", "mpegts", "8M", NOISE, false),
            ("reordered", "mpegts", "500k", REORDERED, true),
            ("mp4", "fmp4", "300k", REORDERED, true),
            ("mp4fast", "fmp4", "8M", NOISE, false),
        ] {
            let directory = nginx.hls().join(name);
            std::fs::create_dir(&directory).unwrap();
            let mut command = program("ffmpeg", "ffmpeg");
            command.args(["-v", "error", "-re", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25"]);
            if has_sound {
                command.args(["-f", "lavfi", "-i", "sine", "-c:a", "aac", "-b:a", "32k"]);
            }
            command.args(["-c:v", "libx264", "-b:v", rate, "-g", "25"]).args(settings).args(["-f", "hls"]);
            command.args(["-hls_time", "1", "-hls_list_size", "8", "-hls_segment_type", kind]);
            command.args(["-hls_flags", "delete_segments+temp_file"]).arg(directory.join("a.m3u8"));
            let _muxer = KilledOnDrop::start(&mut command);
            soon("five segments are there", || nginx.segments(&format!("{name}/a")) >= 5);
            let run = measure(&format!(
                "warmup: 0s\nworkloads: [{{play: '{}', clients: 3, duration: 6s}}]",
                nginx.playlist(&format!("{name}/a"))
            ));
            plays(&run, 3.0);
        }
    });
}

/// What a witness reads in encrypted segments is what its publisher wrote: the stamp of each frame, by which latency is known.
#[test]
fn segments_that_ffmpeg_encrypts_are_decrypted_by_witnesses() {
    const KEY: &[u8; 16] = b"0sixteen secrets";
    undisturbed(|| {
        let nginx = Nginx::start();
        let live = nginx.url("encrypted");
        let _publishing = Publishing::start(&live, "gop: 1s, bitrate: 300kbps");
        let directory = nginx.hls().join("encrypted");
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join("a.key"), KEY).unwrap();
        // What the playlist names, where ffmpeg finds it, and the vector: without one it is the number of the segment.
        for (name, vector) in [("with", "000102030405060708090a0b0c0d0e0f"), ("without", "")] {
            let information = directory.join(format!("{name}.info"));
            std::fs::write(&information, format!("a.key\n{}\n{vector}\n", directory.join("a.key").display()))
                .unwrap();
            let mut command = program("ffmpeg", "ffmpeg");
            command.args(["-v", "error", "-i", &live, "-c", "copy", "-f", "hls", "-hls_time", "1"]);
            command.args([
                "-hls_list_size",
                "8",
                "-hls_flags",
                "delete_segments+temp_file",
                "-hls_key_info_file",
            ]);
            command.arg(information).arg("-hls_segment_filename").arg(directory.join(format!("{name}%d.ts")));
            let _muxer = KilledOnDrop::start(command.arg(directory.join(format!("{name}.m3u8"))));
            soon("five segments are there", || nginx.segments(&format!("encrypted/{name}")) >= 5);
            let playlist = nginx.playlist(&format!("encrypted/{name}"));
            let run = measure(&format!(
                "warmup: 0s\nworkloads: [{{play: '{playlist}', clients: 3, duration: 6s}}]"
            ));
            plays(&run, 3.0);
            assert_eq!((run.total("hls.keys"), run.total("hls.undecrypted")), (3.0, 0.0), "{name}");
            assert_eq!(run.total("hls.decrypted"), run.total("hls.segments"), "{name}: all are witnesses");
            assert!(run.total("stamped") > 100.0, "{name}: {} frames had a stamp", run.total("stamped"));
            no_file_has(run.directory(), std::str::from_utf8(KEY).unwrap());
        }
        // A server that hands out another key than it encrypts with.
        std::fs::write(directory.join("a.key"), b"another secret!!").unwrap();
        let run = measure(&format!(
            "warmup: 0s\nworkloads: [{{play: '{}', clients: 1, duration: 3s}}]",
            nginx.playlist("encrypted/without")
        ));
        assert_eq!((run.total("hls.decrypted"), run.total("stamped")), (0.0, 0.0));
        assert!(run.total("hls.undecrypted") >= 2.0);
        assert!(
            run.summary["warnings"].to_string().contains("hls.undecrypted"),
            "{}",
            run.summary["warnings"]
        );
    });
}

/// A recording as ffmpeg writes it, with its sound in it and apart: viewers begin in its middle, and go to other places.
#[test]
fn viewers_of_a_recording_begin_in_its_middle_and_seek() {
    const APART: &[&str] =
        &["-var_stream_map", "v:0,agroup:sound a:0,agroup:sound", "-master_pl_name", "all.m3u8"];
    undisturbed(|| {
        let nginx = Nginx::start();
        for (name, more, playlist, variants) in [("whole", &[][..], "0", 0.0), ("apart", APART, "all", 3.0)] {
            let directory = nginx.hls().join(name);
            std::fs::create_dir(&directory).unwrap();
            let mut command = program("ffmpeg", "ffmpeg");
            command.args(["-v", "error", "-f", "lavfi", "-i", "testsrc2=size=160x90:rate=25:duration=60"]);
            command.args(["-f", "lavfi", "-i", "sine=duration=60", "-c:a", "aac", "-b:a", "32k"]);
            command.args([
                "-c:v",
                "libx264",
                "-preset",
                "ultrafast",
                "-b:v",
                "200k",
                "-g",
                "25",
                "-map",
                "0",
                "-map",
                "1",
            ]);
            command.args(["-f", "hls", "-hls_time", "2", "-hls_playlist_type", "vod"]).args(more);
            let file = if more.is_empty() { "0.m3u8" } else { "%v.m3u8" };
            assert!(command.arg(directory.join(file)).status().unwrap().success());
            let url = nginx.playlist(&format!("{name}/{playlist}"));
            let run = measure(&format!(
                "warmup: 0s\nworkloads: [{{play: '{url}', clients: 3, duration: 9s, start_at: '20s', seek: 'every:2s'}}]"
            ));
            assert_eq!(run.total("played"), 3.0, "{name}: {:#}", run.summary["verdict"]);
            let figures = ["stalls", "starved", "hls.stale", "hls.refused", "hls.not_found", "hls.skipped"];
            assert!(
                figures.iter().all(|figure| run.total(figure) == 0.0),
                "{name}: {:#}",
                run.summary["workloads"]
            );
            assert_eq!(run.total("hls.audio_apart"), variants, "{name}");
            // Each begins at once, and goes elsewhere every two seconds until it leaves.
            let seeks = run.total("hls.seeks");
            assert!((9.0..=12.0).contains(&seeks), "{name}: {seeks}");
            let shown = run.spread("hls.seek_time")["count"].as_f64().unwrap();
            assert!((seeks - 3.0..=seeks).contains(&shown), "{name}: {shown} of {seeks}");
            nothing_is_missing(&run);
        }
    });
}

/// What weir counts by version is what nginx was asked by: over TLS HTTP/2, on one connection a viewer, unless the other is asked for.
#[test]
fn over_tls_nginx_is_asked_by_http_2_and_by_http_1_1_where_that_is_asked_for() {
    undisturbed(|| {
        let nginx = Nginx::start();
        let _publishing =
            Publishing::start(&nginx.url("a").replace("/live/", "/hls/"), "gop: 1s, bitrate: 1mbps");
        soon("four segments are there", || nginx.segments("a") >= 4);
        let (url, certificate) = (nginx.secure_playlist("a"), nginx.certificate());
        for (version, protocol) in [("auto", "HTTP/2.0"), ("2", "HTTP/2.0"), ("1.1", "HTTP/1.1")] {
            let run = measure(&format!(
                "warmup: 0s\ncacert: '{certificate}'\nworkloads: [{{play: '{url}', http_version: '{version}', clients: 3, duration: 6s}}]"
            ));
            plays(&run, 3.0);
            let seen = nginx.take_versions();
            assert!(seen.iter().all(|[_, version, _]| version == protocol), "{seen:?}");
            let ports: BTreeSet<_> = seen.iter().map(|[port, ..]| port).collect();
            assert_eq!(ports.len(), 3, "{seen:?}");
            // Of what is under way when a viewer leaves, nginx may know nothing.
            let requests = run.total("hls.requests");
            assert!(
                (requests - 3.0..=requests).contains(&(seen.len() as f64)),
                "{} of {requests}",
                seen.len()
            );
            let by_http2 = if protocol == "HTTP/2.0" { requests } else { 0.0 };
            assert_eq!(run.total("hls.http2_requests"), by_http2, "{version}");
        }
        // A server that is asked by a version that it does not speak.
        let run = measure(&format!(
            "workloads: [{{play: '{}', clients: 1, duration: 2s, http_version: '2'}}]",
            nginx.playlist("a")
        ));
        let words = run.failure().3;
        assert!(words.contains("the server speaks HTTP/1.1 on this link, and not HTTP/2"), "{words}");
    });
}

/// What holds where all is well.
fn plays(run: &Run, clients: f64) {
    assert_eq!(run.total("played"), clients, "{:#}", run.summary["verdict"]);
    for figure in ["stalls", "starved", "hls.stale", "hls.refused", "hls.skipped", "hls.went_back"] {
        assert_eq!(run.total(figure), 0.0, "{figure}");
    }
    assert_eq!(run.total("hls.connections"), clients, "each viewer keeps its connection");
    assert!(run.total("hls.segments") >= 3.0 * clients && run.total("hls.reloads") >= 2.0 * clients);
    nothing_is_missing(run);
    // 98: weir was the limit, and the run says nothing of nginx.
    assert!([None, Some(Invalid)].contains(&run.missed), "{:?}", run.failures());
}

/// What witnesses see inside of segments that are well.
pub(crate) fn nothing_is_missing(run: &Run) {
    for figure in ["hls.lost_packets", "hls.fragment_gaps", "hls.time_jumps"] {
        assert_eq!(run.total(figure), 0.0, "{figure}");
    }
    let (frames, announced) = (run.total("frames"), run.total("frames_announced"));
    assert!(run.total("hls.inspected") > 0.0 && run.total("keyframes") > 0.0 && frames > 0.0);
    // Pictures of a segment may be in the next one, of which the last is not seen.
    let viewers = run.total("played");
    assert!((frames - announced).abs() <= 2.0 * viewers, "{frames} of {announced}");
}
