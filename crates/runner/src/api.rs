//! Runs, searches and comparisons for other people's tests.
//!
//! Nothing is printed, no signal is caught, and no file stays unless a directory is asked for. Runs of one process take turns: each is to
//! have the machine for itself. All work is done on threads of its own, so that a call is allowed in a runtime's test, too, where it
//! blocks its thread until the run is over.

mod search;
mod stop;

pub use search::Capacity;
pub use stop::StopHandle;

use crate::run_directory::directory;
use crate::session::Session;
use crate::stepped::SteppedRun;
use crate::{ErrorKind, RunError, comparison, prepare};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use weir_answers::compare::{Comparison, Options};
use weir_engine::run::Unseen;
use weir_engine::scenario::{OneOrMany, Scenario, WorkloadSpec};
use weir_engine::summary::{self, VerdictState};
use weir_shard::clock;

/// One run at a time.
static TURN: Mutex<()> = Mutex::new(());

/// A run of clients against a server.
///
/// A builder: what is not said is as on the command line. [`publish`](Self::publish), [`play`](Self::play), [`and_play`](Self::and_play) and
/// [`and_publish`](Self::and_publish) each begin a workload, and what is said of clients is of the last one.
///
/// ```no_run
/// use std::time::Duration;
/// use weir_runner::Run;
///
/// # fn main() -> Result<(), weir_runner::RunError> {
/// let summary = Run::play("rtmp://127.0.0.1/live/a")
///     .clients(500)
///     .hold(Duration::from_secs(30))
///     .watch("name=nginx")
///     .threshold("startup.p99 < 3s")?
///     .run()?;
/// summary.assert_passed();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a run is made by `run`"]
pub struct Run {
    scenario: Scenario,
    directory: Option<PathBuf>,
    stop: StopHandle,
}

impl Run {
    /// Viewers of a URL: one of them for 30 s, unless more is said.
    pub fn play(url: impl Into<String>) -> Self {
        Self::of("play", playing(url.into()))
    }

    /// Publishers to a URL.
    pub fn publish(url: impl Into<String>) -> Self {
        Self::of("publish", publishing(url.into()))
    }

    /// What a scenario says.
    pub fn scenario(scenario: Scenario) -> Self {
        Self { scenario, directory: None, stop: StopHandle::default() }
    }

    /// What a scenario in YAML says, as `weir run` takes it.
    ///
    /// # Errors
    /// It is no scenario.
    pub fn yaml(text: &str) -> Result<Self, RunError> {
        Scenario::parse(text).map(Self::scenario).map_err(RunError::with(ErrorKind::Scenario))
    }

    fn of(name: &str, workload: WorkloadSpec) -> Self {
        Self::scenario(Scenario { name: name.to_owned(), workloads: vec![workload], ..Scenario::default() })
    }

    /// Viewers of a URL beside what there is.
    pub fn and_play(mut self, url: impl Into<String>) -> Self {
        self.scenario.workloads.push(playing(url.into()));
        self
    }

    /// Publishers to a URL beside what there is.
    pub fn and_publish(mut self, url: impl Into<String>) -> Self {
        self.scenario.workloads.push(publishing(url.into()));
        self
    }

    fn last(mut self, change: impl FnOnce(&mut WorkloadSpec)) -> Self {
        if let Some(workload) = self.scenario.workloads.last_mut() {
            change(workload);
        }
        self
    }

    /// How many clients there are at a time.
    pub fn clients(self, clients: u32) -> Self {
        self.last(|it| it.clients = Some(clients))
    }

    /// How long all of them are held.
    pub fn hold(self, time: Duration) -> Self {
        self.last(|it| it.duration = Some(time.into()))
    }

    /// How long after the begin of the run the first of them comes: a stream is on air by then, for example.
    pub fn delay(self, time: Duration) -> Self {
        self.last(|it| it.delay = Some(time.into()))
    }

    /// An option of the protocol, by the key that it has in a scenario: `("bitrate", "2mbps")`. One that the protocol does not have is
    /// refused by [`run`](Self::run).
    pub fn option(self, key: &str, value: impl Into<String>) -> Self {
        self.last(|it| it.options = std::mem::take(&mut it.options).with(key, value))
    }

    /// Time after each ramp that is left out of the figures; 2 s if it is not said.
    pub fn warmup(mut self, time: Duration) -> Self {
        self.scenario.warmup = Some(time.into());
        self
    }

    /// A process of the target: `name=nginx`, `pid=123` or `port=1935`.
    pub fn watch(mut self, what: impl Into<String>) -> Self {
        self.scenario.watch.push(what.into());
        self
    }

    /// What is asked of the target: `startup.p99 < 3s`.
    ///
    /// # Errors
    /// It is no threshold. Whether the run has its figure is said by [`run`](Self::run).
    pub fn threshold(mut self, text: &str) -> Result<Self, RunError> {
        self.scenario.thresholds.push(text.parse().map_err(RunError::with(ErrorKind::Usage))?);
        Ok(self)
    }

    /// Keeps the run directory there: a new or an empty one.
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// What ends the run early, from another thread: what was measured up to then is summed up.
    #[must_use]
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// Runs, with the steps of the scenario, and sums up: thresholds that fail are in the summary and no error.
    ///
    /// # Errors
    /// There was no run: what was asked for is wrong, or the target gives no answer to what is asked before. Or something failed behind
    /// it: a step of `after`, a file that could not be written.
    pub fn run(self) -> Result<Summary, RunError> {
        on_a_thread(|| {
            let Self { scenario, directory: kept, stop } = self;
            prepare::plan(&scenario, ErrorKind::Scenario)?;
            let place = OutputDirectory::new(kept.as_deref(), &scenario.name)?;
            let (folder, directory) = (Path::new(""), place.path());
            let run = SteppedRun { scenario: &scenario, variant: None, repetition: 1, folder, directory };
            let mut session = Session { agents: None, watcher: &mut Unseen, interrupt: stop.flag() };
            let (summary, trouble) = run.measure(&mut session)?;
            trouble.map_or(Ok(Summary(summary)), Err)
        })
    }
}

fn playing(url: String) -> WorkloadSpec {
    WorkloadSpec { play: OneOrMany(vec![url]), ..held() }
}

fn publishing(url: String) -> WorkloadSpec {
    WorkloadSpec { publish: OneOrMany(vec![url]), ..held() }
}

fn held() -> WorkloadSpec {
    WorkloadSpec { duration: Some(Duration::from_secs(30).into()), ..WorkloadSpec::default() }
}

/// What a run came to; all of it, and whether it passed.
#[derive(Clone, Debug)]
pub struct Summary(summary::Summary);

impl Summary {
    /// Whether it can be believed, and met all that was asked.
    pub fn has_passed(&self) -> bool {
        ErrorKind::of_summary(&self.0).is_none()
    }

    /// Whether its figures are the target's. On a machine that was busy with something else they are not, and the run is worth another try.
    pub fn can_be_believed(&self) -> bool {
        self.0.verdict.state != VerdictState::Invalid
    }

    /// For tests.
    ///
    /// # Panics
    /// With the line that says why it did not pass.
    #[track_caller]
    pub fn assert_passed(&self) {
        assert!(self.has_passed(), "{}", weir_report::shortfall(&self.0).unwrap_or_default());
    }
}

impl Deref for Summary {
    type Target = summary::Summary;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// What has changed from the runs of one directory to those of another: a run, a folder of runs, or a series of one variant.
///
/// # Errors
/// One cannot be read, or they cannot be compared.
pub fn compare(base: &Path, other: &Path) -> Result<Comparison, RunError> {
    let sides = comparison::sides(&[base, other].map(|it| it.display().to_string()))?;
    comparison::of_sides(&sides, &Options::default())
}

/// Does this once no other run goes on, on a thread that is in no runtime.
fn on_a_thread<T: Send>(work: impl FnOnce() -> Result<T, RunError> + Send) -> Result<T, RunError> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        let working = std::thread::Builder::new().name("weir-run".to_owned()).spawn_scoped(scope, work);
        let working = working.map_err(RunError::with(ErrorKind::Internal))?;
        working.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A run directory, which goes unless it is to be kept.
enum OutputDirectory {
    Given(PathBuf),
    Temporary(tempfile::TempDir),
}

impl OutputDirectory {
    fn new(kept: Option<&Path>, name: &str) -> Result<Self, RunError> {
        match kept {
            Some(_) => directory(kept, name, clock::wall_nanos() / 1_000_000_000).map(Self::Given),
            None => tempfile::tempdir().map(Self::Temporary).map_err(RunError::with(ErrorKind::Internal)),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Given(path) => path,
            Self::Temporary(directory) => directory.path(),
        }
    }
}
