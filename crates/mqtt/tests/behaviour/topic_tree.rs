//! A tree of patterns finds what section 4.7 says that they match, whatever was put in and taken away before.

use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::HashMap;
use weir_mqtt::topic::{Filter, TopicTree, matches};

fn level() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b", "", "ab", "$SYS"])
}

fn topic() -> impl Strategy<Value = String> {
    vec(level(), 1..6).prop_map(|levels| levels.join("/")).prop_filter("no topic", |topic| !topic.is_empty())
}

fn pattern() -> impl Strategy<Value = String> {
    let level = prop_oneof![2 => level(), 1 => Just("+")];
    (vec(level, 0..6), any::<bool>())
        .prop_map(|(mut levels, below)| {
            levels.extend(below.then_some("#"));
            levels.join("/")
        })
        .prop_filter("no pattern", |pattern| Filter::parse_unshared(pattern).is_ok())
}

proptest! {
    #[test]
    fn a_tree_finds_the_patterns_that_match_and_no_others(
        changes in vec((pattern(), any::<bool>()), 0..60), topics in vec(topic(), 1..20),
    ) {
        let (mut tree, mut list) = (TopicTree::<Vec<usize>>::default(), HashMap::<String, Vec<usize>>::new());
        for (number, (pattern, kept)) in changes.into_iter().enumerate() {
            if kept {
                tree.entry(&pattern).push(number);
                list.entry(pattern).or_default().push(number);
            } else {
                prop_assert_eq!(tree.remove(&pattern), list.remove(&pattern));
            }
        }
        for topic in topics {
            let mut found = Vec::new();
            let steps = tree.find(&topic, |values| found.extend(values.iter().copied()));
            let matching = list.iter().filter(|(pattern, _)| matches(pattern, &topic));
            let mut expected: Vec<usize> = matching.flat_map(|(_, values)| values.iter().copied()).collect();
            found.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(found, expected, "{}", topic);
            prop_assert!(steps <= tree.levels() + 1);
        }
        for (pattern, values) in list {
            prop_assert_eq!(tree.get_mut(&pattern), Some(&mut values.clone()));
            prop_assert_eq!(tree.remove(&pattern), Some(values));
        }
        prop_assert_eq!(tree.levels(), 0);
    }
}
