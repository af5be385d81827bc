//! The topic in a URL: what stands behind host and `/`, with places for numbers.

use super::SCHEMES;
use super::template::{ClientNames, MessageTemplate, Part, parts};
use crate::WorkloadError;
use crate::target::{Target, TargetError};
use weir_mqtt::topic::{Filter, SHARE, check_name};

/// The topic that messages of one publisher go to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Topic(MessageTemplate);

impl Topic {
    /// The topic names of a URL.
    ///
    /// # Errors
    /// The URL has no topic, the topic has a wildcard, or a choice in it is more than one level.
    pub(super) fn of(target: &Target, names: &ClientNames) -> Result<Self, TargetError> {
        let template = MessageTemplate::of_topic(text(target)?, names);
        let is_name = |text: &str| check_name(text).is_ok();
        let is_level = |text: &str| text.is_empty() || is_name(text);
        // The longest number is that of a message; the shortest text is an empty choice.
        let shortest = if template.choices().any(str::is_empty) { "" } else { "0" };
        let lengths = ["18446744073709551615", shortest];
        if !lengths.iter().all(|text| is_name(&template.with(text))) || !template.choices().all(is_level) {
            return Err(incomplete(target, "a topic to publish to has no + or # in it"));
        }
        if template.choices().any(|choice| choice.contains('/')) {
            return Err(incomplete(target, "a choice in a topic has no / in it"));
        }
        Ok(Self(template))
    }

    /// Its name, if all messages have the same.
    pub(super) fn only(&self) -> Option<&str> {
        self.0.only()
    }

    /// Whether a filter matches the topics of all messages: a level either takes any text or names one.
    pub(super) fn always_matches(&self, filter: &Filter<'_>) -> bool {
        ["0", "1"].iter().all(|text| filter.matches(&self.0.with(text)))
    }

    /// Writes the topic of a message.
    #[inline]
    pub(super) fn write(&self, sequence_number: u64, out: &mut String) {
        out.clear();
        self.0.write(sequence_number, 0, out);
    }
}

/// Whether the topic of a URL differs from message to message.
///
/// # Errors
/// The URL has none.
pub(super) fn differs(target: &Target) -> Result<bool, TargetError> {
    Ok(MessageTemplate::of_topic(text(target)?, &ClientNames::default()).only().is_none())
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

/// Whether a URL to play is of a shared subscription.
pub fn is_shared(url: &str) -> bool {
    Target::parse(url, "play", SCHEMES).is_ok_and(|it| text(&it).is_ok_and(|topic| topic.starts_with(SHARE)))
}

/// Whether what is published to one URL matches the filter of another at the same broker, or one of those beside it, whatever stands in
/// the topic's places. Of a filter with places that is unknown, and of a shared subscription others may have everything.
pub fn always_matches(play: &str, others: &[String], publish: &str) -> bool {
    let parsed = |url, verb| Target::parse(url, verb, SCHEMES).ok();
    let Some((to_play, to_publish)) = parsed(play, "play").zip(parsed(publish, "publish")) else {
        return false;
    };
    let (Ok(filter), Ok(topic)) = (text(&to_play), text(&to_publish)) else { return false };
    // Names of users may be more than one level.
    let is_named = parts(topic).any(|part| matches!(part, Part::User | Part::Id));
    let names = ClientNames { number: "0".to_owned(), ..ClientNames::default() };
    let topic = Topic(MessageTemplate::of_topic(topic, &names));
    let is_always_matched = |filter: &str| {
        let filter = Filter::parse(filter).ok().filter(|it| it.share.is_none() && !it.pattern.contains('{'));
        filter.is_some_and(|filter| topic.always_matches(&filter))
    };
    (&to_play.host, to_play.port) == (&to_publish.host, to_publish.port)
        && !is_named
        && std::iter::once(filter).chain(others.iter().map(String::as_str)).any(is_always_matched)
}

/// Whether a text is a topic filter, shared or not.
///
/// # Errors
/// The rule that it breaks.
pub fn check_filter(text: &str) -> Result<(), String> {
    Filter::parse(text).map(drop).map_err(|error| error.to_string())
}

/// Whether answers can be sent to a topic (MQTT-3.3.2-14).
///
/// # Errors
/// It is malformed.
pub(super) fn check_response_topic(topic: &str) -> Result<(), WorkloadError> {
    check_name(topic).map_err(|_| {
        WorkloadError::Options(format!(
            "response_topic: '{topic}' is not a topic to publish to: 1 to 65,535 bytes without +, # and U+0000"
        ))
    })
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

    #[test]
    fn what_a_subscriber_of_the_same_run_must_hear_is_known_where_no_place_can_keep_it_from_matching() {
        for (filter, topic, expected) in [
            ("mqtt://h/a", "mqtt://h/a", true),
            ("mqtt://h/a/#", "mqtt://h:1883/a/{client}/{seq}", true),
            ("mqtt://h/a/+", "mqtt://h/a/{choice:b|c}", true),
            ("mqtt://h/a/{client}", "mqtt://h/a/{client}", false),
            ("mqtt://h/a/1", "mqtt://h/a/{client}", false),
            ("mqtt://h/a/b", "mqtt://h/a/{choice:b|c}", false),
            ("mqtt://h/a/+", "mqtt://h/a/{user}", false),
            ("mqtt://h/$share/g/a", "mqtt://h/a", false),
            ("mqtt://h/#", "mqtt://h/$a", false),
            ("mqtt://h/a", "mqtt://i/a", false),
            ("mqtt://h/a", "mqtt://h:1884/a", false),
            ("mqtt://h/a", "rtmp://h/a", false),
        ] {
            assert_eq!(always_matches(filter, &[], topic), expected, "{filter} {topic}");
        }
        assert!(always_matches("mqtt://h/x", &["a/#".to_owned()], "mqtt://h/a"));
        assert!(is_shared("mqtts://h/$share/g/#") && !is_shared("mqtt://h/a/$share/g"));
    }

    fn target(url: &str) -> Target {
        Target::parse(url, "play", SCHEMES).unwrap()
    }

    fn client(number: u32) -> ClientNames {
        let (user, id) = ("kim".to_owned(), format!("c-{number}"));
        ClientNames { number: number.to_string(), user, id, ..ClientNames::default() }
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
    fn a_topic_has_numbers_and_choices_of_each_message_and_filters_match_those_that_take_any() {
        let topic = Topic::of(&target("mqtt://h/s/{number:1..3}/{choice:hot|cold}"), &client(1)).unwrap();
        let names = |topic: &Topic| -> std::collections::BTreeSet<String> {
            let mut out = String::new();
            let name = |number| {
                topic.write(number, &mut out);
                out.clone()
            };
            (0..100).map(name).collect()
        };
        let all = names(&topic);
        assert_eq!(all.len(), 6, "{all:?}");
        assert!(all.contains("s/1/hot") && all.contains("s/3/cold"), "{all:?}");
        for (filter, matches) in [("s/+/+", true), ("s/#", true), ("s/+/hot", false), ("s/1/+", false)] {
            assert_eq!(topic.always_matches(&Filter::parse(filter).unwrap()), matches, "{filter}");
        }
        for url in ["mqtt://h/{choice:a|+}", "mqtt://h/{choice:a|b/c}"] {
            assert!(Topic::of(&target(url), &client(1)).is_err(), "{url}");
        }
        for (url, differs) in [
            ("mqtt://h/{client}/{random:3}", false),
            ("mqtt://h/{seq}", true),
            ("mqtt://h/{number:1..2}", true),
        ] {
            assert_eq!(super::differs(&target(url)).unwrap(), differs, "{url}");
        }
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
