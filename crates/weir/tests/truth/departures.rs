//! Publishers and servers that die in the middle, as processes do.

use crate::support::webrtc::on_air_by_whip;
use crate::support::{Air, Publishing, measure, origin_process, report, shared, soon, start_measuring, weir};

#[test]
fn a_server_that_dies_ends_the_run_with_whole_artefacts() {
    let _machine = shared();
    let (mut server, address) = origin_process(&["--merge", "0s"]);
    let url = format!("{address}/live/a");
    let _publishing = Publishing::start(&url, &["--gop", "1s"]);
    let mut command = weir();
    let watch = format!("pid={}", server.pid());
    command.args(["play", &url, "-c", "4", "-d", "60s", "--warmup", "0s", "--watch", &watch]);
    let watching = start_measuring(&mut command);
    soon("two seconds are written", || {
        std::fs::read_to_string(watching.directory().join("intervals.ndjson"))
            .is_ok_and(|text| text.lines().count() >= 2)
    });
    server.kill();
    let run = watching.finish();
    assert_eq!((run.code, &run.summary["outcome"]), (97, &"target_died".into()));
    assert!(run.total("played") >= 1.0);
    assert_eq!(run.slots("failed"), 4, "the server's death is booked on the server");
    for name in
        ["run.json", "intervals.ndjson", "observe.ndjson", "summary.json", "report.html", "report.txt"]
    {
        let bytes =
            std::fs::metadata(run.directory().join(name)).unwrap_or_else(|e| panic!("{name}: {e}")).len();
        assert!(bytes > 0, "{name} is empty");
    }
    assert_eq!(report(run.directory()).code, 97);
}

#[test]
fn a_stream_by_whip_ends_with_its_publisher_and_its_name_is_free_then() {
    let _machine = shared();
    let mut air = on_air_by_whip(&[]);
    let url = air.url.clone();
    let run = measure(["publish", &url, "-d", "2s", "--warmup", "0s", "--drain", "200ms"]);
    let (kind, clients, side, words) = run.failure();
    assert_eq!((&*kind, clients, &*side), ("rejected", 1, "remote"));
    assert!(words.contains("409") && words.contains("live/a is being published"), "{words}");
    let stream = |air: &Air| air.origin.counts().stream("live/a").unwrap().clone();
    assert_eq!((stream(&air).publications, stream(&air).live), (1, true));
    // Without a goodbye nothing but silence tells; so far the name is taken.
    air.publishing.kill();
    let run = measure(["publish", &url, "-d", "2s", "--warmup", "0s", "--drain", "200ms"]);
    assert_eq!(&*run.failure().0, "rejected");
    soon("the origin gives up a publisher that is gone", || !stream(&air).live);
    let run = measure(["publish", &url, "-d", "2s", "--warmup", "0s", "--drain", "200ms"]);
    assert_eq!(run.well(), 1, "{:?}", run.failures());
    soon("with a goodbye it is over at once", || !stream(&air).live);
    assert_eq!(stream(&air).publications, 2);
}
