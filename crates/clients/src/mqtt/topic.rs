//! The topic in a URL: what stands behind host and `/`, with places for numbers.

use crate::target::{Target, TargetError};
use std::fmt::Write;
use weir_mqtt::topic::{Filter, check_name};

/// What a topic may be filled with, message by message.
const SEQUENCE: &str = "{seq}";

/// What it may be filled with, client by client.
const CLIENT: &str = "{client}";

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
    pub(super) fn of(target: &Target, client: u32) -> Result<Self, TargetError> {
        let text = text(target)?.replace(CLIENT, &client.to_string());
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

/// The topic filter of a URL.
///
/// # Errors
/// The URL has no topic filter, or the filter is malformed.
pub(super) fn filter(target: &Target, client: u32) -> Result<String, TargetError> {
    let text = text(target)?.replace(CLIENT, &client.to_string());
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

    #[test]
    fn a_topic_takes_the_numbers_of_message_and_client() {
        let topic = Topic::of(&target("mqtt://h//XGH/{client}/PYAVRO/{seq}"), 3).unwrap();
        let mut out = String::new();
        topic.write(17, &mut out);
        assert_eq!(out, "/XGH/3/PYAVRO/17");
        Topic::of(&target("mqtt://h/{seq}"), 0).unwrap().write(0, &mut out);
        assert_eq!(out, "0");
        assert_eq!(filter(&target("mqtts://h/a/+/{client}/#"), 2).unwrap(), "a/+/2/#");
        assert_eq!(filter(&target("mqtt://h:1/$share/g/a/#"), 2).unwrap(), "$share/g/a/#");
    }

    #[test]
    fn what_is_no_topic_says_how_to_write_one() {
        for url in ["mqtt://h", "mqtt://h/"] {
            assert!(Topic::of(&target(url), 0).unwrap_err().to_string().contains("mqtt://host/topic"));
            assert!(filter(&target(url), 0).is_err());
        }
        assert!(Topic::of(&target("mqtt://h/a/#"), 0).is_err());
        for url in ["mqtt://h/a#", "mqtt://h/a+/b", "mqtt://h/$share/g"] {
            assert!(filter(&target(url), 0).is_err(), "{url}");
        }
    }
}
