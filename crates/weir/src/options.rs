//! The options of protocols on the command line: what the protocols of a verb declare, and which of it was given.

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use std::marker::PhantomData;
use weir_protocols::{Given, Verb, groups_of};

/// The options of a verb's protocols that the command line gives.
#[derive(Clone, Debug)]
pub(crate) struct OptionsOf<V> {
    given: Given,
    verb: PhantomData<V>,
}

/// A verb that has options of protocols: those of the workloads that it makes.
pub(crate) trait HasOptions {
    const VERBS: &'static [Verb];
}

/// `weir play`.
#[derive(Clone, Debug)]
pub(crate) enum Plays {}

/// `weir publish`.
#[derive(Clone, Debug)]
pub(crate) enum Publishes {}

/// `weir capacity`.
#[derive(Clone, Debug)]
pub(crate) enum Searches {}

impl HasOptions for Plays {
    const VERBS: &'static [Verb] = &[Verb::Play];
}

impl HasOptions for Publishes {
    const VERBS: &'static [Verb] = &[Verb::Publish];
}

impl HasOptions for Searches {
    const VERBS: &'static [Verb] = &[Verb::Play, Verb::Publish];
}

impl<V> OptionsOf<V> {
    pub(crate) fn given(&self) -> &Given {
        &self.given
    }
}

impl<V: HasOptions> FromArgMatches for OptionsOf<V> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = Given::on_command_line(matches, groups_of(V::VERBS).into_iter());
        Ok(Self { given, verb: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<V: HasOptions> Args for OptionsOf<V> {
    fn augment_args(command: Command) -> Command {
        groups_of(V::VERBS).into_iter().fold(command, |command, group| group.add_to(command))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
