//! The options of a workload as they were written: names and texts, not yet parsed by any protocol.

use crate::group::Group;
use crate::secret;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command};
use serde::de::{SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use weir_clients::WorkloadError;

/// Options that were given, by name, each with its texts: one, or several where it may be repeated; `true` for a flag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given(pub(crate) BTreeMap<String, Vec<String>>);

impl Given {
    /// The options of these groups that the command line gives; defaults are not given.
    pub fn on_command_line<'a>(matches: &ArgMatches, groups: impl Iterator<Item = &'a Group>) -> Self {
        let mut given = Self::default();
        for option in groups.flat_map(Group::options) {
            let name = option.get_id().as_str();
            if matches.value_source(name) == Some(ValueSource::CommandLine) {
                let texts = matches.get_raw(name).into_iter().flatten();
                given.0.insert(name.to_owned(), texts.map(|text| text.to_string_lossy().into()).collect());
            }
        }
        given
    }

    /// The same with an option.
    #[must_use]
    pub fn with(mut self, name: &str, text: impl Into<String>) -> Self {
        self.0.insert(name.to_owned(), vec![text.into()]);
        self
    }

    /// Leaves the values of secrets out: what is written down has none.
    pub fn forget_secrets(&mut self) {
        for field in self.0.get_mut(secret::HEADER).into_iter().flatten() {
            *field = secret::without_value(field);
        }
    }

    /// The texts of an option; none if it was not given.
    pub fn texts(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// The names of the options that were given.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// What a struct of options says, with its defaults for what was not given. Options of other structs are left alone.
    ///
    /// # Errors
    /// A value that the option cannot have.
    pub fn read<Options: Args>(&self) -> Result<Options, WorkloadError> {
        let matches = understood(Options::augment_args(Command::new("")), self);
        let matches = matches.map_err(WorkloadError::Options)?;
        Options::from_arg_matches(&matches).map_err(|error| WorkloadError::Options(said(&error)))
    }
}

/// What a command line of these options alone is understood as.
///
/// # Errors
/// Clap's words, without what there is to do about a command line.
pub(crate) fn understood(command: Command, given: &Given) -> Result<ArgMatches, String> {
    let mut words = Vec::new();
    for option in command.get_arguments() {
        let (name, flag) = (option.get_id().as_str(), option.get_long().unwrap_or_default());
        for text in given.texts(name) {
            match (option.get_action().takes_values(), &**text) {
                (true, text) => words.push(format!("--{flag}={text}")),
                (false, "true") => words.push(format!("--{flag}")),
                (false, "false") => {}
                (false, other) => return Err(format!("`{name}`: '{other}' is neither true nor false")),
            }
        }
    }
    command.no_binary_name(true).try_get_matches_from(words).map_err(|error| said(&error))
}

fn said(error: &clap::Error) -> String {
    let text = error.to_string();
    // The rest says how to ask for help.
    let said = text.split("\n\n").next().unwrap_or_default();
    said.trim_start_matches("error: ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The texts of one option.
pub(crate) struct Texts(pub(crate) Vec<String>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextsVisitor)
    }
}

struct TextsVisitor;

impl<'de> Visitor<'de> for TextsVisitor {
    type Value = Texts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a number, true or false, or a list of texts")
    }

    fn visit_str<E>(self, text: &str) -> Result<Texts, E> {
        Ok(Texts(vec![text.to_owned()]))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Texts, E> {
        Ok(Texts(vec![value.to_string()]))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Texts, E> {
        Ok(Texts(vec![value.to_string()]))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Texts, E> {
        Ok(Texts(vec![value.to_string()]))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Texts, E> {
        Ok(Texts(vec![value.to_string()]))
    }

    fn visit_unit<E>(self) -> Result<Texts, E> {
        Ok(Texts(Vec::new()))
    }

    fn visit_none<E>(self) -> Result<Texts, E> {
        Ok(Texts(Vec::new()))
    }

    fn visit_seq<List: SeqAccess<'de>>(self, mut list: List) -> Result<Texts, List::Error> {
        let mut texts = Vec::new();
        while let Some(Texts(one)) = list.next_element()? {
            texts.extend(one);
        }
        Ok(Texts(texts))
    }
}

impl Serialize for Given {
    /// As a scenario would have it: a number or a flag is one again.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, texts) in &self.0 {
            match &texts[..] {
                [text] => match (text.parse::<u64>(), text.parse::<bool>()) {
                    (Ok(number), _) if number.to_string() == *text => map.serialize_entry(name, &number)?,
                    (_, Ok(flag)) => map.serialize_entry(name, &flag)?,
                    _ => map.serialize_entry(name, text)?,
                },
                texts => map.serialize_entry(name, texts)?,
            }
        }
        map.end()
    }
}
