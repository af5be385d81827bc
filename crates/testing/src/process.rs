//! Processes of tests: started, waited for, interrupted, and never left behind.

use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A program that the tests need; `package` is where Debian has it.
pub fn program(name: &str, package: &str) -> Command {
    let found = Command::new("sh").args(["-c", &format!("command -v {name}")]).output().unwrap();
    assert!(found.status.success(), "{name} is missing; apt-get install {package}");
    let mut command = Command::new(String::from_utf8(found.stdout).unwrap().trim());
    command.stdin(Stdio::null());
    command
}

/// Waits until something is so, for as long as a busy machine may need.
pub fn soon(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}: not within 20 s");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Ctrl-C.
pub fn interrupt(child: &Child) {
    let pid = Pid::from_child(child);
    // One that has ended needs no signal.
    let _ = kill_process(pid, Signal::INT);
}

/// A process that ends with the test.
pub struct Kept(pub Child);

impl Kept {
    /// Starts a program.
    pub fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    /// Its process identifier.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Sends Ctrl-C.
    pub fn interrupt(&self) {
        interrupt(&self.0);
    }

    /// What a service manager sends.
    pub fn terminate(&self) {
        // One that has ended needs no signal.
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
    }

    /// Ends it as a crash would.
    pub fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Waits for its own end.
    pub fn ended(&mut self) -> ExitStatus {
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
