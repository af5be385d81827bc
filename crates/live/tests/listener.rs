//! The listener as its peers find it: pages, tabs and scrapers, honest, slow and hostile ones.

use std::io::{BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_live::{Listener, Look, Part};

/// On a machine that has other things to do.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

fn start() -> (Listener, SocketAddr, String) {
    let look = Look { title: "weir <live>", style: "p {}", script: "" };
    let listener = Listener::start("127.0.0.1:0".parse().unwrap(), look, Arc::default()).unwrap();
    let page = listener.page();
    let (host, path) = page.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let (address, path) = (host.parse().unwrap(), format!("/{path}"));
    (listener, address, path)
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream
}

/// A whole answer.
fn ask(address: SocketAddr, path: &str, fields: &str) -> String {
    let host = if fields.contains("Host:") { String::new() } else { format!("Host: {address}\r\n") };
    say(address, &format!("GET {path} HTTP/1.1\r\nConnection: close\r\n{host}{fields}\r\n"))
}

/// A whole answer to this request.
fn say(address: SocketAddr, request: &str) -> String {
    let mut stream = connect(address);
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

fn body(html: &str) -> Vec<Part> {
    vec![Part { id: "a".to_owned(), html: html.to_owned() }]
}

/// A tab, which has been read up to its greeting.
fn tab(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = connect(address);
    write!(stream, "GET {path}events HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    read_to(&mut stream, "retry: 1000\n\n");
    stream
}

/// What comes up to and with these words.
fn read_to(stream: &mut impl Read, words: &str) -> String {
    let (mut text, mut byte) = (Vec::new(), [0]);
    while !text.ends_with(words.as_bytes()) {
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "it ended after {:?}", String::from_utf8_lossy(&text));
        text.push(byte[0]);
    }
    String::from_utf8(text).unwrap()
}

fn soon(what: &str, mut is: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < TEST_TIMEOUT, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_page_is_behind_its_token_and_metrics_are_not() {
    let (_listener, address, path) = start();
    let page = ask(address, &path, "");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    assert!(page.contains("<title>weir live</title>") && page.contains("new EventSource"), "{page}");
    let policy = page.lines().find(|line| line.starts_with("Content-Security-Policy: ")).unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("script-src 'sha256-"), "{policy}");
    assert!(!page.to_ascii_lowercase().contains("access-control"), "{page}");
    for wrong in ["/", "/index.html", "/0000/", "/0000/events", &format!("{path}other")] {
        let answer = ask(address, wrong, "");
        assert!(answer.starts_with("HTTP/1.1 404 "), "{wrong}: {answer}");
        assert!(!answer.contains(path.trim_matches('/')), "the token is given away: {answer}");
    }
    assert!(ask(address, "/healthz", "").ends_with("\r\n\r\nok\n"));
    assert!(ask(address, "/metrics", "").contains("\nweir_runs_total 0\n"));
    let open = ask(address, "/metrics", "Accept: application/openmetrics-text;version=1.0.0\r\n");
    assert!(open.ends_with("# EOF\n"), "{open}");
}

#[test]
fn a_page_of_somebody_elses_that_was_led_here_is_refused() {
    let (_listener, address, path) = start();
    let port = address.port();
    for path in [path.as_str(), "/metrics", "/healthz"] {
        let answer = ask(address, path, &format!("Host: evil.example:{port}\r\n"));
        assert!(answer.starts_with("HTTP/1.1 421 "), "{path}: {answer}");
        assert!(ask(address, path, &format!("Host: localhost:{port}\r\n")).starts_with("HTTP/1.1 200 "));
    }
    let post = format!(
        "POST /metrics HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    let answer = say(address, &post);
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
}

#[test]
fn a_request_of_http_1_1_names_its_host_and_one_of_1_0_need_not() {
    let (_listener, address, path) = start();
    for path in [path.as_str(), "/metrics", "/nothing"] {
        let answer = say(address, &format!("GET {path} HTTP/1.1\r\nConnection: close\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 400 "), "{path}: {answer}");
    }
    assert!(say(address, "GET /metrics HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 200 "));
}

#[test]
fn a_tab_is_sent_the_page_then_what_changes_then_the_end() {
    let (listener, address, path) = start();
    assert!(!listener.wants_body(), "there is nobody to render for");
    let mut early = tab(address, &path);
    soon("the tab is known", || listener.wants_body());
    listener.show(|| body("<p id=\"a\">1</p>"));
    assert!(read_to(&mut early, "</p>\n\n").contains("event: past\ndata: <p id=\"a\">1</p>"));
    listener.show(|| body("<p id=\"a\">2</p>"));
    assert!(read_to(&mut early, "</p>\n\n").starts_with("id: 2\nevent: interval\n"));
    let mut late = tab(address, &path);
    assert!(read_to(&mut late, "</p>\n\n").starts_with("id: 2\nevent: past\ndata: <p id=\"a\">2</p>"));
    listener.end("it is over");
    drop(listener);
    for mut tab in [early, late] {
        let mut rest = String::new();
        tab.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "id: 3\nevent: end\ndata: it is over\n\n");
    }
}

#[test]
fn a_tab_whose_link_broke_goes_on_where_it_was() {
    let (listener, address, path) = start();
    listener.show(|| body("1"));
    let mut first = tab(address, &path);
    read_to(&mut first, "data: 1\n\n");
    drop(first);
    listener.show(|| body("2"));
    let mut stream = connect(address);
    write!(stream, "GET {path}events HTTP/1.1\r\nHost: {address}\r\nLast-Event-ID: 1\r\n\r\n").unwrap();
    assert!(read_to(&mut stream, "data: 2\n\n").contains("id: 2\nevent: interval\n"));
}

#[test]
fn tabs_that_do_not_read_hold_up_neither_the_run_nor_others() {
    let (listener, address, path) = start();
    let deaf: Vec<_> = (0..4).map(|_| tab(address, &path)).collect();
    let mut reader = BufReader::new(tab(address, &path));
    for number in 0..50 {
        // Fifty times what a page comes to, and far more than the kernel keeps for a link.
        let html = format!("<p>{number}</p>{}", "x".repeat(400_000));
        listener.show(move || body(&html));
    }
    soon("all is rendered", || listener.wants_body());
    read_to(&mut reader, "<p>49</p>");
    assert!(ask(address, "/healthz", "").ends_with("ok\n"));
    drop(deaf);
}

#[test]
fn who_asks_slowly_or_not_at_all_makes_room_for_others() {
    let (_listener, address, _) = start();
    let idle: Vec<_> = (0..100).map(|_| connect(address)).collect();
    let mut slow = connect(address);
    slow.write_all(b"GET /met").unwrap();
    // More of them than there is room for, and one who asks properly is answered.
    assert!(ask(address, "/metrics", "").starts_with("HTTP/1.1 200 "));
    for mut stream in idle {
        // Each is cut off, the last ones when their time is over.
        let ended = stream.read(&mut [0]);
        assert!(matches!(&ended, Ok(0)) || ended.is_err_and(|it| it.kind() == ErrorKind::ConnectionReset));
    }
    let _ = slow.write_all(b"rics HTTP/1.1\r\n\r\n");
}

#[test]
fn an_address_that_is_taken_is_one_line() {
    let (listener, address, _) = start();
    let Err(error) = Listener::start(address, Look::default(), Arc::default()) else {
        panic!("two at {address}")
    };
    let line = error.to_string();
    assert!(line.starts_with(&format!("{address}: ")) && line.contains("give another address"), "{line}");
    drop(listener);
}
