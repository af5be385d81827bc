//! The options of protocols on the command line: what the protocols of a verb declare, which of it was given, and where an
//! origin listens for which of them.

use crate::args::listen_address;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};
use std::marker::PhantomData;
use std::net::SocketAddr;
use weir_protocols::{Given, PROTOCOLS, Serve, Verb, groups_of};

/// The options of a verb's protocols that the command line gives.
#[derive(Clone, Debug)]
pub(crate) struct OptionsOf<V> {
    given: Given,
    verb: PhantomData<V>,
}

/// A verb that has options of protocols.
pub(crate) trait HasOptions {
    const VERB: Verb;
}

/// `weir play`.
#[derive(Clone, Debug)]
pub(crate) enum Plays {}

/// `weir publish`.
#[derive(Clone, Debug)]
pub(crate) enum Publishes {}

impl HasOptions for Plays {
    const VERB: Verb = Verb::Play;
}

impl HasOptions for Publishes {
    const VERB: Verb = Verb::Publish;
}

impl<V> OptionsOf<V> {
    pub(crate) fn given(&self) -> &Given {
        &self.given
    }
}

impl<V: HasOptions> FromArgMatches for OptionsOf<V> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = Given::on_command_line(matches, groups_of(V::VERB).into_iter());
        Ok(Self { given, verb: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<V: HasOptions> Args for OptionsOf<V> {
    fn augment_args(command: Command) -> Command {
        groups_of(V::VERB).into_iter().fold(command, |command, group| group.add_to(command))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

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
