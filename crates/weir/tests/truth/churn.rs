//! Clients that follow each other in their places.

use crate::support::{KilledOnDrop, Run, measure, play, shared, weir};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// `weir origin` in a process of its own, and its URLs by scheme.
pub(crate) struct Server {
    pub(crate) process: KilledOnDrop,
    urls: BTreeMap<String, String>,
}

impl Server {
    pub(crate) fn start(arguments: &[&str], schemes: usize) -> Self {
        let mut command = weir();
        command.arg("origin").args(arguments).stdout(Stdio::piped());
        let mut process = KilledOnDrop::start(&mut command);
        let lines = BufReader::new(process.0.stdout.take().unwrap()).lines();
        let urls = lines.take(schemes).map(|line| {
            let line = line.unwrap();
            let url = line.strip_prefix("listening on ").unwrap();
            (url.split_once("://").unwrap().0.to_owned(), url.to_owned())
        });
        let urls = urls.collect();
        Self { process, urls }
    }

    pub(crate) fn url(&self, scheme: &str, path: &str) -> String {
        let url = self.urls.get(scheme).unwrap_or_else(|| panic!("{scheme} is not in {:?}", self.urls));
        format!("{url}{path}")
    }
}

/// A publisher that is there as long as the test.
pub(crate) fn publish(url: &str, flags: &[&str]) -> KilledOnDrop {
    let mut command = weir();
    command.args(["publish", url, "-d", "100s", "-q", "--no-tui", "-o"]);
    let folder = tempfile::tempdir().unwrap().keep();
    command.arg(folder.join("run")).args(flags).stdout(Stdio::null()).stderr(Stdio::null());
    KilledOnDrop::start(&mut command)
}

/// What holds of every run whose clients follow each other and of which nothing fails.
pub(crate) fn check(run: &Run, places: u64) {
    assert!(run.failures().is_empty(), "a planned end is no failure: {:?}", run.failures());
    check_turnover(run, places);
}

fn check_turnover(run: &Run, places: u64) {
    let turnover = &run.workloads()[0]["turnover"];
    let number = |key: &str| turnover[key].as_u64().unwrap();
    assert!(run.slots("planned") >= 3 * places && number("started") > places, "others came: {turnover:#}");
    // On a busy machine a life may be over before it began.
    assert_eq!(
        number("started") + run.slots("missed"),
        run.slots("planned"),
        "every planned start ends in one way"
    );
    assert_eq!(run.well() + run.slots("failed"), number("started"));
    let never_played = number("started") - run.total("played") as u64;
    assert!(number("exits_before_start") <= never_played, "{turnover:#}");
    assert_eq!(run.total("exits_before_start") as u64, number("exits_before_start"));
}

#[test]
fn clients_of_every_protocol_follow_each_other() {
    let _machine = shared();
    // Where several workers serve, one of them may hear the next publisher of a stream before another sees that its last one has
    // left, and refuses it then: the name is taken.
    let listen = "--rtmp :0 --rtc :0 --http :0 --http-flv :0 --mqtt :0 --merge 0s --workers 1";
    let server = Server::start(&listen.split(' ').collect::<Vec<_>>(), 8);
    let live = server.url("rtmp", "/live/a");
    let _publisher = publish(&live, &["--gop", "200ms"]);
    let topic = server.url("mqtt", "/sensors/a");
    let _messages = publish(&topic, &["--rate", "50/s"]);
    // Beside each other: each has clients of its own.
    std::thread::scope(|scope| {
        for (scheme, path) in [
            ("rtmp", "/live/a"),
            ("http+flv", "/live/a.flv"),
            ("whep+http", "/live/a"),
            ("ws", "/live/a"),
            ("http", "/1.ts"),
            ("mqtt", "/sensors/#"),
        ] {
            let url = server.url(scheme, path);
            scope.spawn(move || {
                check(&play(&url, "-c 4 --arrival 20/s --life exp:700ms -d 6s --drain 2s"), 4);
            });
        }
    });
    std::thread::scope(|scope| {
        for (scheme, path, flags) in [
            ("rtmp", "/live/s{i}", "--streams 4"),
            ("whip+http", "/whip/live/w{i}", "--streams 4"),
            ("mqtt", "/t/{client}", "-c 4 --rate 50/s --qos 1"),
        ] {
            let url = server.url(scheme, path);
            let flags = format!("{flags} --life 1s -d 6s --drain 2s");
            scope.spawn(move || {
                let run = measure(["publish", &url].into_iter().chain(flags.split(' ')));
                // Over WHIP a goodbye has a link of its own (RFC 9725 section 4.2), and the next publisher of the stream may overtake it.
                let is_overtaken = scheme == "whip+http"
                    && run.failures().keys().all(|kind| kind == "rejected")
                    && (run.slots("failed") == 0 || run.failure().3.contains("is being published"));
                assert!(is_overtaken || run.failures().is_empty(), "{:?}", run.failures());
                check_turnover(&run, 4);
            });
        }
    });
}
