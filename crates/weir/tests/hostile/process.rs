//! A process of weir, and what it has spent.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The longest wait for anything that has to come: only a hang is longer.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// weir, with its output in files: a pipe that nobody reads would hold it up.
pub(crate) struct Process {
    child: Child,
    folder: TempDir,
}

/// What a process has spent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    /// The most memory that it ever had, in MiB.
    pub(crate) memory: u64,
    /// Processor time of all its threads.
    pub(crate) processor: Duration,
}

impl Process {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| std::fs::File::create(folder.path().join(name)).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(arguments)
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(file("out"))
            .stderr(file("err"))
            .spawn()
            .unwrap();
        Self { child, folder }
    }

    fn text(&self, name: &str) -> String {
        let mut bytes = Vec::new();
        std::fs::File::open(self.folder.path().join(name)).unwrap().read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub(crate) fn out(&self) -> String {
        self.text("out")
    }

    pub(crate) fn err(&self) -> String {
        self.text("err")
    }

    /// What it has spent so far. `None`: it has ended.
    pub(crate) fn spent(&self) -> Option<Spent> {
        let read = |what: &str| std::fs::read_to_string(format!("/proc/{}/{what}", self.child.id())).ok();
        let status = read("status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
        // proc(5): behind the command's name come the fields from the third on; utime is the 14th, stime the 15th, in
        // ticks of 10 ms.
        let stat = read("stat")?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = |at: usize| fields[at - 3].parse::<u64>().ok();
        let processor = Duration::from_millis((ticks(14)? + ticks(15)?) * 10);
        Some(Spent { memory: kibibytes / 1024, processor })
    }

    /// Ends it as whoever started it would, by closing its stdin; its exit code.
    pub(crate) fn end(&mut self) -> Option<i32> {
        drop(self.child.stdin.take());
        self.wait(|_| {})
    }

    /// Waits for its end; `look` sees what it has spent meanwhile.
    pub(crate) fn wait(&mut self, mut look: impl FnMut(Spent)) -> Option<i32> {
        let began = Instant::now();
        loop {
            if let Some(spent) = self.spent() {
                look(spent);
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(began.elapsed() < TEST_TIMEOUT, "it does not end; stderr: {}", self.err());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
