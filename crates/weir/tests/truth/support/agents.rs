//! Agents as processes of this machine, at a NATS server of their own.

use super::machines::{FIRST, Machines, NETWORK};
use super::process::{says, weir};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;
use weir_testing::{KilledOnDrop, NatsServer, soon};

/// Agents a, b, c and so on, and the server at which they wait.
pub(crate) struct Crew {
    pub(crate) nats: NatsServer,
    pub(crate) agents: Vec<KilledOnDrop>,
    /// Where agents join, and coordinators call.
    url: String,
    folder: TempDir,
}

impl Crew {
    /// So many agents that wait for work.
    pub(crate) fn start(count: u8) -> Self {
        let mut crew = Self::at(NatsServer::start());
        (0..count).for_each(|number| crew.add(&char::from(b'a' + number).to_string(), &[]));
        crew.wait(count.into());
        crew
    }

    /// Nobody yet, at this server.
    pub(crate) fn at(nats: NatsServer) -> Self {
        let url = nats.url();
        Self { nats, agents: Vec::new(), url, folder: tempfile::tempdir().unwrap() }
    }

    /// One a machine of these, called a, b, c and so on, at a server on the first one, where this thread is.
    pub(crate) fn on(machines: &Machines) -> Self {
        let mut crew = Self::at(NatsServer::with(&["-a", "0.0.0.0"]));
        crew.url = format!("nats://{FIRST}:{}", crew.nats.port());
        for number in 0..machines.others() {
            let name = char::from(b'a' + number as u8).to_string();
            machines.at(1 + number, || crew.add(&name, &["--only", NETWORK]));
        }
        crew.wait(machines.others());
        crew
    }

    /// One more.
    pub(crate) fn add(&mut self, name: &str, arguments: &[&str]) {
        self.start_agent(weir(), name, arguments);
    }

    /// One more, that another program starts.
    pub(crate) fn add_in(&mut self, program: &[&str], name: &str, arguments: &[&str]) {
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).arg(env!("CARGO_BIN_EXE_weir")).stdin(Stdio::null());
        self.start_agent(command, name, arguments);
    }

    fn start_agent(&mut self, mut command: Command, name: &str, arguments: &[&str]) {
        command.args(["agent", "--join", &self.url, "--name", name, "-o"]).arg(self.folder.path());
        command.args(arguments);
        let log = std::fs::File::create(self.folder.path().join(format!("{name}.log"))).unwrap();
        self.agents.push(KilledOnDrop::start(command.stdout(Stdio::null()).stderr(log)));
    }

    /// Until this many are free.
    pub(crate) fn wait(&self, count: usize) {
        soon("agents wait for work", || self.list().matches(" free").count() == count);
    }

    /// What `weir agents` says.
    pub(crate) fn list(&self) -> String {
        says(["agents", "--nats", &self.url]).out
    }

    /// What an agent has said.
    pub(crate) fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(format!("{name}.log"))).unwrap()
    }

    /// The run directories of an agent.
    pub(crate) fn directories(&self, name: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let is_its = |path: &Path| {
            let of = path.file_name().unwrap().to_string_lossy().into_owned();
            path.is_dir() && of.starts_with(&format!("{name}-"))
        };
        paths.filter(|path| is_its(path)).collect()
    }

    /// The words that have these agents make the load.
    pub(crate) fn words(&self, count: usize) -> [String; 4] {
        ["--agents".to_owned(), count.to_string(), "--nats".to_owned(), self.url.clone()]
    }
}
