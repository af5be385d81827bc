//! Processes: weir and others, started, listened to, interrupted, and never left behind.

use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

/// weir itself.
pub(crate) fn weir() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.env("COLUMNS", "100").env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

/// A program that the tests need; `package` is where Debian has it.
pub(crate) fn program(name: &str, package: &str) -> Command {
    let found = Command::new("sh").args(["-c", &format!("command -v {name}")]).output().unwrap();
    assert!(found.status.success(), "{name} is missing; apt-get install {package}");
    let mut command = Command::new(String::from_utf8(found.stdout).unwrap().trim());
    command.stdin(Stdio::null());
    command
}

/// What a process said, as text.
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("weir says UTF-8");
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// Runs weir to its end.
pub(crate) fn says<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Said {
    weir().args(arguments).output().unwrap().into()
}

/// Waits until something is so, for as long as a busy machine may need.
pub(crate) fn soon(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}: not within 20 s");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Ctrl-C.
pub(crate) fn interrupt(child: &Child) {
    let pid = Pid::from_child(child);
    // One that has ended needs no signal.
    let _ = kill_process(pid, Signal::INT);
}

/// A process that ends with the test.
pub(crate) struct Kept(pub(crate) Child);

impl Kept {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn interrupt(&self) {
        interrupt(&self.0);
    }

    /// What a service manager sends.
    pub(crate) fn terminate(&self) {
        // One that has ended needs no signal.
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
    }

    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Waits for its own end.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        let began = Instant::now();
        while status.is_none() {
            assert!(began.elapsed() < Duration::from_secs(60), "process {} does not end", self.pid());
            std::thread::sleep(Duration::from_millis(20));
            status = self.0.try_wait().unwrap();
        }
        status.unwrap()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
