//! Patterns of topic filters in a tree, one level of a pattern a node: what a topic name costs depends on its own levels and on the
//! patterns that resemble it, not on how many patterns there are.

use std::collections::HashMap;

/// What the root of a tree is called.
const ROOT: u32 = 0;

/// Values by the pattern of a topic filter. [`Self::find`] has those of all patterns that match a topic name, as
/// [`matches`](super::matches) defines it.
#[derive(Clone, Debug)]
pub struct TopicTree<V> {
    nodes: Vec<Node<V>>,
    /// Nodes that are not in use.
    free: Vec<u32>,
    /// Nodes that the levels of a topic so far lead to, and those that one more leads to: kept for their memory.
    here: Vec<u32>,
    ahead: Vec<u32>,
}

/// What the levels of a pattern up to one of them lead to.
#[derive(Clone, Debug)]
struct Node<V> {
    /// By the level that follows.
    named: HashMap<Box<str>, u32>,
    /// Where `+` follows.
    single: Option<u32>,
    /// Of the pattern that goes on with `#`.
    below: Option<V>,
    /// Of the pattern that ends here.
    value: Option<V>,
}

impl<V> Default for Node<V> {
    fn default() -> Self {
        Self { named: HashMap::new(), single: None, below: None, value: None }
    }
}

impl<V> Default for TopicTree<V> {
    fn default() -> Self {
        Self { nodes: vec![Node::default()], free: Vec::new(), here: Vec::new(), ahead: Vec::new() }
    }
}

impl<V> TopicTree<V> {
    /// The value of a well-formed pattern, an empty one if it had none.
    pub fn entry(&mut self, pattern: &str) -> &mut V
    where
        V: Default,
    {
        let (levels, below) = split(pattern);
        let mut at = ROOT;
        for level in levels {
            at = match self.nodes[at as usize].next(level) {
                Some(next) => next,
                None => self.grow(at, level),
            };
        }
        let node = &mut self.nodes[at as usize];
        let place = if below { &mut node.below } else { &mut node.value };
        place.get_or_insert_default()
    }

    /// The value of a pattern, if it has one.
    pub fn get_mut(&mut self, pattern: &str) -> Option<&mut V> {
        let (mut levels, below) = split(pattern);
        let at = levels.try_fold(ROOT, |at, level| self.nodes[at as usize].next(level))?;
        let node = &mut self.nodes[at as usize];
        if below { node.below.as_mut() } else { node.value.as_mut() }
    }

    /// Takes the value of a pattern away, and the memory for it.
    pub fn remove(&mut self, pattern: &str) -> Option<V> {
        let (levels, below) = split(pattern);
        let mut path = vec![(ROOT, "")];
        for level in levels {
            let (at, _) = *path.last()?;
            path.push((self.nodes[at as usize].next(level)?, level));
        }
        let node = &mut self.nodes[path.last()?.0 as usize];
        let value = if below { node.below.take() } else { node.value.take() };
        while let Some((at, level)) = path.pop()
            && let Some((parent, _)) = path.last()
            && self.nodes[at as usize].is_empty()
        {
            // With it goes the memory of its table.
            self.nodes[at as usize] = Node::default();
            self.free.push(at);
            let parent = &mut self.nodes[*parent as usize];
            match level {
                "+" => parent.single = None,
                _ => {
                    parent.named.remove(level);
                }
            }
        }
        if self.free.len() + 1 == self.nodes.len() {
            self.nodes.truncate(1);
            self.nodes.shrink_to_fit();
            self.free = Vec::new();
        }
        value
    }

    /// Calls `on` with the value of each pattern that matches a topic name. Returns what that has cost: how many nodes were
    /// looked at, which is never more than there are.
    pub fn find(&mut self, topic: &str, mut on: impl FnMut(&V)) -> usize {
        let Self { nodes, here, ahead, .. } = self;
        here.clear();
        here.push(ROOT);
        let mut steps = 1;
        // A wildcard does not reach the topics of the server itself (MQTT-4.7.2-1).
        let mut wild = !topic.starts_with('$');
        for level in topic.split('/') {
            ahead.clear();
            for at in &*here {
                let node = &nodes[*at as usize];
                if let Some(value) = node.below.as_ref().filter(|_| wild) {
                    on(value);
                }
                ahead.extend(node.single.filter(|_| wild));
                ahead.extend(node.named.get(level));
            }
            wild = true;
            steps += ahead.len();
            std::mem::swap(here, ahead);
            if here.is_empty() {
                return steps;
            }
        }
        for at in &*here {
            let node = &nodes[*at as usize];
            // Also the level above: sport/# matches sport (section 4.7.1.2).
            [&node.value, &node.below].into_iter().flatten().for_each(&mut on);
        }
        steps
    }

    /// How many levels of patterns are kept; those that patterns begin with alike are kept once.
    pub fn levels(&self) -> usize {
        self.nodes.len() - 1 - self.free.len()
    }

    fn grow(&mut self, at: u32, level: &str) -> u32 {
        let next = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(Node::default());
            self.nodes.len() as u32 - 1
        });
        let node = &mut self.nodes[at as usize];
        match level {
            "+" => node.single = Some(next),
            _ => {
                node.named.insert(level.into(), next);
            }
        }
        next
    }
}

impl<V> Node<V> {
    fn next(&self, level: &str) -> Option<u32> {
        if level == "+" { self.single } else { self.named.get(level).copied() }
    }

    fn is_empty(&self) -> bool {
        self.named.is_empty() && self.single.is_none() && self.below.is_none() && self.value.is_none()
    }
}

/// The levels of a pattern, and whether `#` follows them.
fn split(pattern: &str) -> (impl Iterator<Item = &str>, bool) {
    let (levels, below) = match pattern.strip_suffix('#') {
        // "#" alone has no level before it; "/#" has an empty one.
        Some(before) => (before.strip_suffix('/'), true),
        None => (Some(pattern), false),
    };
    (levels.into_iter().flat_map(|levels| levels.split('/')), below)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(tree: &mut TopicTree<Vec<u32>>, topic: &str) -> Vec<u32> {
        let mut found = Vec::new();
        tree.find(topic, |values| found.extend(values));
        found.sort_unstable();
        found
    }

    #[test]
    fn a_topic_costs_what_resembles_it_and_not_what_there_is() {
        let mut tree = TopicTree::<Vec<u32>>::default();
        for number in 0..10_000 {
            tree.entry(&format!("house/{number}/+/temperature")).push(number);
        }
        tree.entry("house/#").push(10_000);
        let mut values = 0;
        let steps = tree.find("house/17/kitchen/temperature", |_| values += 1);
        assert_eq!((values, steps), (2, 5), "the root and its four levels");
        assert_eq!(tree.find("garden/17", |_| values += 1), 1);
    }

    #[test]
    fn what_is_taken_away_leaves_nothing_behind() {
        let mut tree = TopicTree::<Vec<u32>>::default();
        let patterns = ["#", "/#", "/", "a", "a/#", "a/+/b", "a/+/#", "+/+", "$SYS/#"];
        for (number, pattern) in (0..).zip(patterns) {
            tree.entry(pattern).push(number);
        }
        assert_eq!(found(&mut tree, "a/x/b"), [0, 4, 5, 6]);
        assert_eq!(found(&mut tree, "/"), [0, 1, 2, 7]);
        assert_eq!(found(&mut tree, "$SYS/uptime"), [8]);
        assert_eq!(tree.get_mut("a/+/#"), Some(&mut vec![6]));
        assert_eq!((tree.remove("a/+"), tree.get_mut("b/c")), (None, None));
        for (number, pattern) in (0..).zip(patterns) {
            assert_eq!(tree.remove(pattern), Some(vec![number]), "{pattern}");
        }
        assert_eq!((tree.levels(), tree.nodes.len()), (0, 1));
    }

    #[test]
    fn as_many_levels_as_a_topic_has_room_for_need_no_stack() {
        let mut tree = TopicTree::<Vec<u32>>::default();
        let deep = "a/".repeat(32_767);
        tree.entry(&deep).push(1);
        tree.entry(&format!("{}#", &deep[..65_530])).push(2);
        assert_eq!(found(&mut tree, &deep), [1, 2]);
        assert!(tree.remove(&deep).is_some());
        assert_eq!(tree.levels(), 32_765);
    }
}
