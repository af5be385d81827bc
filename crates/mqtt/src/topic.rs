//! Topic names and topic filters (section 4.7 of both standards; shared subscriptions, MQTT 5 section 4.8.2).

mod tree;

pub use tree::TopicTree;

use crate::error::Violation;
use crate::field::Fields;

/// What a shared subscription begins with.
pub const SHARE: &str = "$share/";

/// A topic filter that cannot be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum FilterError {
    /// It is empty, or its part after the share name is (MQTT-4.7.3-1).
    #[error("the topic filter is empty (MQTT-4.7.3-1)")]
    Empty,
    /// It contains U+0000 (MQTT-4.7.3-2).
    #[error("the topic filter contains U+0000 (MQTT-4.7.3-2)")]
    NullCharacter,
    /// It is longer than 65,535 bytes (MQTT-4.7.3-3).
    #[error("the topic filter is longer than 65,535 bytes (MQTT-4.7.3-3)")]
    TooLong,
    /// `#` is not a level of its own, or not the last one (MQTT-4.7.1-1; 4.7.1-2 in 3.1.1).
    #[error("# must be the last level of a topic filter, and all of it (MQTT-4.7.1-1)")]
    MultiLevel,
    /// `+` is not a level of its own (MQTT-4.7.1-2; 4.7.1-3 in 3.1.1).
    #[error("+ must be a whole level of a topic filter (MQTT-4.7.1-2)")]
    SingleLevel,
    /// A share name is empty or has a wildcard, or no filter follows it (MQTT-4.8.2-1, MQTT-4.8.2-2).
    #[error("a shared subscription is $share/NAME/FILTER, and NAME has no wildcards (MQTT-4.8.2-2)")]
    Share,
}

/// A topic filter that has been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Filter<'a> {
    /// The name that those share who divide the messages among them; `None` if each gets all.
    pub share: Option<&'a str>,
    /// What matches.
    pub pattern: &'a str,
}

impl<'a> Filter<'a> {
    /// Reads a topic filter, shared or not. The standard of 3.1.1 takes `$share/…` for an ordinary one ([`Self::parse_unshared`]);
    /// mosquitto, HiveMQ and Artemis share for its clients too.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn parse(text: &'a str) -> Result<Self, FilterError> {
        let Some(shared) = text.strip_prefix(SHARE) else { return Self::parse_unshared(text) };
        let (name, pattern) = shared.split_once('/').ok_or(FilterError::Share)?;
        if name.is_empty() || name.contains(['+', '#']) || pattern.is_empty() {
            return Err(FilterError::Share);
        }
        check_length(text)?;
        Ok(Self { share: Some(name), ..Self::parse_unshared(pattern)? })
    }

    /// Reads a topic filter to which `$share` means nothing.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn parse_unshared(pattern: &'a str) -> Result<Self, FilterError> {
        if pattern.is_empty() {
            return Err(FilterError::Empty);
        }
        check_length(pattern)?;
        if pattern.contains('\0') {
            return Err(FilterError::NullCharacter);
        }
        let mut levels = pattern.split('/').peekable();
        while let Some(level) = levels.next() {
            if level.contains('#') && (level != "#" || levels.peek().is_some()) {
                return Err(FilterError::MultiLevel);
            }
            if level.contains('+') && level != "+" {
                return Err(FilterError::SingleLevel);
            }
        }
        Ok(Self { share: None, pattern })
    }

    /// Whether there are wildcards in it.
    pub fn has_wildcards(&self) -> bool {
        self.pattern.contains(['+', '#'])
    }

    /// Whether a topic name matches.
    #[inline]
    pub fn matches(&self, topic: &str) -> bool {
        matches(self.pattern, topic)
    }
}

/// Whether a topic name matches the pattern of a filter. Both are taken for well-formed.
#[inline]
pub fn matches(pattern: &str, topic: &str) -> bool {
    // A wildcard does not reach the topics of the server itself (MQTT-4.7.2-1).
    if topic.starts_with('$') && pattern.starts_with(['+', '#']) {
        return false;
    }
    let mut topic_levels = topic.split('/');
    let mut levels = pattern.split('/');
    loop {
        match (levels.next(), topic_levels.next()) {
            // Also the level above: sport/# matches sport (section 4.7.1.2).
            (Some("#"), _) => return true,
            (Some("+"), Some(_)) => {}
            (Some(level), Some(topic_level)) if level == topic_level => {}
            (None, None) => return true,
            _ => return false,
        }
    }
}

/// Whether a topic name may be published to (section 4.7.3).
///
/// # Errors
/// It is empty, or has a wildcard or U+0000 in it. Its length is not looked at.
#[inline]
pub fn check_name(name: &str) -> Result<(), Violation> {
    if name.is_empty() {
        return Err(Violation::TopicEmpty);
    }
    check_characters(name.as_bytes())
}

/// Takes a topic name off a packet; it may be empty, where an alias stands for it.
#[inline]
pub(crate) fn take_name<'a>(fields: &mut Fields<'a>) -> Result<&'a str, Violation> {
    let bytes = fields.binary()?;
    check_characters(bytes)?;
    std::str::from_utf8(bytes).map_err(|_| Violation::IllFormedText)
}

#[inline]
fn check_characters(name: &[u8]) -> Result<(), Violation> {
    // No early end: so the compiler makes it a loop over many bytes at a time.
    let odd = name.iter().fold(false, |odd, byte| odd | matches!(byte, 0 | b'+' | b'#'));
    if !odd {
        return Ok(());
    }
    Err(if name.contains(&0) { Violation::NullCharacter } else { Violation::TopicWildcard })
}

fn check_length(text: &str) -> Result<(), FilterError> {
    if text.len() > crate::MAX_FIELD_LENGTH { Err(FilterError::TooLong) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The non-normative examples of MQTT 5 sections 4.7.1 and 4.7.2.
    #[test]
    fn filters_match_what_the_standard_says_they_match() {
        let player = "sport/tennis/player1";
        for (pattern, topic, expected) in [
            ("sport/tennis/player1/#", player, true),
            ("sport/tennis/player1/#", "sport/tennis/player1/ranking", true),
            ("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", true),
            ("sport/#", "sport", true),
            ("sport/#", "sports", false),
            ("#", player, true),
            ("#", "/", true),
            ("sport/tennis/+", player, true),
            ("sport/tennis/+", "sport/tennis/player2", true),
            ("sport/tennis/+", "sport/tennis/player1/ranking", false),
            ("sport/+", "sport", false),
            ("sport/+", "sport/", true),
            ("+/+", "/finance", true),
            ("/+", "/finance", true),
            ("+", "/finance", false),
            ("+/tennis/#", player, true),
            ("#", "$SYS/monitor/Clients", false),
            ("+/monitor/Clients", "$SYS/monitor/Clients", false),
            ("$SYS/#", "$SYS/monitor/Clients", true),
            ("$SYS/monitor/+", "$SYS/monitor/Clients", true),
            ("ACCOUNTS", "Accounts", false),
            ("a/b", "a/b/", false),
            ("a//b", "a//b", true),
            ("a/+/b", "a//b", true),
        ] {
            assert_eq!(Filter::parse(pattern).unwrap().matches(topic), expected, "{pattern} {topic}");
        }
    }

    #[test]
    fn filters_that_sections_4_7_and_4_8_forbid_are_refused() {
        for (text, error) in [
            ("", FilterError::Empty),
            ("sport/tennis#", FilterError::MultiLevel),
            ("sport/tennis/#/ranking", FilterError::MultiLevel),
            ("sport+", FilterError::SingleLevel),
            ("a\0", FilterError::NullCharacter),
            ("$share", FilterError::Empty),
            ("$share/", FilterError::Share),
            ("$share/a", FilterError::Share),
            ("$share/a/", FilterError::Share),
            ("$share//a", FilterError::Share),
            ("$share/+/a", FilterError::Share),
            ("$share/a#/a", FilterError::Share),
            ("$share/a/b#", FilterError::MultiLevel),
        ] {
            // `$share` without a level below it is an ordinary topic.
            let expected = if text == "$share" { Ok(()) } else { Err(error) };
            assert_eq!(Filter::parse(text).map(|_| ()), expected, "{text}");
        }
        let long = "x".repeat(65_536);
        assert_eq!(Filter::parse(&long), Err(FilterError::TooLong));
    }

    #[test]
    fn a_shared_filter_is_a_name_and_a_filter() {
        let filter = Filter::parse("$share/consumer1/sport/tennis/+").unwrap();
        assert_eq!(filter, Filter { share: Some("consumer1"), pattern: "sport/tennis/+" });
        assert!(filter.matches("sport/tennis/a") && filter.has_wildcards());
        assert_eq!(Filter::parse("$share/g//finance").unwrap().pattern, "/finance");
        assert!(Filter::parse_unshared("$share/+/a").unwrap().share.is_none());
    }

    #[test]
    fn a_topic_name_has_no_wildcards() {
        assert_eq!(check_name("a/b c/€"), Ok(()));
        assert_eq!(check_name(""), Err(Violation::TopicEmpty));
        assert_eq!(check_name("a/+"), Err(Violation::TopicWildcard));
        assert_eq!(check_name("a#"), Err(Violation::TopicWildcard));
        assert_eq!(check_name("a\0"), Err(Violation::NullCharacter));
    }
}
