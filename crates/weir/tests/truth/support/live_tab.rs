//! weir with its page of `--live`, and a tab of it without a browser: what weir sends, from the page's address to the end.

use super::process::{Said, weir};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::thread::JoinHandle;
use std::time::Duration;
use weir_testing::KilledOnDrop;

/// On a machine that has other things to do.
const TEST_TIMEOUT: Duration = Duration::from_secs(120);

/// What only the page of a run has, and no page of several.
pub(crate) const A_RUN: &str = "id=\"glance\"";

/// A run or a trial that is over, in the table of those that are: its directory.
pub(crate) fn row_of(directory: &str) -> String {
    format!("<bdi>{directory}</bdi></td>")
}

/// weir, which shows a page.
pub(crate) struct Showing {
    pub(crate) process: KilledOnDrop,
    /// Where it is.
    pub(crate) page: String,
    out: JoinHandle<String>,
    err: JoinHandle<String>,
}

/// Starts weir with a page.
pub(crate) fn start_watched<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Showing {
    let mut command = weir();
    command.args(arguments).arg("--live").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = KilledOnDrop::start(&mut command);
    let mut err = BufReader::new(process.0.stderr.take().unwrap());
    let (mut said, mut line) = (String::new(), String::new());
    while !line.starts_with("live: ") {
        line.clear();
        assert_ne!(err.read_line(&mut line).unwrap(), 0, "weir never said where its page is: {said}");
        said.push_str(&line);
    }
    let page = line.trim().trim_start_matches("live: ").to_owned();
    let out = rest(process.0.stdout.take().unwrap(), String::new());
    Showing { process, page, out, err: rest(err, said) }
}

/// Reads all that comes: a pipe that nobody reads would hold weir up.
fn rest(mut pipe: impl Read + Send + 'static, mut said: String) -> JoinHandle<String> {
    std::thread::spawn(move || {
        pipe.read_to_string(&mut said).unwrap();
        said
    })
}

impl Showing {
    /// Waits for its end, and returns what it said.
    pub(crate) fn said(mut self) -> Said {
        // They last as long as it does.
        let (out, err) = (self.out.join().unwrap(), self.err.join().unwrap());
        Said { code: self.process.ended().code(), out, err }
    }
}

/// What a tab was sent.
pub(crate) struct Watched {
    /// The page each time that it, or a part of it, was sent.
    pub(crate) pages: Vec<String>,
    /// Which of them was the last whole one.
    whole: usize,
    /// How it ended.
    pub(crate) end: String,
}

/// Runs weir to its end, with a tab open at its page.
pub(crate) fn says_on_its_page<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> (Said, Watched) {
    let showing = start_watched(arguments);
    let events = events(&showing.page);
    let tab = std::thread::spawn(|| watched(events));
    (showing.said(), tab.join().unwrap())
}

/// Asks for the events of a page.
fn events(page: &str) -> BufReader<TcpStream> {
    let (address, path) = page.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut link = TcpStream::connect(address).unwrap();
    link.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    write!(link, "GET /{path}events HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    BufReader::new(link)
}

/// Reads server-sent events (HTML, section 9.2.6) up to the one that says the end.
fn watched(events: BufReader<TcpStream>) -> Watched {
    let mut watched = Watched { pages: Vec::new(), whole: 0, end: String::new() };
    let (mut name, mut text) = (String::new(), String::new());
    for line in events.lines() {
        let line = line.expect("weir goes on sending until it has said the end");
        if let Some(event) = line.strip_prefix("event: ") {
            event.clone_into(&mut name);
        } else if let Some(data) = line.strip_prefix("data: ") {
            text.push_str(data);
            text.push('\n');
        } else if line.is_empty() && !text.is_empty() {
            let text = std::mem::take(&mut text);
            if name == "end" {
                text.trim_end().clone_into(&mut watched.end);
                return watched;
            }
            if name == "past" {
                watched.whole = watched.pages.len();
            }
            watched.pages.push(text);
        }
    }
    panic!("it ended without a word: {:#?}", watched.pages.last());
}

impl Watched {
    /// The number of the first page that has all of these words; there must be one.
    pub(crate) fn first_with(&self, words: &[&str]) -> usize {
        let has = |page: &String| words.iter().all(|word| page.contains(word));
        let found = self.pages.iter().position(has);
        found.unwrap_or_else(|| panic!("never {words:?}: {:#?}", self.pages.last()))
    }

    /// The last page, with all that came after it as a part of it.
    pub(crate) fn last(&self) -> String {
        self.pages[self.whole..].concat()
    }
}
