//! `weir compare`: runs of two sides or more are read, and what has changed is said.

use crate::args::Compare;
use crate::exit::Exit;
use crate::print::AnswerOutput;
use weir_answers::compare::{Comparison, LimitFinding, Options};
use weir_report::Report;
use weir_runner::{ErrorKind, RunError, comparison};

/// Compares.
pub(crate) fn compare(args: &Compare) -> Result<Exit, RunError> {
    let sides = if args.base.is_empty() {
        comparison::sides(&args.sides)?
    } else {
        vec![comparison::joined(&args.base)?, comparison::joined(&args.to)?]
    };
    let options = Options {
        margin: args.margin,
        anyway: args.anyway,
        figures: args.figures.clone(),
        limits: args.fail_on.clone(),
    };
    let comparison = comparison::of_sides(&sides, &options)?;
    let asked = AnswerOutput { format: &args.format, json: args.json.as_deref(), quiet: args.quiet };
    asked.print(None, &|format, text, out| comparison.write(format, text, out))?;
    Ok(exit(&comparison))
}

/// A regression that was found is worth more than a limit that could not be judged.
fn exit(comparison: &Comparison) -> Exit {
    let any = |is: fn(&LimitFinding) -> bool| comparison.limits.iter().any(|it| is(&it.finding));
    if any(|it| *it == LimitFinding::Regression) {
        Exit::Regression
    } else if any(|it| matches!(it, LimitFinding::NotJudged(_))) {
        Exit::Failed(ErrorKind::Invalid)
    } else {
        Exit::Passed
    }
}
