//! Where an origin listens, and for which protocols: what `weir origin` and `--listen` of others read.

use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};
use std::net::{Ipv4Addr, SocketAddr};
use weir_protocols::{PROTOCOLS, Serve};

/// Where an origin listens, and for what.
#[derive(Clone, Debug)]
pub(crate) struct ListenOptions(pub(crate) Vec<(&'static Serve, SocketAddr)>);

/// What can be listened for, each once, in the order of the table of protocols.
pub(crate) fn served() -> Vec<&'static Serve> {
    let mut served: Vec<&'static Serve> = Vec::new();
    for serve in PROTOCOLS.iter().filter_map(|protocol| protocol.serve.as_ref()) {
        if !served.iter().any(|known| known.server.name == serve.server.name) {
            served.push(serve);
        }
    }
    served
}

impl FromArgMatches for ListenOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let at = |serve: &Serve| matches.get_one::<SocketAddr>(serve.server.name).copied();
        Ok(Self(served().into_iter().filter_map(|serve| Some((serve, at(serve)?))).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for ListenOptions {
    fn augment_args(command: Command) -> Command {
        served().into_iter().fold(command, |command, serve| {
            let listen = Arg::new(serve.server.name).long(serve.server.name).value_name("[HOST]:PORT");
            command.arg(listen.value_parser(listen_address).help(serve.help))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// `:1935` and `1935` are on loopback; any other address must be asked for.
pub(crate) fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let port = ["localhost:", ":"].iter().find_map(|before| text.strip_prefix(before));
    match port.unwrap_or(text).parse::<u16>() {
        Ok(port) => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        Err(_) => text
            .parse()
            .map_err(|_| format!("'{text}' is not an address; write :1935, 0.0.0.0:1935 or [::]:1935")),
    }
}
