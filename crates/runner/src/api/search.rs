//! How much a server carries, for other people's tests.

use super::{OutputDirectory, Run, StopHandle, on_a_thread};
use crate::capacity::{CapacitySearch, SearchSettings, SearchedVariant};
use crate::generators::Generators;
use crate::session::Session;
use crate::{ErrorKind, RunError};
use std::path::Path;
use std::time::Duration;
use weir_answers::capacity::CapacitySummary;
use weir_engine::run::Unseen;
use weir_engine::scenario::LoadKind;

/// A search for how much a server carries.
///
/// ```no_run
/// use std::time::Duration;
/// use weir_runner::{Capacity, Run};
///
/// # fn main() -> Result<(), weir_runner::RunError> {
/// let found = Capacity::of(Run::play("rtmp://127.0.0.1/live/a").threshold("startup.p99 < 3s")?)
///     .budget(Duration::from_secs(300))
///     .find()?;
/// assert!(found.answer.bounds.lower.is_some_and(|viewers| viewers >= 100));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a search is made by `find`"]
pub struct Capacity {
    run: Run,
    settings: SearchSettings,
    at_least: Option<u32>,
}

impl Capacity {
    /// Of what a run plays, or publishes if it plays nothing; how many clients it has is what is searched for.
    pub fn of(run: Run) -> Self {
        Self { run, settings: SearchSettings::default(), at_least: None }
    }

    /// What is counted.
    pub fn counting(mut self, kind: LoadKind) -> Self {
        self.settings.of = Some(kind);
        self
    }

    /// Time for the whole search: then it says what it has; 20 min if it is not said.
    pub fn budget(mut self, time: Duration) -> Self {
        self.settings.budget = time;
        self
    }

    /// Time over which thresholds are judged, at least two groups of pictures; 5 s if it is not said. What a load is held for is a multiple
    /// of it.
    pub fn slice(mut self, time: Duration) -> Self {
        self.settings.slice = time;
        self
    }

    /// The load to begin with.
    pub fn from(mut self, load: u32) -> Self {
        self.settings.from = Some(load);
        self
    }

    /// The largest load that may be tried.
    pub fn most(mut self, load: u32) -> Self {
        self.settings.most = Some(load);
        self
    }

    /// Only whether this load is carried: [`CapacitySummary::carries_at_least`] says it.
    pub fn at_least(mut self, load: u32) -> Self {
        self.at_least = Some(load);
        self
    }

    /// A command that is run before each trial: a restart of the server.
    pub fn prepare(mut self, command: impl Into<String>) -> Self {
        self.settings.prepare = Some(command.into());
        self
    }

    /// What ends the search early, from another thread.
    #[must_use]
    pub fn stop_handle(&self) -> StopHandle {
        self.run.stop_handle()
    }

    /// Searches.
    ///
    /// # Errors
    /// What was asked for is wrong, or a trial could not be made.
    pub fn find(self) -> Result<CapacitySummary, RunError> {
        on_a_thread(|| {
            let Run { scenario, directory, stop } = self.run;
            let place = OutputDirectory::new(directory.as_deref(), &scenario.name)?;
            let of = SearchedVariant {
                variant: None,
                repetition: 1,
                folder: Path::new(""),
                wrong: ErrorKind::Scenario,
            };
            let trials =
                CapacitySearch::new(scenario, &self.settings, &Generators::Here, of)?.only(self.at_least)?;
            let mut session = Session { agents: None, watcher: &mut Unseen, interrupt: stop.flag() };
            let (summary, trouble) = trials.hunt(self.settings.budget, None, place.path(), &mut session)?;
            trouble.map(|()| summary)
        })
    }
}
