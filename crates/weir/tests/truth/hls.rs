//! HLS: weir plays what nginx's RTMP module cuts into segments, and what ffmpeg's muxer does with nginx as the web server.

use crate::support::{Kept, Nginx, Publishing, Run, measure, program, shared, soon, undisturbed};

#[test]
fn viewers_of_nginx_load_each_segment_once_and_play_without_a_stall() {
    let _machine = shared();
    undisturbed(|| {
        let nginx = Nginx::start();
        let _publishing = Publishing::start(
            &nginx.url("a").replace("/live/", "/hls/"),
            &["--gop", "1s", "--bitrate", "1mbps"],
        );
        let url = nginx.playlist("a");
        soon("four segments are there", || nginx.segments("a") >= 4);
        let run = measure(["play", &url, "-c", "5", "-d", "12s", "--warmup", "0s"]);
        plays(&run, 5.0);
        // From three target durations before the end, what twelve seconds bring: no viewer is much behind or before another.
        let seconds = run.total("hls.loaded");
        assert!((5.0 * 10.0..=5.0 * 20.0).contains(&seconds), "{seconds}");
        assert!(run.total("hls.announced") >= seconds);
    });
}

#[test]
fn viewers_of_ffmpegs_muxer_play_ts_and_fragmented_mp4_from_slow_to_fast() {
    let _machine = shared();
    undisturbed(|| {
        let nginx = Nginx::start();
        for (name, kind, rate) in
            [("slow", "mpegts", "60k"), ("fast", "mpegts", "2M"), ("mp4", "fmp4", "300k")]
        {
            let directory = nginx.hls().join(name);
            std::fs::create_dir(&directory).unwrap();
            let mut command = program("ffmpeg", "ffmpeg");
            command.args(["-v", "error", "-re", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25"]);
            command.args(["-c:v", "libx264", "-preset", "ultrafast", "-b:v", rate, "-g", "25", "-f", "hls"]);
            command.args(["-hls_time", "1", "-hls_list_size", "8", "-hls_segment_type", kind]);
            command.args(["-hls_flags", "delete_segments+temp_file"]).arg(directory.join("a.m3u8"));
            let _muxer = Kept::start(&mut command);
            soon("five segments are there", || nginx.segments(&format!("{name}/a")) >= 5);
            let run = measure([
                "play",
                &nginx.playlist(&format!("{name}/a")),
                "-c",
                "3",
                "-d",
                "6s",
                "--warmup",
                "0s",
            ]);
            plays(&run, 3.0);
        }
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
    // 98: weir was the limit, and the run says nothing of nginx.
    assert!([0, 98].contains(&run.code), "{}", run.err);
}
