//! weir publishes to a real nginx-rtmp and plays from it; ffprobe and ffmpeg judge what was published.

mod bench;

use bench::{Bench, Nginx};
use std::process::{Command, Stdio};
use std::time::Duration;
use weir_clients::{Ending, PlayOptions, PublishOptions, play, publish};
use weir_metrics::common::{
    FAILED, FRAMES, KEYFRAMES, LATENCY, LOST, MEDIA, ON_TIME, PLAYED, PLAYING, SEND_LAG, SOURCE, SOURCE_TIME,
    STAMPED, STARTUP, UNITS,
};

#[test]
fn twenty_players_play_what_one_publisher_sends_through_nginx() {
    let nginx = Nginx::start("");
    let url = [nginx.url("a")];
    let publisher = publish(&url, &PublishOptions::default()).unwrap();
    let players = play(&url, &PlayOptions { witness_every: 0, ..PlayOptions::default() }).unwrap();
    let mut bench = Bench::new(vec![&*publisher, &*players]);
    let workload = |number| weir_clients::Slot { client: 0, workload: number, planned: Default::default() };

    bench.start(0, 0..1);
    bench
        .run_until(Duration::from_secs(5), "publishing", |ledger| ledger.of(workload(0)).gauge(PLAYING) == 1);
    bench.start(1, 0..20);
    bench.run_until(Duration::from_secs(6), "all play", |ledger| ledger.of(workload(1)).gauge(PLAYING) == 20);
    // From here on for ten seconds, counted alone.
    let _ = bench.shard.world.take_figures();
    bench.run(Duration::from_secs(10));
    bench.shard.sweep();
    let window = bench.shard.world.take_figures();
    let (_, ended, mut ledger) = bench.stop();

    let (sent, received) = (&window[0], &window[1]);
    // 25 frames a second, a keyframe every 2 s; a read may stand a frame before or behind.
    assert!((248..=252).contains(&sent.counter(FRAMES)), "{}", sent.counter(FRAMES));
    let each = received.counter(FRAMES) as f64 / 20.0;
    assert!((each - sent.counter(FRAMES) as f64).abs() <= 2.0, "{each} frames of {}", sent.counter(FRAMES));
    let each = received.counter(UNITS) as f64 / 20.0;
    assert!((each - sent.counter(UNITS) as f64).abs() <= 5.0, "{each} messages of {}", sent.counter(UNITS));
    let ratio = received.counter(MEDIA) as f64 / 20.0 / sent.counter(MEDIA) as f64;
    assert!((0.97..=1.03).contains(&ratio), "{ratio} of the media bytes");
    assert!((80..=120).contains(&received.counter(KEYFRAMES)), "{}", received.counter(KEYFRAMES));
    let source_rate = received.counter(SOURCE) as f64 * 8e6 / received.counter(SOURCE_TIME) as f64;
    assert!((0.97e6..=1.03e6).contains(&source_rate), "the source's rate is {source_rate} bit/s");
    // The four witnesses read the stamps of all frames.
    assert!(received.counter(STAMPED) >= 4 * 248, "{}", received.counter(STAMPED));
    assert_eq!(received.counter(LOST), 0);
    assert!(received.spread(LATENCY).value_at_quantile(0.5) < 20_000);
    assert!(sent.spread(SEND_LAG).value_at_quantile(0.5) < 5_000);
    assert_eq!(received.counter(FAILED) + sent.counter(FAILED), 0, "{:?}", ledger.take_remarks());
    assert_eq!(ended.len(), 21);
    assert!(ended.iter().all(|(_, ending)| *ending == Ending::OnTime), "{ended:?}");
}

#[test]
fn ffmpeg_decodes_what_is_published_without_a_warning() {
    let nginx = Nginx::start("");
    let url = [nginx.url("b")];
    let publisher = publish(&url, &PublishOptions::default()).unwrap();
    let mut bench = Bench::new(vec![&*publisher]);
    bench.start(0, 0..1);
    bench.run(Duration::from_millis(500));

    let run = |program: &str, arguments: &[&str]| {
        Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|_| panic!("{program} is missing; apt-get install ffmpeg"))
    };
    let entries = "stream=codec_name,profile,width,height,r_frame_rate,sample_rate,channels";
    let mut probe = run("ffprobe", &["-v", "warning", "-show_entries", entries, "-of", "compact", &url[0]]);
    let mut decode = run("ffmpeg", &["-v", "warning", "-i", &url[0], "-t", "4", "-f", "null", "-"]);
    let mut done = false;
    for _ in 0..300 {
        bench.run(Duration::from_millis(50));
        done = probe.try_wait().unwrap().is_some() && decode.try_wait().unwrap().is_some();
        if done {
            break;
        }
    }
    assert!(done, "ffprobe or ffmpeg does not end");
    let (probe, decode) = (probe.wait_with_output().unwrap(), decode.wait_with_output().unwrap());
    let said = String::from_utf8_lossy(&probe.stdout);
    assert_eq!(String::from_utf8_lossy(&probe.stderr), "", "ffprobe warns");
    assert_eq!(String::from_utf8_lossy(&decode.stderr), "", "ffmpeg warns");
    assert!(probe.status.success() && decode.status.success());
    for words in
        ["codec_name=h264", "width=640|height=360", "r_frame_rate=25/1", "codec_name=aac", "channels=2"]
    {
        assert!(said.contains(words), "{words} is not in {said}");
    }
    let (figures, _, _) = bench.stop();
    assert_eq!((figures[0].counter(PLAYED), figures[0].counter(ON_TIME)), (1, 1));
    assert_eq!(figures[0].spread(STARTUP).len(), 1);
}
