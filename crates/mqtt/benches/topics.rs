//! A topic name against a thousand filters: by the tree that the origin has, and one filter after the other as section 4.7
//! defines it. CPU time of this thread a message; each filter is of another client, and one matches.

use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use weir_mqtt::topic::{TopicTree, matches};

const FILTERS: usize = 1_000;
const MESSAGES: usize = 100_000;

fn main() {
    // `cargo test` runs benches as well, and wants to know only whether this one runs.
    let quick = std::env::args().all(|argument| argument != "--bench");
    let messages = if quick { MESSAGES / 100 } else { MESSAGES };
    let patterns: Vec<String> = (0..FILTERS).map(|number| format!("house/{number}/+/temperature")).collect();
    let topics: Vec<String> =
        (0..FILTERS).map(|number| format!("house/{number}/kitchen/temperature")).collect();
    let mut tree = TopicTree::<Vec<usize>>::default();
    for (number, pattern) in patterns.iter().enumerate() {
        tree.entry(pattern).push(number);
    }
    let by_tree = timed(messages, |number| {
        let mut found = 0;
        tree.find(&topics[number % FILTERS], |numbers| found += numbers.len());
        found
    });
    let one_by_one = timed(messages / 10, |number| {
        let topic = &topics[number % FILTERS];
        patterns.iter().filter(|pattern| matches(pattern, topic)).count()
    });
    println!("{FILTERS} filters: tree {by_tree:.0} ns a message, one after the other {one_by_one:.0} ns");
}

fn timed(messages: usize, mut find: impl FnMut(usize) -> usize) -> f64 {
    let began = thread_cpu();
    let found: usize = (0..messages).map(|number| black_box(find(number))).sum();
    assert_eq!(found, messages, "one filter matches");
    (thread_cpu() - began) * 1e9 / messages as f64
}

fn thread_cpu() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
