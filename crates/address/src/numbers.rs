//! Numbers in the place of stream keys, so that streams can be told apart in what is written down.

use crate::SecretUrl;
use std::collections::HashMap;

/// Numbers of the stream keys of a run, from 1 in the order in which they are first shown. The same key has the same
/// number wherever it is used. A number says nothing about its key: a digest of a short key could be guessed.
#[derive(Debug, Default)]
pub struct KeyNumbers {
    numbers: HashMap<SecretUrl, usize>,
    show: bool,
}

impl KeyNumbers {
    /// With `show`, keys are shown as they are: what `--show-keys` asks for.
    pub fn new(show: bool) -> Self {
        Self { numbers: HashMap::new(), show }
    }

    /// The URL as it may be shown, its key as `…1`.
    pub fn show(&mut self, url: &SecretUrl) -> String {
        if self.show {
            return url.with_key();
        }
        let Some(key) = url.key() else { return url.to_string() };
        let next = self.numbers.len() + 1;
        let number = *self.numbers.entry(SecretUrl::new(key)).or_insert(next);
        url.with_number(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_told_apart_and_found_again_by_their_number() {
        let mut numbers = KeyNumbers::default();
        for (url, shows) in [
            ("rtmp://h/live/abcd", "rtmp://h/live/…1"),
            ("rtmp://h/live/efgh?x=1", "rtmp://h/live/…2?…"),
            ("rtmp://other/live/abcd", "rtmp://other/live/…1"),
            ("http://h/live/efgh.ts", "http://h/live/efgh.ts"),
        ] {
            assert_eq!(numbers.show(&SecretUrl::new(url)), shows);
        }
        let mut shown = KeyNumbers::new(true);
        assert_eq!(shown.show(&SecretUrl::new("rtmp://h/live/abcd?x=1")), "rtmp://h/live/abcd?…");
    }
}
