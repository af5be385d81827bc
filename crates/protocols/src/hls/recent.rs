//! What was last made of the same input. Viewers of one stream get the same playlist within milliseconds and ask for the same part by it:
//! the first of a generator thread reads the playlist and resolves the reference, the others compare bytes.

use std::collections::VecDeque;

/// How many are kept: the playlists of some renditions, and what they name last.
const KEPT: usize = 16;

/// The last things that were made, each beside what it was made of.
#[derive(Debug)]
pub(super) struct RecentCache<K, V>(VecDeque<(K, V)>);

impl<K, V: Clone> RecentCache<K, V> {
    pub(super) const fn new() -> Self {
        Self(VecDeque::new())
    }

    /// What was made of this, if it is kept.
    pub(super) fn get(&mut self, is_this: impl Fn(&K) -> bool) -> Option<V> {
        let place = self.0.iter().rposition(|(key, _)| is_this(key))?;
        // What is asked for stays longest.
        let entry = self.0.remove(place)?;
        let value = entry.1.clone();
        self.0.push_back(entry);
        Some(value)
    }

    /// Keeps what was made, in place of what was not asked for longest.
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
        let mut recent = RecentCache::new();
        for number in 0..=KEPT {
            recent.put(number, number.to_string());
        }
        assert_eq!(recent.get(|key| *key == KEPT).as_deref(), Some("16"));
        assert_eq!(recent.get(|key| *key == 1).as_deref(), Some("1"));
        assert_eq!(recent.get(|key| *key == 0), None);
    }
}
