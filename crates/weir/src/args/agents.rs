//! `weir agent`, `weir agents`, and the options of every verb that makes load on which machines make it.

use super::values::{network, tag};
use crate::listen::listen_address;
use clap::{Args, ValueHint};
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use weir_agents::NatsServer;
use weir_agents::fingerprint::Fingerprint;
use weir_agents::frame::AgentName;
use weir_observe::Watch;
use weir_runner::agents::AgentSettings;
use weir_runner::prepare::Generators;
use weir_runner::{ErrorKind, RunError};

/// What every verb takes that makes load.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Many machines")]
pub(crate) struct AgentOptions {
    /// Let N agents make the load, each a part of it, and add up what they count
    #[arg(long, value_name = "N", requires = "nats", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) agents: Option<u16>,
    /// The NATS server at which the agents wait: nats://host:4222, tls://host:4222, or spawn for one of this run's own on
    /// 127.0.0.1, spawn:HOST:PORT for one there; how to join it is printed
    #[arg(long, value_name = "URL", requires = "agents", value_hint = ValueHint::Url)]
    pub(crate) nats: Option<String>,
    /// Agents that may be lost without an end to the run
    #[arg(long, value_name = "K", requires = "agents", default_value_t = 0)]
    pub(crate) allow_lost: u16,
    #[command(flatten)]
    pub(crate) access: NatsAccess,
    /// The server that was started for this run.
    #[arg(skip)]
    pub(crate) spawned: Option<NatsServer>,
}

impl AgentOptions {
    /// Where a server is to be started for this run, if that is asked for.
    pub(crate) fn to_spawn(&self) -> Result<Option<SocketAddr>, RunError> {
        let Some(place) = self.nats.as_deref().and_then(|nats| nats.strip_prefix("spawn")) else {
            return Ok(None);
        };
        let place = place.strip_prefix(':').unwrap_or("127.0.0.1:0");
        let usage =
            |error| RunError::new(ErrorKind::Usage, format!("--nats spawn:{place}: {error}; give HOST:PORT"));
        listen_address(place).map(Some).map_err(usage)
    }

    /// The server at which agents wait, if they are to make the load.
    pub(crate) fn server(&self) -> Result<Option<NatsServer>, RunError> {
        match (&self.spawned, &self.nats) {
            (Some(server), _) => Ok(Some(server.clone())),
            (None, Some(url)) => self.access.server(url).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// The agents that are to make the load, if they are.
    ///
    /// # Errors
    /// What is to be read of the NATS server's credentials cannot be.
    pub(crate) fn settings(&self) -> Result<Option<AgentSettings>, RunError> {
        let (Some(count), Some(server)) = (self.agents, self.server()?) else { return Ok(None) };
        Ok(Some(AgentSettings { count, server, losses_allowed: self.allow_lost }))
    }

    /// Which generators make the load.
    pub(crate) fn generators(&self) -> Generators {
        if self.agents.is_some() { Generators::Elsewhere } else { Generators::Here }
    }
}

/// The credentials at a NATS server.
#[derive(Clone, Debug, Args)]
pub(crate) struct NatsAccess {
    /// File whose first line is the token of the NATS server [environment: the token itself in WEIR_NATS_TOKEN]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "creds")]
    nats_token_file: Option<PathBuf>,
    /// Credentials for the NATS server, as `nsc` writes them
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    creds: Option<PathBuf>,
    /// PEM file of certificates to trust the NATS server by; it must then speak TLS
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    tls_ca: Option<PathBuf>,
    /// SHA-256 of the one certificate to take of the NATS server
    #[arg(long, value_name = "HEX", conflicts_with = "tls_ca")]
    tls_fingerprint: Option<Fingerprint>,
}

/// Where a token may be, too.
const TOKEN: &str = "WEIR_NATS_TOKEN";

impl NatsAccess {
    /// The server at this URL.
    pub(crate) fn server(&self, url: &str) -> Result<NatsServer, RunError> {
        let token = match &self.nats_token_file {
            Some(path) => {
                let text = weir_files::read_secret(path).map_err(|error| {
                    RunError::new(ErrorKind::Usage, format!("{}: {error}", path.display()))
                })?;
                Some(text.lines().next().unwrap_or_default().trim().to_owned())
            }
            None => std::env::var(TOKEN).ok().filter(|token| !token.is_empty() && self.creds.is_none()),
        };
        Ok(NatsServer {
            url: url.to_owned(),
            token,
            credentials: self.creds.clone(),
            authorities: self.tls_ca.clone(),
            fingerprint: self.tls_fingerprint,
        })
    }
}

/// `weir agent`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Agent {
    /// The NATS server at which to wait for work: nats://host:4222, or tls://host:4222
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) join: String,
    /// What it is called [default: the host's name and a number]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<AgentName>,
    /// A label that it carries: zone=a; repeatable
    #[arg(long = "label", value_name = "K=V", value_parser = tag)]
    pub(crate) labels: Vec<(String, String)>,
    /// Networks, or single addresses, that it may load: 10.0.0.0/8; repeatable [default: this machine alone, 127.0.0.0/8 and ::1/128]
    #[arg(long, value_name = "CIDR", value_parser = network)]
    pub(crate) only: Vec<IpNet>,
    /// Make no load, and read these processes of this machine through every run: name=nginx, pid=123 or port=1935; repeatable
    #[arg(long, value_name = "WHAT", conflicts_with_all = ["only", "most", "bind_addr"])]
    pub(crate) watch: Vec<Watch>,
    /// Clients that it may be given, at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) most: Option<u32>,
    /// Run the ffmpeg in PATH for workloads that are to be decoded: it parses what a server sends
    #[arg(long)]
    pub(crate) allow_decode: bool,
    /// Local address to connect from; repeat to use several in turn
    #[arg(long, value_name = "IP")]
    pub(crate) bind_addr: Vec<IpAddr>,
    /// Folder of the run directories that it keeps [default: weir-runs]
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) access: NatsAccess,
}

/// `weir agents`.
#[derive(Clone, Debug, Args)]
pub(crate) struct AgentList {
    /// The NATS server at which they wait: nats://host:4222, or tls://host:4222
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) nats: String,
    #[command(flatten)]
    pub(crate) access: NatsAccess,
}
