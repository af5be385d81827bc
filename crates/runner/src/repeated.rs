//! Turn after turn of a series or a sweep, each in a directory of its own, until one fails or somebody interrupts.

use crate::run_directory::name_of;
use crate::session::Session;
use crate::{ErrorKind, RunError};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use weir_answers::series::Ending;
use weir_answers::table::{TableFigure, TableRun};
use weir_engine::record;
use weir_engine::scenario::{Turn, Variant};
use weir_engine::summary::{Summary, VerdictState};

/// The turns, and where their directories are made.
pub(crate) struct Repeated<'a> {
    /// What one of them is: a run, or a search.
    pub(crate) noun: &'static str,
    pub(crate) turns: &'a [Turn],
    pub(crate) variants: Vec<Variant>,
    pub(crate) repeat: u32,
    pub(crate) whole: &'a Path,
}

impl Repeated<'_> {
    /// Has `make` make each turn in its directory; what it returns is a failure that ends them. Says how they ended.
    ///
    /// # Errors
    /// A directory cannot be made, or those of `make`.
    pub(crate) fn each(
        &self,
        session: &mut Session<'_>,
        mut make: impl FnMut(Turn, &Path, &mut Session<'_>) -> Result<Option<RunError>, RunError>,
    ) -> Result<(Ending, Option<RunError>), RunError> {
        let (noun, of, repeat) = (self.noun, self.turns.len(), self.repeat);
        let mut trouble = None;
        for (number, turn) in (1..).zip(self.turns) {
            if session.interrupt.load(Relaxed) {
                break;
            }
            let name = &self.variants[turn.variant].name;
            session.watcher.line(&format!(
                "{noun} {number} of {of}: {name}, repetition {} of {repeat}",
                turn.repetition
            ));
            let own = self.whole.join(format!("{number:03}-{name}"));
            record::make_private(&own).map_err(RunError::with(ErrorKind::Internal))?;
            trouble = make(*turn, &own, session)?;
            if trouble.is_some() {
                break;
            }
        }
        Ok((ending(session.interrupt, trouble.as_ref()), trouble))
    }
}

/// What is kept of a run, and what its figures are called. A run in which nothing was measured has its own line as a reason.
pub(crate) fn kept_run(
    variant: &str,
    turn: Turn,
    own: &Path,
    summary: &Summary,
) -> (TableRun, Vec<TableFigure>) {
    let (mut run, figures) = TableRun::new(variant, turn.repetition, name_of(own), summary);
    if run.verdict == VerdictState::NothingMeasured {
        run.reason = weir_report::shortfall(summary).or(run.reason);
    }
    (run, figures)
}

/// How what was to be made several times ended.
pub(crate) fn ending(interrupt: &AtomicBool, trouble: Option<&RunError>) -> Ending {
    match trouble {
        _ if interrupt.load(Relaxed) => Ending::Interrupted,
        Some(failure) => failure.ending(),
        None => Ending::Completed,
    }
}
