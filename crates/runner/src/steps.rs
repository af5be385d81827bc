//! What a scenario does before and after a run: commands, servers beside it, files filled in, ports waited for.

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use std::fmt;
use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use weir_engine::run::restarts::Servers;
use weir_engine::scenario::{Fill, Step, Variant, program, shown_command};
use weir_observe::redact;

/// How often a command, a port or the request to stop is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How long a port may take to be there.
const PORT_PATIENCE: Duration = Duration::from_secs(30);

/// How long a server may take to end before it is killed.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// How long one that was killed may take to be gone.
const KILL_PATIENCE: Duration = Duration::from_secs(2);

/// Where the output of commands goes, in the run directory; readable by its owner only, as everything there.
const LOG: &str = "steps.log";
const PRIVATE_FILE: u32 = 0o600;

/// Bytes of a command's output that are kept.
const MOST_OUTPUT: usize = 1 << 20;

/// Bytes of it in which the last line is looked for, and letters of the line that are shown.
const MOST_QUOTED: usize = 4 << 10;
const LETTERS: usize = 200;

/// How long the last output of a command that has ended may take: children of its own may hold the pipe for longer.
const OUTPUT_PATIENCE: Duration = Duration::from_secs(1);

/// Groups that run, for a second Ctrl-C, which ends weir without another word.
static GROUPS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Kills this group, too, when weir has to end at once.
pub fn end_with_weir(group: Pid) {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner).push(group);
}

/// Kills all that steps have started: weir is about to end at once.
pub fn kill_all() {
    for group in GROUPS.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        // A process that has ended meanwhile needs no signal.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// The steps of one run of a scenario. What they started is ended when it is dropped, the last one first.
#[derive(Debug)]
pub(crate) struct StepRunner {
    folder: PathBuf,
    log: PathBuf,
    environment: Vec<(&'static str, String)>,
    started: Vec<Group>,
}

/// A command with all that it starts.
#[derive(Debug)]
struct Group {
    child: Child,
    command: String,
    /// Its program: other words of a command may be secrets.
    name: String,
    /// The latest bytes of its output, and the thread that copies them.
    latest: Arc<Mutex<Vec<u8>>>,
    copying: Option<JoinHandle<()>>,
    /// Whether it was ended: from then on its number may be another's.
    is_over: bool,
}

/// The last line that a command printed; empty if it printed nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastWords(String);

impl fmt::Display for LastWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.0) }
    }
}

/// What helps if a server has ended without an error: most likely it has gone into the background.
fn foreground(status: &ExitStatus) -> &'static str {
    if status.success() { "; start the server in the foreground" } else { "" }
}

/// Copies what a command says into the log. One that says more than is kept goes on, and a full disk ends no run.
fn copy(mut output: PipeReader, mut log: File, latest: &Mutex<Vec<u8>>) {
    let (mut buffer, mut room) = ([0; 8 << 10], MOST_OUTPUT);
    loop {
        let bytes = match output.read(&mut buffer) {
            Ok(0) => return,
            Ok(length) => &buffer[..length],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let kept = bytes.len().min(room);
        room -= kept;
        let _ = log.write_all(&bytes[..kept]);
        let mut latest = latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.extend_from_slice(bytes);
        let older = latest.len().saturating_sub(MOST_QUOTED);
        latest.drain(..older);
    }
}

/// A step that could not be done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StepError {
    /// It was to stop.
    #[error("interrupted")]
    Interrupted,
    /// The shell could not be started, or a file not be read or written.
    #[error("{what}: {source}")]
    System { what: String, source: io::Error },
    /// A command ended with an error.
    #[error("`{name}` ended with {status}{said}; {} has what it said", .log.display())]
    Failed { name: String, status: ExitStatus, said: LastWords, log: PathBuf },
    /// A command that was to go on has ended.
    #[error("`{name}` was to go on and ended with {status}{said}{}; {} has what it said", foreground(.status), .log.display())]
    Ended { name: String, status: ExitStatus, said: LastWords, log: PathBuf },
    /// No step has started the server that is to be ended.
    #[error("no step has started '{0}'")]
    Unknown(String),
    /// Another server listens where that of the scenario should.
    #[error(
        "{0} takes connections before the scenario's own server is started; end the other one, or choose another port"
    )]
    Taken(String),
    /// No server listens.
    #[error("{address} took no connection within {} s; start the server in a step before, or look at {}", .within.as_secs(), .log.display())]
    Silent { address: String, within: Duration, log: PathBuf },
    /// What is waited for is no address.
    #[error("wait: '{0}' is not an address; write HOST:PORT")]
    Address(String),
}

impl StepRunner {
    /// Nothing yet. Commands run in `folder`; what they say goes into the run's `directory`.
    pub(crate) fn new(folder: &Path, directory: &Path, variant: Option<&Variant>, repetition: u32) -> Self {
        // A command's own folder is another one than weir's.
        let whole = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
        let environment = vec![
            ("WEIR_VARIANT", variant.map_or_else(String::new, |it| it.name.clone())),
            ("WEIR_REPETITION", repetition.to_string()),
            ("WEIR_RUN_DIRECTORY", whole.display().to_string()),
        ];
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        Self { folder: folder.to_owned(), log: whole.join(LOG), environment, started: Vec::new() }
    }

    /// Does steps one after the other, until one fails or `interrupt` is set.
    ///
    /// # Errors
    /// See [`StepError`].
    pub(crate) fn take(
        &mut self,
        steps: &[Step],
        variant: Option<&Variant>,
        interrupt: &AtomicBool,
    ) -> Result<(), StepError> {
        for (at, step) in steps.iter().enumerate() {
            match step {
                Step::Run(command) => self.run(command, interrupt)?,
                Step::Start(command) => {
                    refuse_taken(&steps[at..])?;
                    let group = self.spawn(command)?;
                    self.started.push(group);
                }
                Step::Wait(address) => self.wait(address, interrupt)?,
                Step::Fill(files) => self.fill(files, variant)?,
            }
        }
        Ok(())
    }

    /// Checks that whatever was started goes on.
    ///
    /// # Errors
    /// One has ended: what was measured beside it may be another's.
    pub(crate) fn check(&mut self) -> Result<(), StepError> {
        for group in &mut self.started {
            if let Ok(Some(status)) = group.child.try_wait() {
                let (name, log, said) = (group.name.clone(), self.log.clone(), group.last_words());
                return Err(StepError::Ended { name, status, said, log });
            }
        }
        Ok(())
    }

    /// Ends what a step `start` has started whose program is this one; returns when it has ended. It stands in its place until it
    /// is started again.
    ///
    /// # Errors
    /// It has ended before.
    pub(crate) fn stop(&mut self, server: &str, signal: Signal) -> Result<(), StepError> {
        self.check()?;
        self.find(server)?.end(signal);
        Ok(())
    }

    /// Starts it again, by the command that it was started with.
    ///
    /// # Errors
    /// The system's words.
    pub(crate) fn start_again(&mut self, server: &str) -> Result<(), StepError> {
        let command = self.find(server)?.command.clone();
        let group = self.spawn(&command)?;
        *self.find(server)? = group;
        Ok(())
    }

    fn find(&mut self, server: &str) -> Result<&mut Group, StepError> {
        let group = self.started.iter_mut().find(|it| program(&it.command) == Some(server));
        group.ok_or_else(|| StepError::Unknown(server.to_owned()))
    }

    fn spawn(&self, command: &str) -> Result<Group, StepError> {
        let name = shown_command(command);
        let system = |source| StepError::System { what: format!("`{name}`"), source };
        let log = File::options().create(true).append(true).mode(PRIVATE_FILE).open(&self.log);
        let log = log.map_err(|source| StepError::System { what: self.log.display().to_string(), source })?;
        let (output, end) = io::pipe().map_err(system)?;
        // A group of its own: Ctrl-C of a terminal is for weir, which ends a run before the run's server.
        let child = Command::new("sh")
            .args(["-c", command])
            .current_dir(&self.folder)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(end.try_clone().map_err(system)?)
            .stderr(end)
            .process_group(0)
            .spawn()
            .map_err(system)?;
        let pid = Pid::from_child(&child);
        GROUPS.lock().unwrap_or_else(PoisonError::into_inner).push(pid);
        let latest = Arc::<Mutex<Vec<u8>>>::default();
        let mut group = Group {
            child,
            command: command.to_owned(),
            name: name.clone(),
            latest: latest.clone(),
            copying: None,
            is_over: false,
        };
        let copy = move || copy(output, log, &latest);
        let copying = std::thread::Builder::new().name("weir-steps".to_owned()).spawn(copy);
        group.copying = Some(copying.map_err(system)?);
        Ok(group)
    }

    fn run(&self, command: &str, interrupt: &AtomicBool) -> Result<(), StepError> {
        let mut group = self.spawn(command)?;
        loop {
            let ended = group.child.try_wait();
            match ended.map_err(|source| StepError::System { what: format!("`{}`", group.name), source })? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => {
                    let (name, log, said) = (group.name.clone(), self.log.clone(), group.last_words());
                    return Err(StepError::Failed { name, status, said, log });
                }
                None if interrupt.load(Relaxed) => return Err(StepError::Interrupted),
                None => std::thread::sleep(POLL_INTERVAL),
            }
        }
    }

    fn wait(&mut self, address: &str, interrupt: &AtomicBool) -> Result<(), StepError> {
        let began = Instant::now();
        loop {
            let is_there = takes_connections(address)?;
            // A server that has ended will not listen any more: what listens there now is another one.
            self.check()?;
            if is_there {
                return Ok(());
            }
            if interrupt.load(Relaxed) {
                return Err(StepError::Interrupted);
            }
            if began.elapsed() > PORT_PATIENCE {
                let (address, log) = (address.to_owned(), self.log.clone());
                return Err(StepError::Silent { address, within: PORT_PATIENCE, log });
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn fill(&self, files: &Fill, variant: Option<&Variant>) -> Result<(), StepError> {
        let of = |path: &Path| self.folder.join(path);
        let failed = |path: &Path| {
            let what = format!("fill: {}", of(path).display());
            move |source| StepError::System { what, source }
        };
        let text =
            weir_files::read_text(&of(&files.from), weir_files::MOST_TEXT).map_err(failed(&files.from))?;
        let text = variant.map_or_else(|| text.clone(), |variant| variant.fill(&text));
        std::fs::write(of(&files.to), text).map_err(failed(&files.to))
    }
}

/// The same, which a run can end and start again meanwhile.
#[derive(Clone, Debug)]
pub(crate) struct SharedSteps(Arc<Mutex<StepRunner>>);

impl SharedSteps {
    pub(crate) fn new(steps: StepRunner) -> Self {
        Self(Arc::new(Mutex::new(steps)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, StepRunner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Servers for SharedSteps {
    fn stop(&mut self, program: &str, kill: bool) -> Result<(), String> {
        let signal = if kill { Signal::KILL } else { Signal::TERM };
        self.lock().stop(program, signal).map_err(|error| error.to_string())
    }

    fn start(&mut self, program: &str) -> Result<(), String> {
        self.lock().start_again(program).map_err(|error| error.to_string())
    }
}

impl Drop for StepRunner {
    fn drop(&mut self) {
        while let Some(group) = self.started.pop() {
            drop(group);
        }
    }
}

impl Group {
    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// The last line that it printed, of a command that has ended.
    fn last_words(&self) -> LastWords {
        let began = Instant::now();
        let is_copied = || self.copying.as_ref().is_none_or(JoinHandle::is_finished);
        while !is_copied() && began.elapsed() < OUTPUT_PATIENCE {
            std::thread::sleep(POLL_INTERVAL);
        }
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&latest);
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty());
        // A shell, psql and curl say in their errors what they were given.
        let shown = line.map(|line| redact(&[line]).concat());
        LastWords(shown.map_or_else(String::new, |line| weir_report::quote(&line, LETTERS)))
    }

    /// Whether no process of it is left; its own child is reaped if it has ended.
    fn is_gone(&mut self) -> bool {
        let child_is_gone = matches!(self.child.try_wait(), Ok(Some(_)) | Err(_));
        child_is_gone && test_kill_process_group(self.pid()).is_err()
    }

    fn goes_within(&mut self, patience: Duration) -> bool {
        let began = Instant::now();
        while !self.is_gone() {
            if began.elapsed() > patience {
                return false;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        true
    }

    /// Ends all of it, those included that outlived the command which started them, by this signal or else by SIGKILL.
    fn end(&mut self, signal: Signal) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        let pid = self.pid();
        if !self.is_gone() {
            let _ = kill_process_group(pid, signal);
            if !self.goes_within(END_PATIENCE) {
                let _ = kill_process_group(pid, Signal::KILL);
                // The kernel needs a moment.
                self.goes_within(KILL_PATIENCE);
            }
        }
        GROUPS.lock().unwrap_or_else(PoisonError::into_inner).retain(|it| *it != pid);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end(Signal::TERM);
    }
}

fn takes_connections(address: &str) -> Result<bool, StepError> {
    let found: Vec<SocketAddr> =
        address.to_socket_addrs().map_err(|_| StepError::Address(address.to_owned()))?.collect();
    let within = Duration::from_secs(1);
    Ok(found.iter().any(|address| TcpStream::connect_timeout(address, within).is_ok()))
}

/// Refuses to start a server where another listens: it would be measured in its place.
fn refuse_taken(steps: &[Step]) -> Result<(), StepError> {
    for step in steps {
        if let Step::Wait(address) = step
            && takes_connections(address)?
        {
            return Err(StepError::Taken(address.clone()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn runner(directory: &Path) -> StepRunner {
        StepRunner::new(directory, directory, Some(&variant()), 2)
    }

    fn variant() -> Variant {
        Variant {
            name: "two".to_owned(),
            values: BTreeMap::from([("workers".to_owned(), "2".to_owned())]),
            ..Variant::default()
        }
    }

    fn steps(text: &str) -> Vec<Step> {
        let text = format!("before: {text}\nworkloads: [{{play: rtmp://h/a/s, duration: 1s}}]");
        weir_engine::scenario::Scenario::parse(&text).unwrap().before
    }

    #[test]
    fn files_are_filled_and_commands_are_told_which_run_it_is() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("in"), "{ workers {workers}; }").unwrap();
        let text = "[fill: {from: in, to: out}, run: 'cat out; echo $WEIR_VARIANT $WEIR_REPETITION']";
        let mut of_run = runner(folder.path());
        of_run.take(&steps(text), Some(&variant()), &AtomicBool::new(false)).unwrap();
        let said = || std::fs::read_to_string(folder.path().join(LOG)).unwrap();
        // A thread copies it.
        while said().len() < "{ workers 2; }two 2\n".len() {
            std::thread::sleep(POLL_INTERVAL);
        }
        assert_eq!(said(), "{ workers 2; }two 2\n");
    }

    #[test]
    fn a_command_that_fails_is_named_and_so_is_a_server_that_ended() {
        let folder = tempfile::tempdir().unwrap();
        let fails = |text: &str| {
            let mut of_run = runner(folder.path());
            of_run.take(&steps(text), None, &AtomicBool::new(false)).unwrap_err().to_string()
        };
        assert!(fails("[run: exit 3]").starts_with("`exit …` ended with exit status: 3; "));
        let ended = fails("[start: exit 4, wait: '127.0.0.1:9']");
        assert!(ended.starts_with("`exit …` was to go on and ended with exit status: 4; "), "{ended}");
        let words = "echo listening; echo \"bind(): port in use\"; echo; exit 1";
        for (text, begins) in [
            (format!("[start: '{words}', wait: '127.0.0.1:9']"), "`echo …` was to go on and ended with "),
            (format!("[run: '{words}']"), "`echo …` ended with "),
        ] {
            let failed = fails(&text);
            let expected = format!("{begins}exit status: 1: bind(): port in use; ");
            assert!(
                failed.starts_with(&expected) && failed.ends_with("steps.log has what it said"),
                "{failed}"
            );
        }
        let secret = fails("[run: 'echo could not connect to postgres://u:sesame@h/; exit 1']");
        assert!(secret.contains("could not connect") && !secret.contains("sesame"), "{secret}");
        let gone = fails("[start: 'true', wait: '127.0.0.1:9']");
        assert!(gone.contains("exit status: 0; start the server in the foreground; "), "{gone}");
        let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = other.local_addr().unwrap();
        let taken = fails(&format!("[start: sleep 60, wait: '{address}']"));
        assert!(taken.starts_with(&format!("{address} takes connections before")), "{taken}");
        assert!(fails("[wait: nowhere]").contains("'nowhere' is not an address"));
        assert!(fails("[fill: {from: none, to: x}]").contains("none: No such file"));
    }

    #[test]
    fn what_was_started_is_ended_with_all_that_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let mut of_run = runner(folder.path());
        let text = "[start: 'sleep 600 & echo $! > pid; wait']";
        of_run.take(&steps(text), None, &AtomicBool::new(false)).unwrap();
        let path = folder.path().join("pid");
        let pid = loop {
            match std::fs::read_to_string(&path).unwrap_or_default().trim().parse::<i32>() {
                Ok(pid) => break pid,
                Err(_) => std::thread::sleep(POLL_INTERVAL),
            }
        };
        drop(of_run);
        let gone = |pid: i32| {
            let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            state.is_empty() || state.contains(") Z ")
        };
        let began = Instant::now();
        while !gone(pid) {
            assert!(began.elapsed() < END_PATIENCE, "the server's own child goes on");
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    #[test]
    fn a_server_is_ended_and_started_again_by_its_own_command() {
        let folder = tempfile::tempdir().unwrap();
        let mut of_run = runner(folder.path());
        let text = "[start: 'exec /bin/sleep 600', start: 'exec tail -f /dev/null']";
        of_run.take(&steps(text), None, &AtomicBool::new(false)).unwrap();
        let pids = |of_run: &StepRunner| of_run.started.iter().map(Group::pid).collect::<Vec<_>>();
        let before = pids(&of_run);
        for signal in [Signal::TERM, Signal::KILL] {
            of_run.stop("sleep", signal).unwrap();
            let ended = of_run.check().unwrap_err().to_string();
            assert!(ended.starts_with("`exec …` was to go on"), "{ended}");
            of_run.start_again("sleep").unwrap();
            of_run.check().unwrap();
        }
        let after = pids(&of_run);
        assert!(before[0] != after[0] && before[1] == after[1], "{before:?} {after:?}");
        let said = |result: Result<(), StepError>| result.unwrap_err().to_string();
        assert_eq!(said(of_run.stop("cat", Signal::TERM)), "no step has started 'cat'");
        let _ = kill_process_group(after[1], Signal::KILL);
        assert!(of_run.started[1].goes_within(END_PATIENCE));
        assert!(said(of_run.stop("sleep", Signal::TERM)).contains("was to go on"), "the other one is gone");
    }

    #[test]
    fn a_child_that_takes_no_notice_is_killed_though_its_shell_has_gone() {
        let folder = tempfile::tempdir().unwrap();
        let mut of_run = runner(folder.path());
        let text = "[run: '(trap \"\" TERM; sleep 600) & echo $! > pid']";
        of_run.take(&steps(text), None, &AtomicBool::new(false)).unwrap();
        // The command has ended, and its group with it.
        let said = std::fs::read_to_string(folder.path().join("pid")).unwrap();
        let state = std::fs::read_to_string(format!("/proc/{}/stat", said.trim())).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z "), "{state}");
    }

    #[test]
    fn output_without_end_fills_no_disk() {
        let folder = tempfile::tempdir().unwrap();
        let mut of_run = runner(folder.path());
        of_run.take(&steps("[run: 'head -c 5000000 /dev/zero']"), None, &AtomicBool::new(false)).unwrap();
        drop(of_run);
        let log = std::fs::metadata(folder.path().join(LOG)).unwrap();
        assert!(log.len() <= MOST_OUTPUT as u64, "{} bytes", log.len());
    }

    #[test]
    fn a_command_ends_with_the_wish_to_stop() {
        let folder = tempfile::tempdir().unwrap();
        let interrupted =
            runner(folder.path()).take(&steps("[run: sleep 600]"), None, &AtomicBool::new(true));
        assert!(matches!(interrupted, Err(StepError::Interrupted)));
    }
}
