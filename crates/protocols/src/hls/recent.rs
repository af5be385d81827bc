//! What was last made of the same input. Viewers of one stream get the same playlist within milliseconds and ask for the same part by it:
//! the first of a generator thread reads the playlist and resolves the reference, the others compare bytes.

use std::collections::VecDeque;

/// How many are kept: the playlists of some renditions, and what they name last.
const KEPT: usize = 16;

/// The last things that were made, each beside what it was made of.
#[derive(Debug)]
pub(super) struct Recent<K, V>(VecDeque<(K, V)>);

impl<K, V: Clone> Recent<K, V> {
    pub(super) const fn new() -> Self {
        Self(VecDeque::new())
    }

    /// What was made of this, if it was not long ago.
    pub(super) fn get(&self, is_this: impl Fn(&K) -> bool) -> Option<V> {
        self.0.iter().rev().find(|(key, _)| is_this(key)).map(|(_, value)| value.clone())
    }

    /// Keeps what was made, in place of the oldest.
    pub(super) fn put(&mut self, key: K, value: V) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back((key, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_known_and_the_oldest_go() {
        let mut recent = Recent::new();
        for number in 0..=KEPT {
            recent.put(number, number.to_string());
        }
        assert_eq!(recent.get(|key| *key == KEPT).as_deref(), Some("16"));
        assert_eq!(recent.get(|key| *key == 1).as_deref(), Some("1"));
        assert_eq!(recent.get(|key| *key == 0), None);
    }
}
