//! One variant of a scenario: a name, and the values that stand in the places of keys.

use std::collections::{BTreeMap, BTreeSet};

/// Words in a key's name that say that its values are secrets.
const SECRET_WORDS: [&str; 5] = ["password", "passwd", "secret", "token", "credential"];

/// Stands in the place of a key, to see whether it would be shown there.
const MARK: &str = "weir-mark";

/// One variant: what it is called, and what stands for each key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    /// Its name in reports and in directories.
    pub name: String,
    /// Its values, as they are written in the place of `{key}`.
    pub values: BTreeMap<String, String>,
    /// Keys whose values are in no name and in no artefact.
    pub secret_keys: BTreeSet<String>,
}

/// Whether the values of a key are secrets: its name says so, one of them is a URL with a secret in it, or it stands in the
/// scenario's text where a URL has one: user and password, query, key of an RTMP stream.
pub(super) fn is_secret(key: &str, values: &[&str], text: &str) -> bool {
    let name = key.to_ascii_lowercase();
    let place = format!("{{{key}}}");
    let hides = |url: &str| url.contains("://") && !weir_clients::shown(url).contains(MARK);
    let words = text.split(|letter: char| letter.is_whitespace() || "'\",[]".contains(letter));
    SECRET_WORDS.iter().any(|word| name.contains(word))
        || values.iter().any(|value| value.contains("://") && weir_clients::shown(value) != **value)
        || words.filter(|word| word.contains(&place)).any(|word| hides(&word.replace(&place, MARK)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_secret_where_a_url_has_secrets_and_where_their_key_says_so() {
        for (text, expected) in [
            ("play: 'rtmp://h/live/a?token={v}'", true),
            ("play: [rtmp://me:{v}@h/live/a]", true),
            ("publish: rtmp://h/live/{v}", true),
            ("play: 'http://h:{v}/a', name: '{v}'", false),
            ("{play: http://h/{v}/a, clients: 3}", false),
            ("before: [run: 'server --workers {v}']", false),
        ] {
            assert_eq!(is_secret("v", &["1", "2"], text), expected, "{text}");
        }
        assert!(is_secret("db_Password", &["1"], ""));
        assert!(is_secret("url", &["http://h/a", "http://me:word@h/a"], "play: '{url}'"));
        assert!(!is_secret("url", &["http://h/a", "http://h/b"], "play: '{url}'"));
    }
}
