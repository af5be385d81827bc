//! One variant of a scenario: a name, and the values that stand in the places of keys.

use std::collections::{BTreeMap, BTreeSet};

/// Words in a key's name that say that its values are secrets.
const SECRET_WORDS: [&str; 8] =
    ["password", "passwd", "passphrase", "secret", "token", "credential", "header", "cookie"];

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
/// scenario's text where a URL has one in any of the variants: user and password, query, key of an RTMP stream.
pub(super) fn is_secret(key: &str, variants: &[Variant], text: &str) -> bool {
    let name = key.to_ascii_lowercase();
    let place = format!("{{{key}}}");
    let hides = |url: &str| url.contains("://") && !weir_clients::shown(url).contains(MARK);
    let words = text.split(|letter: char| letter.is_whitespace() || "'\",[]".contains(letter));
    let mut values = variants.iter().filter_map(|variant| variant.values.get(key));
    SECRET_WORDS.iter().any(|word| name.contains(word))
        || values.any(|value| value.contains("://") && weir_clients::shown(value) != *value)
        || words.filter(|word| word.contains(&place)).any(|word| {
            let mut marked = variants.iter().map(|variant| variant.with(key, MARK).fill(word));
            marked.any(|word| hides(&word))
        })
}

impl Variant {
    /// The same with another value, or one more.
    pub(super) fn with(&self, key: &str, value: &str) -> Self {
        let mut with = self.clone();
        with.values.insert(key.to_owned(), value.to_owned());
        with
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variants(key: &str, values: &[&str]) -> Vec<Variant> {
        values.iter().map(|value| Variant::default().with(key, value)).collect()
    }

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
            assert_eq!(is_secret("v", &variants("v", &["1", "2"]), text), expected, "{text}");
        }
        assert!(is_secret("db_Password", &variants("db_Password", &["1"]), ""));
        let of_urls = |values: &[&str]| is_secret("url", &variants("url", values), "play: '{url}'");
        assert!(of_urls(&["http://h/a", "http://me:word@h/a"]));
        assert!(!of_urls(&["http://h/a", "http://h/b"]));
    }

    #[test]
    fn a_value_is_secret_whose_place_is_one_only_with_the_values_of_other_keys() {
        let of_server = |server: &str| {
            let variant = Variant::default().with("server", server).with("v", "1");
            is_secret("v", &[variant], "publish: '{server}/live/{v}'")
        };
        assert!(of_server("rtmp://h"));
        assert!(!of_server("http://h"));
    }
}
