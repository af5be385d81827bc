//! `weir doctor`: what this machine can generate, and what stands in the way.

use crate::args::Doctor;
use crate::exit::Exit;
use crate::interrupt::interrupt_flag;
use crate::print::written;
use std::io::Write;
use std::path::Path;
use weir_observe::Environment;
use weir_runner::doctor::{Consultation, apply, ceiling, changes, head, limits, plan, size};
use weir_runner::prepare::raise_descriptors;
use weir_runner::{ErrorKind, RunError};

/// Prints limits with remedies, then measures the ceiling against the built-in origin, or what a planned load needs.
pub(crate) fn doctor(args: &Doctor) -> Result<Exit, RunError> {
    let interrupt = interrupt_flag()?;
    let planned = args.plan.as_deref().map(plan).transpose()?;
    let (environment, descriptors) = (Environment::read(), raise_descriptors());
    say(&head(&environment))?;
    limits(&environment, descriptors).iter().try_for_each(|line| say(line))?;
    let changes = changes(&environment, descriptors);
    for change in &changes {
        let verb = if args.fix { "writes" } else { "would write" };
        say(&format!("  --fix {verb} {}: {}", change.path, change.text.trim_end().replace('\n', "; ")))?;
    }
    if args.fix {
        apply(Path::new("/"), &changes)?;
    }
    if args.no_load {
        return Ok(Exit::Passed);
    }
    let program = std::env::current_exe().map_err(RunError::with(ErrorKind::Internal))?;
    let consultation = Consultation { program: &program, interrupt: &interrupt, say: &mut say };
    let missed = match &planned {
        Some(plan) => size(plan, consultation)?,
        None => ceiling(args.most, consultation)?,
    };
    Ok(missed.into())
}

fn say(line: &str) -> Result<(), RunError> {
    let mut out = std::io::stdout().lock();
    written(writeln!(out, "{line}").and_then(|()| out.flush()))
}
