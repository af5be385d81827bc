//! `weir agent`: waits for work.

use crate::args::Agent;
use crate::exit::Exit;
use crate::interrupt::interrupt_flag;
use crate::print::note;
use weir_runner::RunError;
use weir_runner::agents::{self, AgentService};

/// Waits until it is interrupted.
pub(crate) fn serve(args: &Agent) -> Result<Exit, RunError> {
    let service = AgentService {
        server: args.access.server(&args.join)?,
        name: args.name.clone(),
        labels: args.labels.clone(),
        only: args.only.clone(),
        watch: args.watch.clone(),
        most: args.most,
        allow_decode: args.allow_decode,
        bind_addr: args.bind_addr.clone(),
        output: args.output.clone(),
        say: |line| note(line),
    };
    agents::serve(&service, interrupt_flag()?)?;
    Ok(Exit::Passed)
}
