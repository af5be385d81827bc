//! The page of `--live` in a browser, and its listener beside those who mean it no good.

use crate::interruptions::seconds_written;
use crate::support::{
    BrowserTab, CHECKS_OF_THE_MACHINE, Measuring, air, config, shared, soon, start_measuring, weir,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Seconds of the run that the page shows; 0 while it shows none.
const SECONDS: &str =
    "Number((document.getElementById('live').textContent.match(/running for ([0-9]+)\\ss/) || [0, 0])[1])";
/// The names of the page's parts.
const PARTS: &str = "[...document.getElementById('live').children].map((it) => it.id)";
/// What stands above the page.
const STATE: &str = "document.getElementById('live-state').textContent";

/// Where a run that has begun shows its page.
fn page(measuring: &Measuring) -> String {
    let address = || measuring.said().lines().find_map(|line| Some(line.strip_prefix("live: ")?.to_owned()));
    soon("weir says where its page is", || address().is_some());
    address().unwrap()
}

#[test]
fn the_page_grows_in_a_browser_is_whole_after_a_reload_and_stays_when_the_run_is_over() {
    let _machine = shared();
    let air = air(&config(&[]));
    let mut command = weir();
    command.args(["play", &air.url, "-c", "3", "-d", "300s", "--warmup", "0s", "--drain", "200ms", "--live"]);
    let measuring = start_measuring(command.args(["--accept", CHECKS_OF_THE_MACHINE]));
    let url = page(&measuring);
    let [mut wide, mut narrow] = [1_280, 400].map(|width| BrowserTab::open(&url, width));
    let is_above = |seconds: u64| move |value: &Value| value.as_u64() > Some(seconds);
    let first = wide.shows("the first seconds", SECONDS, is_above(1)).as_u64().unwrap();
    // What somebody has opened stays open when its part is sent again.
    wide.evaluate("document.querySelector('#live details').open = true");
    let later = wide.shows("two seconds more", SECONDS, is_above(first + 1)).as_u64().unwrap();
    assert_eq!(wide.evaluate("document.querySelector('#live details').open"), true);
    let parts = wide.evaluate(PARTS);
    assert!(
        parts.as_array().unwrap().len() > 5
            && wide.evaluate("document.querySelectorAll('#live svg').length") != 0
    );
    wide.reload();
    wide.shows("all of it again", SECONDS, is_above(later - 1));
    assert_eq!(wide.evaluate(PARTS), parts);
    narrow.shows("the same on a telephone", SECONDS, is_above(1));
    let fits = "document.documentElement.scrollWidth <= window.innerWidth";
    assert_eq!(narrow.evaluate(fits), true, "it is not wider than its screen");
    measuring.process.interrupt();
    let has_ended = |value: &Value| value.as_str().unwrap().starts_with("the run was interrupted");
    for tab in [&mut wide, &mut narrow] {
        tab.shows("the end", STATE, has_ended);
        assert!(tab.evaluate(PARTS).as_array().unwrap().len() > 5, "the page stays");
        assert_eq!(tab.troubles(), [] as [Value; 0]);
    }
    let run = measuring.finish();
    // The report's figures are the page's last ones.
    let planned = format!("{} planned = {} on time", run.slots("planned"), run.slots("on_time"));
    let text = wide.evaluate("document.getElementById('live').textContent");
    let text = text.as_str().unwrap().replace('\u{a0}', " ");
    assert!(text.contains(&planned), "{planned} is not in {text}");
}

#[test]
fn a_script_that_got_into_the_page_would_not_run_and_could_not_ask_others() {
    let _machine = shared();
    let air = air(&config(&[]));
    let mut command = weir();
    let measuring = start_measuring(command.args(["play", &air.url, "-c", "1", "-d", "300s", "--live"]));
    let mut tab = BrowserTab::open(&page(&measuring), 1_280);
    tab.shows("the page", "document.getElementById('live-state') !== null", |value| *value == true);
    let foreign = "const script = document.createElement('script'); script.textContent = 'window.foreign = 1'; \
                   document.body.append(script); window.foreign === undefined";
    assert_eq!(tab.evaluate(foreign), true);
    let elsewhere = format!("http://{}/", air.origin.address("rtmp").unwrap());
    let asked = format!("fetch('{elsewhere}').then(() => 'asked', () => 'refused')");
    assert_eq!(tab.evaluate(&asked), "refused");
    let refused =
        tab.troubles().iter().filter(|it| it.to_string().contains("Content Security Policy")).count();
    assert!(refused >= 2, "the policy refuses both: {:#?}", tab.troubles());
    measuring.process.interrupt();
    measuring.finish();
}

#[test]
fn a_thousand_slow_and_hostile_peers_stop_neither_the_run_nor_who_collects_its_metrics() {
    let _machine = shared();
    let air = air(&config(&[]));
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    setrlimit(Resource::Nofile, raised).unwrap();
    let mut command = weir();
    command.args(["play", &air.url, "-c", "5", "-d", "300s", "--warmup", "0s", "--drain", "200ms", "--live"]);
    let measuring = start_measuring(command.args(["--accept", CHECKS_OF_THE_MACHINE]));
    let page = page(&measuring);
    let (address, path) = page.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let endless = format!("GET /metrics HTTP/1.1\r\nX: {}", "x".repeat(100_000));
    let deaf = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n").repeat(50);
    let tab = format!("GET /{path}events HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let requests = [
        "",
        "GET /met",
        &endless,
        "\x16\x03\x01\0\0",
        &deaf,
        &tab,
        "POST / HTTP/1.1\r\nContent-Length: 9999999\r\n\r\n",
    ];
    let mut hostile = Vec::new();
    for (number, request) in requests.iter().cycle().take(1_000).enumerate() {
        let mut link = TcpStream::connect(address).unwrap();
        // It may have been refused already.
        let _ = link.write_all(request.as_bytes());
        hostile.push(link);
        if number % 100 == 99 {
            collect(&mut TcpStream::connect(address).unwrap());
        }
    }
    soon("three seconds are written", || seconds_written(&measuring.directory()) >= 3);
    measuring.process.interrupt();
    let run = measuring.finish();
    assert_eq!((run.code, run.total("played"), run.slots("on_time")), (105, 5.0, 5), "{}", run.err);
    drop(hostile);
}

/// Asks for metrics, over a link that could be kept.
fn collect(link: &mut TcpStream) {
    link.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let host = link.peer_addr().unwrap();
    write!(link, "GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut answer = BufReader::new(link);
    let (mut line, mut length) = (String::new(), 0);
    while line != "\r\n" {
        line.clear();
        assert_ne!(answer.read_line(&mut line).unwrap(), 0, "the link ended before its answer");
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    answer.read_exact(&mut body).unwrap();
    assert!(String::from_utf8(body).unwrap().contains("\nweir_runs_total "));
}
