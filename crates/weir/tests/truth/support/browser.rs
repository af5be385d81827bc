//! Chromium with one of the origin's own pages, and what the page says on its console.

use super::{KilledOnDrop, program};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::str::FromStr;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// On a machine that has other things to do.
const TEST_TIMEOUT: Duration = Duration::from_secs(90);

/// A browser with one page open.
pub(crate) struct Browser {
    _process: KilledOnDrop,
    _profile: TempDir,
    lines: Receiver<String>,
}

impl Browser {
    pub(crate) fn open(url: &str) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let mut command = program("chromium", "chromium");
        command
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
            ])
            .args(["--allow-loopback-in-peer-connection", "--disable-background-networking"])
            // The certificates of tests are their own.
            .args([
                "--autoplay-policy=no-user-gesture-required",
                "--enable-logging=stderr",
                "--ignore-certificate-errors",
            ])
            .args(["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(url)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut process = KilledOnDrop::start(&mut command);
        let said = BufReader::new(process.0.stderr.take().unwrap());
        let (sender, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in said.lines().map_while(Result::ok).filter(|line| line.contains("weir: ")) {
                let _ = sender.send(line);
            }
        });
        Self { _process: process, _profile: profile, lines }
    }

    /// Waits until the page says a number between two words that is at least so large. The last that it said.
    pub(crate) fn says(&self, before: &str, number: u64, after: &str) -> (u64, String) {
        self.says_within(TEST_TIMEOUT, before, number, after).unwrap_or_else(|last| {
            panic!("not {before}{number}{after} within {TEST_TIMEOUT:?}; the page said last: {last}")
        })
    }

    /// The same, within this time; what it said last if it did not say that.
    pub(crate) fn says_within(
        &self,
        time: Duration,
        before: &str,
        number: u64,
        after: &str,
    ) -> Result<(u64, String), String> {
        let began = Instant::now();
        let mut last = String::new();
        while began.elapsed() < time {
            let Ok(line) = self.lines.recv_timeout(Duration::from_secs(1)) else { continue };
            last = line;
            let said = between(&last, before, after).filter(|said| *said >= number);
            if let Some(said) = said {
                return Ok((said, last));
            }
        }
        Err(last)
    }

    /// Waits until the browser has counted this many freezes of a second and more, and goes on for a while; the length of each
    /// in seconds. The page tells their sums once a second.
    pub(crate) fn freezes(&self, number: usize) -> Vec<f64> {
        let (began, mut found, mut before) = (Instant::now(), Vec::new(), None);
        let mut until = TEST_TIMEOUT;
        while began.elapsed() < until {
            let Ok(line) = self.lines.recv_timeout(Duration::from_millis(200)) else { continue };
            let Some(frozen) = between::<f64>(&line, " freezes, ", " s frozen") else { continue };
            let grown = frozen - before.replace(frozen).unwrap_or(frozen);
            if grown >= 1.0 {
                found.push(grown);
            }
            if found.len() == number && until == TEST_TIMEOUT {
                until = began.elapsed() + Duration::from_secs(3);
            }
        }
        found
    }
}

/// What stands between two words of a line.
fn between<T: FromStr>(line: &str, before: &str, after: &str) -> Option<T> {
    line.split(before).nth(1)?.split(after).next()?.parse().ok()
}
