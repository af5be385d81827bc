//! Processes of tests: started, waited for, interrupted, and never left behind.

use rustix::process::{Pid, Signal, kill_process};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Reads `+ PID` of a process that was started and `- PID` of one that has ended, and kills what is left when the pipe closes: the kernel
/// closes it however the tests end. A parent-death signal would come when the thread ends that started the process, which is too early.
const WATCHER: &str = r#"
pids=
while read -r sign pid; do
    rest=
    for other in $pids; do [ "$other" = "$pid" ] || rest="$rest $other"; done
    pids=$rest
    [ "$sign" = - ] || pids="$pids $pid"
done
[ -z "$pids" ] || kill -9 $pids
"#;

/// A program that the tests need; `package` is where Debian has it.
pub fn program(name: &str, package: &str) -> Command {
    let found = Command::new("sh").args(["-c", &format!("command -v {name}")]).output().unwrap();
    assert!(found.status.success(), "{name} is missing; apt-get install {package}");
    let mut command = Command::new(String::from_utf8(found.stdout).unwrap().trim());
    command.stdin(Stdio::null());
    command
}

/// How long [`soon`] waits: a server in Java is there after five seconds, and after twenty beside a build and other tests.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a process may take to end: the longest run of a test is one of 50 s, and its report is written behind it.
const LONGEST_RUN: Duration = Duration::from_secs(150);

/// Waits until something is so, for as long as a busy machine may need.
pub fn soon(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < TEST_TIMEOUT, "{what}: not within {TEST_TIMEOUT:?}");
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
pub struct KilledOnDrop(pub Child);

impl KilledOnDrop {
    /// Starts a program.
    pub fn start(command: &mut Command) -> Self {
        let kept = Self(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")));
        tell_watcher('+', kept.pid());
        kept
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
        tell_watcher('-', self.pid());
    }

    /// Waits for its own end.
    pub fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        let began = Instant::now();
        while status.is_none() {
            assert!(began.elapsed() < LONGEST_RUN, "process {} does not end", self.pid());
            std::thread::sleep(Duration::from_millis(20));
            status = self.0.try_wait().unwrap();
        }
        tell_watcher('-', self.pid());
        status.unwrap()
    }
}

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        tell_watcher('-', self.pid());
    }
}

/// Tells the process that outlives this one, which is started with the first line.
fn tell_watcher(sign: char, pid: u32) {
    static WATCHING: OnceLock<Mutex<Child>> = OnceLock::new();
    let start = || {
        let mut command = Command::new("sh");
        command.args(["-c", WATCHER]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C on a terminal ends the tests, and must not end what cleans up behind them.
        Mutex::new(command.process_group(0).spawn().expect("sh is there"))
    };
    let mut watcher = WATCHING.get_or_init(start).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pipe) = &mut watcher.stdin {
        // Without a watcher the tests are as good as with one.
        let _ = writeln!(pipe, "{sign} {pid}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};

    /// The tests that are killed: they start a process that would run for ten minutes, and say which.
    #[test]
    #[ignore = "the child process of the other test"]
    fn stage() {
        let kept = KilledOnDrop::start(Command::new("sleep").arg("600"));
        eprintln!("started {}", kept.pid());
        std::thread::sleep(Duration::from_secs(60));
    }

    #[test]
    fn tests_that_are_killed_leave_no_process_behind() {
        let mut tests = Command::new(std::env::current_exe().unwrap());
        tests.args(["--exact", "process::tests::stage", "--ignored", "--nocapture"]);
        let mut tests = tests.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(tests.stderr.take().unwrap()).lines().map_while(Result::ok);
        let pid: u32 =
            lines.filter_map(|line| line.strip_prefix("started ")?.parse().ok()).next().expect("it says so");
        assert!(is_running(pid));
        tests.kill().unwrap();
        tests.wait().unwrap();
        soon("the process is gone", || !is_running(pid));
    }

    /// Whether a process is there and no zombie, as one may stay for good where nothing waits for orphans (proc_pid_stat(5)).
    fn is_running(pid: u32) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        stat.is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with('Z')))
    }
}
