//! Options as keys of a workload in a scenario: which there are, how their values look, and where their files are.

use crate::given::{Given, Texts, understood};
use crate::group::Group;
use crate::protocol::{Protocol, Verb};
use crate::table::PROTOCOLS;
use clap::builder::Resettable;
use clap::{Arg, ArgAction, Command, Id, ValueHint};
use schemars::Schema;
use serde::de::{DeserializeSeed, Error, MapAccess};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use std::any::TypeId;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use weir_setting::Setting;

/// The one kind of value behind which there is a number and no path, as in `size:955`.
const SIZE: &str = "size";

/// Every option of every protocol, by its name.
pub fn declared() -> &'static BTreeMap<String, Arg> {
    static DECLARED: OnceLock<BTreeMap<String, Arg>> = OnceLock::new();
    DECLARED.get_or_init(|| {
        let groups = PROTOCOLS.iter().flat_map(|protocol| protocol.groups());
        let options = groups.flat_map(Group::options);
        options.map(|option| (option.get_id().to_string(), option)).collect()
    })
}

impl Given {
    /// Takes relative paths as relative to `folder`: those of options that name a file, and behind `kind:` of those that
    /// may name one, as in `file:PATH`.
    pub fn resolve(&mut self, folder: &Path) {
        self.each_file(&mut |path| *path = folder.join(&*path));
    }

    /// Shows every path of a file to `change`: those of options that name a file, and behind `kind:` of those that may name one.
    pub fn each_file(&mut self, change: &mut dyn FnMut(&mut PathBuf)) {
        let mut changed = |path: &str| {
            let mut path = PathBuf::from(path);
            change(&mut path);
            path.display().to_string()
        };
        for (name, texts) in &mut self.0 {
            let hint = declared().get(name).map(Arg::get_value_hint);
            for text in texts {
                *text = match (hint, text.split_once(':')) {
                    (Some(ValueHint::FilePath), _) => changed(text),
                    // A file may be called by a number as well: anything else has a kind that says so.
                    (Some(ValueHint::AnyPath), Some((kind, path))) if !path.is_empty() && kind != SIZE => {
                        format!("{kind}:{}", changed(path))
                    }
                    _ => continue,
                };
            }
        }
    }

    /// Takes the next value of a map, if its key is an option's name.
    ///
    /// # Errors
    /// A value that the option cannot have.
    pub fn take<'de, Map: MapAccess<'de>>(&mut self, key: &str, map: &mut Map) -> Result<bool, Map::Error> {
        let Some(option) = declared().get(key) else { return Ok(false) };
        let texts = map.next_value_seed(OptionValue(option))?;
        if !texts.is_empty() {
            self.0.insert(key.to_owned(), texts);
        }
        Ok(true)
    }
}

/// The texts of an option, which understands each of them. An error has the place of the value.
struct OptionValue<'a>(&'a Arg);

impl<'de> DeserializeSeed<'de> for OptionValue<'_> {
    type Value = Vec<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<String>, D::Error> {
        let Texts(texts) = Texts::deserialize(deserializer)?;
        let given = Given([(self.0.get_id().to_string(), texts.clone())].into());
        // What it conflicts with is seen when all are read together.
        let alone = Command::new("").arg(self.0.clone().conflicts_with(Resettable::<Id>::Reset));
        understood(alone, &given).map_err(D::Error::custom)?;
        Ok(texts)
    }
}

impl Protocol {
    /// Refuses options that a workload of this verb does not have: a user who gives one believes that it has an effect.
    ///
    /// # Errors
    /// The first of them, whose it is, and what there is instead.
    pub fn check(&self, verb: Verb, given: &Given) -> Result<(), String> {
        let known = options_of(self, verb);
        let Some(name) = given.names().find(|name| !known.iter().any(|it| it == name)) else { return Ok(()) };
        let has = |other: &&&Self, verb: Verb| options_of(other, verb).iter().any(|it| it == name);
        let of = |verb| PROTOCOLS.iter().filter(move |other| has(other, verb));
        let whose: Vec<_> = of(verb).map(|protocol| protocol.named()).collect();
        let elsewhere = [Verb::Play, Verb::Publish].into_iter().find(|verb| of(*verb).next().is_some());
        let whose = match (&whose[..], elsewhere) {
            ([], None) => "no option".to_owned(),
            ([], Some(elsewhere)) => format!("an option of `{}`", elsewhere.name()),
            (whose, _) => format!("an option of {}", whose.join(", ")),
        };
        let there = if known.is_empty() { "no options".to_owned() } else { known.join(", ") };
        let setting = Setting::of(name);
        Err(format!(
            "{} is {whose} and means nothing to {}; leave it out; `{}` has {there}",
            setting.beside_flag(format!(" (`{name}`)")),
            self.named(),
            verb.name(),
        ))
    }
}

fn options_of(protocol: &Protocol, verb: Verb) -> Vec<String> {
    let groups = protocol.options(verb).unwrap_or_default();
    groups.iter().flat_map(Group::options).map(|option| option.get_id().to_string()).collect()
}

/// Adds every option to the JSON Schema of an object.
pub fn add_to_schema(schema: &mut Schema) {
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    properties.extend(declared().iter().map(|(name, option)| (name.clone(), value_schema(option))));
}

/// The JSON Schema of an option's value in a scenario.
fn value_schema(option: &Arg) -> Value {
    let help = option.get_help().map(ToString::to_string).unwrap_or_default();
    let words: Vec<String> =
        option.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    let kind = option.get_value_parser().type_id();
    let is_number = [
        TypeId::of::<u8>(),
        TypeId::of::<u16>(),
        TypeId::of::<u32>(),
        TypeId::of::<u64>(),
        TypeId::of::<i32>(),
    ]
    .iter()
    .any(|number| kind == *number);
    let one = match option.get_action() {
        ArgAction::SetTrue => json!({ "type": "boolean" }),
        _ if is_number => json!({ "type": "integer" }),
        // A name that looks like a number needs no quotes: 3.1, 5.
        _ if words.is_empty() => json!({ "type": ["string", "number"] }),
        _ => json!({ "enum": words }),
    };
    let mut schema = match option.get_action() {
        ArgAction::Append => json!({ "anyOf": [one, { "type": "array", "items": one }] }),
        _ => one,
    };
    schema["description"] = help.into();
    let defaults = option.get_default_values();
    if let [default] = defaults {
        schema["default"] = default.to_string_lossy().into();
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::of_scheme;

    #[test]
    fn an_option_of_another_is_refused_with_whose_it_is_and_what_there_is() {
        let given = Given::default().with("buffer", "2s").with("qos", "1");
        let rtmp = of_scheme("rtmp").unwrap();
        let said = rtmp.check(Verb::Play, &given).unwrap_err();
        assert_eq!(
            said,
            "`qos` is an option of mqtt:// and mqtts:// and mqtt+ws:// and mqtt+wss:// and means nothing to rtmp:// and rtmps://; leave it out; \
             `play` has witness_every, decode, buffer, digest_handshake, end_grace, reconnect"
        );
        assert_eq!(of_scheme("mqtt").unwrap().check(Verb::Play, &Given::default().with("qos", "1")), Ok(()));
        let said = of_scheme("bulk").unwrap().check(Verb::Publish, &given).unwrap_err();
        assert!(said.contains("`buffer` is an option of `play`"), "{said}");
    }

    #[test]
    fn every_option_says_what_it_is_and_every_scheme_is_one_protocols() {
        for (name, option) in declared() {
            assert!(option.get_help().is_some() && option.get_long().is_some(), "{name}");
            assert_eq!(
                name.replace('_', "-").trim_end_matches('s'),
                option.get_long().unwrap().trim_end_matches('s')
            );
        }
        let mut schemes: Vec<_> = crate::table::schemes().collect();
        let count = schemes.len();
        schemes.sort_unstable();
        schemes.dedup();
        assert_eq!(schemes.len(), count);
    }
}
