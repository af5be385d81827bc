//! `weir report`: a run directory read back, summed up again, printed.

use crate::answer;
use crate::args::Report;
use crate::exit::Exit;
use crate::print::{check_print, print};
use crate::run::explained;
use std::path::Path;
use weir_answers::capacity::CapacitySummary;
use weir_answers::series::SeriesSummary;
use weir_answers::sweep::SweepSummary;
use weir_runner::RunError;
use weir_runner::answer::{Answer, check_summary};
use weir_runner::artefacts::write_artefacts;
use weir_runner::recompute::{self, RecomputedRun};

/// Prints the report of a finished or crashed run.
pub(crate) fn report(args: &Report) -> Result<Exit, RunError> {
    check_print(&args.print)?;
    let Some(directory) = &args.directory else { return merged(args) };
    let answer = shown::<SeriesSummary>(directory, args)
        .or_else(|| shown::<CapacitySummary>(directory, args))
        .or_else(|| shown::<SweepSummary>(directory, args));
    if let Some(answer) = answer {
        return answer;
    }
    check_summary(directory)?;
    let RecomputedRun { summary, .. } = recompute::of_run(directory)?;
    if args.write {
        write_artefacts(&summary, directory)?;
    }
    print(&summary, &args.print, directory)?;
    Ok(explained(&summary))
}

/// The answer of several runs that is in the directory, if it is of this kind.
fn shown<A: Answer>(directory: &Path, args: &Report) -> Option<Result<Exit, RunError>> {
    let found = A::read(directory)?;
    let kept = if args.write { found.keep(directory) } else { Ok(()) };
    let shown = kept.and_then(|()| answer::show(&found, &args.print, directory));
    Some(shown.map(|()| answer::explained(&found)))
}

/// Prints the report of the parts that agents have kept.
fn merged(args: &Report) -> Result<Exit, RunError> {
    let summary = recompute::of_parts(&args.merge)?;
    print(&summary, &args.print, &args.merge[0])?;
    Ok(explained(&summary))
}
