//! The topic in a URL: what stands behind host and `/`, with places for numbers.

use super::template::ClientNames;
use crate::target::{Target, TargetError};
use std::fmt::Write;
use weir_mqtt::topic::{Filter, SHARE, check_name};

/// What a topic may be filled with, message by message.
const SEQUENCE: &str = "{seq}";

/// The topic that messages of one publisher go to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Topic {
    /// What stands between the places of the sequence number.
    parts: Vec<String>,
}

impl Topic {
    /// The topic names of a URL.
    ///
    /// # Errors
    /// The URL has no topic, or the topic has a wildcard.
    pub(super) fn of(target: &Target, names: &ClientNames) -> Result<Self, TargetError> {
        let text = names.fill(text(target)?);
        let parts: Vec<_> = text.split(SEQUENCE).map(str::to_owned).collect();
        if check_name(&text).is_err() {
            return Err(incomplete(target, "a topic to publish to has no + or # in it"));
        }
        Ok(Self { parts })
    }

    /// Its name, if all messages have the same.
    pub(super) fn only(&self) -> Option<&str> {
        if let [name] = &self.parts[..] { Some(name) } else { None }
    }

    /// Whether a filter matches the topics of all messages: a level either takes any number or names one.
    pub(super) fn always_matches(&self, filter: &Filter<'_>) -> bool {
        let mut name = String::new();
        (0..2).all(|sequence_number| {
            self.write(sequence_number, &mut name);
            filter.matches(&name)
        })
    }

    /// Writes the topic of a message.
    #[inline]
    pub(super) fn write(&self, sequence_number: u64, out: &mut String) {
        out.clear();
        for (position, part) in self.parts.iter().enumerate() {
            if position > 0 {
                // A string takes all.
                let _ = write!(out, "{sequence_number}");
            }
            out.push_str(part);
        }
    }
}

/// The topic filter of a URL, and others beside it.
///
/// # Errors
/// The URL has no topic filter, or one of the filters is malformed.
pub(super) fn filters(
    target: &Target,
    others: &[String],
    names: &ClientNames,
) -> Result<Vec<String>, TargetError> {
    let filters = std::iter::once(text(target)?).chain(others.iter().map(String::as_str));
    let filters: Vec<_> = filters.map(|text| checked(target, names.fill(text))).collect::<Result<_, _>>()?;
    let shared = filters.iter().filter(|filter| filter.starts_with(SHARE)).count();
    if shared > 0 && filters.len() > 1 {
        return Err(incomplete(target, "a shared subscription stands alone; leave the other filters out"));
    }
    Ok(filters)
}

/// The template of a URL's topic.
///
/// # Errors
/// The URL has none.
pub(super) fn template(target: &Target) -> Result<&str, TargetError> {
    text(target)
}

/// Whether a text is a topic filter, shared or not.
///
/// # Errors
/// The rule that it breaks.
pub fn check_filter(text: &str) -> Result<(), String> {
    Filter::parse(text).map(drop).map_err(|error| error.to_string())
}

fn checked(target: &Target, text: String) -> Result<String, TargetError> {
    match Filter::parse(&text) {
        Ok(_) => Ok(text),
        Err(error) => {
            let missing = match error {
                weir_mqtt::topic::FilterError::MultiLevel => {
                    "# must be the last level of a topic filter, and all of it"
                }
                weir_mqtt::topic::FilterError::SingleLevel => "+ must be a whole level of a topic filter",
                weir_mqtt::topic::FilterError::Share => {
                    "a shared subscription is mqtt://host/$share/NAME/FILTER, and NAME has no wildcards"
                }
                _ => "a topic filter has 1 to 65,535 bytes, and no U+0000",
            };
            Err(incomplete(target, missing))
        }
    }
}

fn text(target: &Target) -> Result<&str, TargetError> {
    let text = target.path.strip_prefix('/').unwrap_or(&target.path);
    if text.is_empty() {
        return Err(incomplete(target, "no topic in the path; write mqtt://host/topic"));
    }
    Ok(text)
}

fn incomplete(target: &Target, missing: &'static str) -> TargetError {
    TargetError::Incomplete { url: target.to_string(), missing }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mqtt::SCHEMES;

    fn target(url: &str) -> Target {
        Target::parse(url, "play", SCHEMES).unwrap()
    }

    fn client(number: u32) -> ClientNames {
        let (user, id) = ("kim".to_owned(), format!("c-{number}"));
        ClientNames { number: number.to_string(), user, id, random: 0 }
    }

    fn filter(url: &str, number: u32) -> Result<Vec<String>, TargetError> {
        filters(&target(url), &[], &client(number))
    }

    #[test]
    fn a_topic_takes_what_message_and_client_have() {
        let topic = |url, number| Topic::of(&target(url), &client(number)).unwrap();
        let mut out = String::new();
        topic("mqtt://h//XGH/{client}/PYAVRO/{seq}", 3).write(17, &mut out);
        assert_eq!(out, "/XGH/3/PYAVRO/17");
        topic("mqtt://h/{seq}", 0).write(0, &mut out);
        assert_eq!(out, "0");
        topic("mqtt://h/{user}/{id}/{random:5}", 7).write(0, &mut out);
        assert!(out.starts_with("kim/c-7/") && out.len() == 13, "{out}");
        assert_eq!(filter("mqtts://h/a/+/{client}/#", 2).unwrap(), ["a/+/2/#"]);
        assert_eq!(filter("mqtt://h:1/$share/g/a/#", 2).unwrap(), ["$share/g/a/#"]);
    }

    #[test]
    fn a_subscriber_may_have_filters_beside_that_of_its_url_unless_it_shares() {
        let others = ["b/{user}/#".to_owned(), "c".to_owned()];
        let of = |url| filters(&target(url), &others, &client(1));
        assert_eq!(of("mqtt://h/a/#").unwrap(), ["a/#", "b/kim/#", "c"]);
        assert!(of("mqtt://h/$share/g/a").unwrap_err().to_string().contains("stands alone"));
        let wild = ClientNames { user: "+x".into(), ..client(1) };
        assert!(filters(&target("mqtt://h/a"), &others, &wild).is_err());
        assert!(Topic::of(&target("mqtt://h/{user}"), &wild).is_err());
    }

    #[test]
    fn what_is_no_topic_says_how_to_write_one() {
        for url in ["mqtt://h", "mqtt://h/"] {
            let said = Topic::of(&target(url), &client(0)).unwrap_err().to_string();
            assert!(said.contains("mqtt://host/topic"));
            assert!(filter(url, 0).is_err());
        }
        assert!(Topic::of(&target("mqtt://h/a/#"), &client(0)).is_err());
        for url in ["mqtt://h/a#", "mqtt://h/a+/b", "mqtt://h/$share/g"] {
            assert!(filter(url, 0).is_err(), "{url}");
        }
    }
}
