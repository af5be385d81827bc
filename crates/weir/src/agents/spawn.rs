//! `--nats spawn`: a NATS server for one command, and the line by which agents join it.

use crate::args::AgentOptions;
use crate::print::note;
use rustix::process::Pid;
use weir_agents::spawn::{SpawnError, SpawnedNats};
use weir_runner::{ErrorKind, RunError};

/// Starts a server, if one is asked for, which ends with what is returned.
pub(crate) fn spawn(options: &mut AgentOptions) -> Result<Option<SpawnedNats>, RunError> {
    let Some(listen) = options.to_spawn()? else { return Ok(None) };
    let spawned = SpawnedNats::start(listen).map_err(|error| {
        let exit =
            if matches!(error, SpawnError::Material(_)) { ErrorKind::Internal } else { ErrorKind::Usage };
        RunError::new(exit, error.to_string())
    })?;
    if let Some(group) = Pid::from_raw(spawned.pid() as i32) {
        weir_runner::end_with_weir(group);
    }
    let server = &spawned.server;
    if let (Some(token), Some(fingerprint)) = (&server.token, server.fingerprint) {
        note(format_args!(
            "agents join by: WEIR_NATS_TOKEN={token} weir agent --join {} --tls-fingerprint {fingerprint}",
            server.url
        ));
    }
    options.spawned = Some(server.clone());
    Ok(Some(spawned))
}
