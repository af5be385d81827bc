//! `weir demo`: origin, publisher, viewers and report on this machine alone.

use crate::args::Demo;
use crate::conduct::conduct;
use crate::exit::{Exit, Failure};
use crate::load::{add_options, span};
use crate::prepare::prepare;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use weir_engine::scenario::{OneOrMany, Scenario, StageSpec, WorkloadSpec};

/// Viewers of each step.
const STEPS: [u32; 3] = [100, 200, 400];
/// Ten seconds of figures and one of warm-up.
const HOLD: Duration = Duration::from_secs(11);

/// An origin in a process of its own, so that its CPU is told from weir's.
pub(crate) struct OriginProcess {
    child: Child,
    /// `host:port`.
    pub(crate) address: String,
}

impl OriginProcess {
    /// Starts one on a free loopback port. Ctrl-C on a terminal is not for it: it would be gone before its viewers.
    /// It ends when this process is gone, however that went.
    pub(crate) fn start(arguments: &[&str]) -> Result<Self, Failure> {
        let internal =
            |cause: String| Failure::new(Exit::Internal, format!("the origin did not start: {cause}"));
        let program = std::env::current_exe().map_err(|error| internal(error.to_string()))?;
        let mut child = Command::new(program)
            .args(["origin", "--rtmp", "127.0.0.1:0", "--until-stdin-ends"])
            .args(arguments)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| internal(error.to_string()))?;
        let mut line = String::new();
        let read = child.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
        match line.trim().strip_prefix("listening on rtmp://") {
            Some(address) => Ok(Self { child, address: address.to_owned() }),
            None => {
                let _ = child.kill();
                let _ = child.wait();
                Err(internal(format!("it said {line:?} ({read:?})")))
            }
        }
    }

    /// How to watch it.
    pub(crate) fn watch(&self) -> String {
        format!("pid={}", self.child.id())
    }
}

impl Drop for OriginProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the demo.
pub(crate) fn demo(args: &Demo) -> Result<Exit, Failure> {
    let origin = OriginProcess::start(&["--merge", "100ms"])?;
    let url = OneOrMany(vec![format!("rtmp://{}/live/demo", origin.address)]);
    let stage = |clients: &u32| StageSpec {
        clients: *clients,
        hold: HOLD.into(),
        ramp: span(Duration::from_millis(500)),
    };
    let mut scenario = Scenario {
        name: "demo".to_owned(),
        workloads: vec![
            WorkloadSpec { publish: url.clone(), bitrate: "500kbps".parse().ok(), ..WorkloadSpec::default() },
            WorkloadSpec {
                play: url,
                delay: span(Duration::from_secs(1)),
                stages: STEPS.iter().map(stage).collect(),
                ..WorkloadSpec::default()
            },
        ],
        warmup: span(Duration::from_millis(500)),
        watch: vec![origin.watch()],
        thresholds: ["failed.ratio <= 0", "startup.p99 < 1s"].iter().flat_map(|text| text.parse()).collect(),
        ..Scenario::default()
    };
    add_options(&mut scenario, &args.run);
    conduct(prepare(scenario, Exit::Usage)?, &args.run)
}
