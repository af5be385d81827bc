//! weir as a process, run to its end.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};
use weir_testing::KilledOnDrop;

/// weir itself.
pub(crate) fn weir() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.env("COLUMNS", "100").env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

/// What a process said, as text.
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("weir says UTF-8");
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// Runs weir to its end.
pub(crate) fn says<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Said {
    weir().args(arguments).output().unwrap().into()
}

/// weir's RTMP origin as a process of its own, and its address.
pub(crate) fn origin_process(arguments: &[&str]) -> (KilledOnDrop, String) {
    let mut command = weir();
    command.args(["origin", "--rtmp", ":0"]).args(arguments).stdout(Stdio::piped());
    let mut server = KilledOnDrop::start(&mut command);
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (server, line.trim().strip_prefix("listening on ").unwrap().to_owned())
}
