//! What other people's tests call, against weir's own origin.

use std::time::{Duration, Instant};
use weir_engine::summary::Outcome;
use weir_origin::{ANY_PORT, Origin, OriginConfig, RTMP};
use weir_runner::{Capacity, ErrorKind, Run, compare};

fn origin() -> (Origin, String) {
    let origin = Origin::start(&OriginConfig::default().listening(&RTMP, ANY_PORT)).unwrap();
    let url = format!("rtmp://{}/live/a", origin.address("rtmp").unwrap());
    (origin, url)
}

/// A publisher and, once it is on air, three viewers, for `seconds`.
fn stream(url: &str, seconds: u64) -> Run {
    Run::publish(url)
        .option("bitrate", "500kbps")
        .hold(Duration::from_secs(seconds + 1))
        .and_play(url)
        .clients(3)
        .delay(Duration::from_secs(1))
        .hold(Duration::from_secs(seconds))
        .warmup(Duration::from_millis(500))
}

#[test]
fn a_run_says_what_viewers_had_and_a_failed_threshold_is_no_error() {
    let (_origin, url) = origin();
    let run =
        stream(&url, 3).threshold("played.ratio > 50%").unwrap().threshold("startup.p99 < 1us").unwrap();
    let summary = run.run().unwrap();
    assert_eq!(summary.outcome, Outcome::Completed);
    let asked = |text: &str| summary.thresholds.iter().find(|it| it.expression.starts_with(text)).unwrap();
    assert!(asked("played.ratio").passed && !asked("startup.p99 < 1us").passed);
    assert!(!summary.has_passed());
    let panic = std::panic::catch_unwind(|| summary.assert_passed()).unwrap_err();
    assert!(panic.downcast_ref::<String>().unwrap().contains("startup.p99 < 1us"), "it names what failed");
}

#[test]
fn what_is_wrong_is_an_error_of_its_kind() {
    let kind = |run: Run| run.run().unwrap_err().kind();
    assert_eq!(Run::play("rtmp://h/a/b").threshold("startup").unwrap_err().kind(), ErrorKind::Usage);
    assert_eq!(Run::yaml("{workload: []}").unwrap_err().kind(), ErrorKind::Scenario);
    assert_eq!(kind(Run::play("gopher://127.0.0.1/a")), ErrorKind::Scenario);
    assert_eq!(kind(Run::play("rtmp://127.0.0.1/a/b").option("qos", "1")), ErrorKind::Scenario);
    // Nothing listens there: the run says so, and has not passed.
    let gone = Run::play("rtmp://127.0.0.1:9/a/b").hold(Duration::from_secs(1)).run().unwrap();
    assert!(gone.is_unanswered() && !gone.has_passed());
}

#[test]
fn a_run_in_a_runtime_ends_when_it_is_told_to_and_two_take_turns() {
    let (_origin, url) = origin();
    let endless = stream(&url, 3_600);
    let (stop, began) = (endless.stop_handle(), Instant::now());
    let other = stream(&url, 2);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(|| runtime.block_on(async { endless.run().unwrap() }));
        let second = scope.spawn(|| other.run().unwrap());
        std::thread::sleep(Duration::from_secs(4));
        stop.stop();
        (first.join().unwrap(), second.join().unwrap())
    });
    assert!(began.elapsed() < Duration::from_secs(1_800));
    assert_eq!(first.outcome, Outcome::Interrupted);
    assert_eq!(second.outcome, Outcome::Completed);
    let span = |it: &weir_runner::Summary| {
        let begin = it.run.started_at_seconds;
        (begin, begin + it.run.duration_seconds)
    };
    let (first, second) = (span(&first), span(&second));
    assert!(first.1 <= second.0 + 0.1 || second.1 <= first.0 + 0.1, "{first:?} {second:?}");
}

#[test]
fn runs_that_are_kept_can_be_compared_and_others_leave_nothing() {
    let (_origin, url) = origin();
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
    let believed = [&a, &b].map(|place| {
        let summary = stream(&url, 2).directory(place).run().unwrap();
        assert!(place.join("summary.json").exists());
        summary.can_be_believed()
    });
    match compare(&a, &b) {
        Ok(comparison) => assert_eq!(comparison.variants.len(), 2),
        // A run that cannot be believed is not like one that can.
        Err(error) => assert!(error.kind() == ErrorKind::Invalid && believed.contains(&false), "{error}"),
    }
    let again = stream(&url, 2).directory(&a).run().unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Usage, "{again}");
}

#[test]
fn a_search_says_whether_a_load_is_carried() {
    let (_origin, url) = origin();
    let on_air = Run::publish(&url).option("bitrate", "235kbps").option("gop", "500ms").hold(Duration::ZERO);
    let capacity = Capacity::of(on_air.and_play(&url).delay(Duration::from_secs(1)));
    let search = capacity.at_least(3).slice(Duration::from_secs(1)).budget(Duration::from_secs(60));
    let found = (0..3).map(|_| search.clone().find().unwrap()).find(|it| it.carries_at_least().is_some());
    // A machine on which nothing can be judged says nothing of the server.
    assert!(found.is_none_or(|it| it.carries_at_least() == Some(true)));
}
