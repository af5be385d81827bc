//! weir publishes to a real nginx-rtmp and plays from it; ffprobe and ffmpeg judge what was published.

mod bench;

use bench::{Bench, Nginx};
use std::process::{Command, Stdio};
use std::time::Duration;
use weir_clients::{Ending, PlannedStart, PlayOptions, PublishOptions, RtmpOptions, Timeouts, Turn, rtmp};
use weir_metrics::common::{
    FAILED, FRAMES, KEYFRAMES, LATENCY, LOST, MEDIA, ON_TIME, PLAYED, PLAYING, SEND_LAG, SOURCE, SOURCE_TIME,
    STAMPED, STARTUP, UNITS,
};
use weir_metrics::{Failure, Moment};
use weir_shard::clock;
use weir_testing::undisturbed;

#[test]
fn twenty_players_play_what_one_publisher_sends_through_nginx() {
    undisturbed(|| {
        let nginx = Nginx::start("");
        let url = [nginx.url("a")];
        let publisher = rtmp::publish(&url, &PublishOptions::default(), &RtmpOptions::default()).unwrap();
        let players = rtmp::play(
            &url,
            &PlayOptions { witness_every: 0, ..PlayOptions::default() },
            &RtmpOptions::default(),
        )
        .unwrap();
        let mut bench = Bench::new(vec![&publisher, &players]);
        let workload = |number| PlannedStart {
            client: 0,
            workload: number,
            cell: number,
            at: Moment::default(),
            turn: Turn::default(),
        };

        bench.start(0, 0..1);
        bench.run_until(Duration::from_secs(60), "publishing", |shard| {
            shard.of(workload(0)).gauge(PLAYING) == 1
        });
        bench.start(1, 0..20);
        bench.run_until(Duration::from_secs(60), "all play", |shard| {
            shard.of(workload(1)).gauge(PLAYING) == 20
        });
        // From here on for ten seconds, counted alone.
        let _ = bench.shard.world.take_figures();
        bench.run(Duration::from_secs(10));
        bench.shard.sweep(clock::now());
        let window = bench.shard.world.take_figures();
        let (_, ended, mut shard) = bench.stop();

        let (sent, received) = (&window[0], &window[1]);
        // 25 frames a second, a keyframe every 2 s; a read may stand a frame before or behind.
        assert!((248..=252).contains(&sent.counter(FRAMES)), "{}", sent.counter(FRAMES));
        let each = received.counter(FRAMES) as f64 / 20.0;
        assert!(
            (each - sent.counter(FRAMES) as f64).abs() <= 2.0,
            "{each} frames of {}",
            sent.counter(FRAMES)
        );
        let each = received.counter(UNITS) as f64 / 20.0;
        assert!(
            (each - sent.counter(UNITS) as f64).abs() <= 5.0,
            "{each} messages of {}",
            sent.counter(UNITS)
        );
        let ratio = received.counter(MEDIA) as f64 / 20.0 / sent.counter(MEDIA) as f64;
        assert!((0.97..=1.03).contains(&ratio), "{ratio} of the media bytes");
        assert!((80..=120).contains(&received.counter(KEYFRAMES)), "{}", received.counter(KEYFRAMES));
        let source_rate = received.counter(SOURCE) as f64 * 8e6 / received.counter(SOURCE_TIME) as f64;
        assert!((0.97e6..=1.03e6).contains(&source_rate), "the source's rate is {source_rate} bit/s");
        // The four witnesses read the stamps of all frames.
        assert!(received.counter(STAMPED) >= 4 * 248, "{}", received.counter(STAMPED));
        assert_eq!(received.counter(LOST), 0);
        assert!(received.signed(LATENCY).value_at_quantile(0.5) < 20_000);
        assert!(sent.spread(SEND_LAG).value_at_quantile(0.5) < 5_000);
        assert_eq!(received.counter(FAILED) + sent.counter(FAILED), 0, "{:?}", shard.take_failures());
        assert_eq!(ended.len(), 21);
        assert!(ended.iter().all(|(_, ending)| *ending == Ending::OnTime), "{ended:?}");
    });
}

#[test]
fn what_goes_wrong_with_nginx_has_its_name_and_nginx_words() {
    let nginx = Nginx::start("publish_notify on;");
    let timeouts = Timeouts { media: Duration::from_secs(2), ..PlayOptions::default().timeouts };
    let options = PlayOptions { timeouts, end_grace: Duration::from_millis(500), ..PlayOptions::default() };
    let url = |stream: &str| [nginx.url(stream)];
    let publisher = rtmp::publish(&url("c"), &PublishOptions::default(), &RtmpOptions::default()).unwrap();
    let viewers = rtmp::play(&url("c"), &options, &RtmpOptions::default()).unwrap();
    let strangers = rtmp::play(&url("no-such-stream"), &options, &RtmpOptions::default()).unwrap();
    let lost =
        rtmp::play(&[nginx.url("c").replace("/live/", "/no-such-app/")], &options, &RtmpOptions::default())
            .unwrap();
    let mut bench = Bench::new(vec![&publisher, &viewers, &strangers, &lost]);
    let planned = |workload| PlannedStart {
        client: 0,
        workload,
        cell: workload,
        at: Moment::default(),
        turn: Turn::default(),
    };

    let first = bench.start(0, 0..1);
    bench.run_until(Duration::from_secs(60), "publishing", |shard| shard.of(planned(0)).gauge(PLAYING) == 1);
    // Another publisher under the same name; viewers of the stream, of no stream, of no application.
    bench.start(0, 1..2);
    bench.start(1, 0..6);
    bench.start(2, 0..3);
    bench.start(3, 0..2);
    bench.run_until(Duration::from_secs(60), "all play", |shard| shard.of(planned(1)).gauge(PLAYING) == 6);
    bench.shard.stop(first[0]);
    bench.run(Duration::from_secs(3));
    let (_, ended, mut shard) = bench.stop();

    let failures = |workload: u16| {
        let of_workload = ended.iter().filter(|(planned, _)| planned.workload == workload);
        let mut endings: Vec<_> = of_workload.map(|(planned, ending)| (planned.client, *ending)).collect();
        endings.sort_by_key(|(client, _)| *client);
        endings.into_iter().map(|(_, ending)| ending).collect::<Vec<_>>()
    };
    assert_eq!(failures(0), [Ending::OnTime, Ending::Failed(Failure::Rejected)]);
    assert_eq!(failures(1), [Ending::Failed(Failure::StreamEnded); 6]);
    assert_eq!(failures(2), [Ending::Failed(Failure::NoMedia); 3]);
    // nginx-rtmp closes the link on an application that it does not know.
    assert_eq!(failures(3), [Ending::Failed(Failure::ClosedByPeer); 2]);
    let remarks = shard.take_failures();
    let words = |failure| &remarks.iter().find(|remark| remark.failure == failure).unwrap().words;
    assert_eq!(words(Failure::Rejected), "NetStream.Publish.BadName: Already publishing");
    assert!(words(Failure::StreamEnded).contains("NetStream.Play.UnpublishNotify"), "{remarks:?}");
}

#[test]
fn ffmpeg_decodes_what_is_published_without_a_warning() {
    let nginx = Nginx::start("");
    let url = [nginx.url("b")];
    let publisher = rtmp::publish(&url, &PublishOptions::default(), &RtmpOptions::default()).unwrap();
    let mut bench = Bench::new(vec![&publisher]);
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
