//! Deadlines pass: in order, once, and never early.

use crate::bench::{A_WHILE, Bench, Happened, React, silent};
use std::io::Write;
use std::time::Duration;
use weir_metrics::Moment;
use weir_shard::{Context, Event, clock};

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Sets these deadlines one after the other, in one call, when the link is there.
fn sets(delays: &'static [Option<u64>]) -> React {
    Box::new(move |event, context: &mut Context<'_, _>| {
        if matches!(event, Event::Connected) {
            for delay in delays {
                match delay {
                    Some(delay) => context.set_timer(context.now + ms(*delay)),
                    None => context.set_timer(None),
                }
            }
        }
    })
}

fn connected(bench: &Bench, who: &str) -> Moment {
    bench.diary().times(who, &Happened::Connected)[0]
}

#[test]
fn deadlines_of_several_sessions_pass_in_their_order_and_none_is_early() {
    let mut bench = Bench::new();
    let _late = bench.connect("late", sets(&[Some(300)]));
    let _early = bench.connect("early", sets(&[Some(100)]));
    let _middle = bench.connect("middle", sets(&[Some(200)]));
    let waits = [("early", 100), ("middle", 200), ("late", 300)];
    bench.run_until(|diary| waits.iter().all(|(who, _)| diary.count(who, &Happened::Timer) > 0));
    let mut due: Vec<_> = waits.iter().map(|&(who, wait)| (connected(&bench, who) + ms(wait), who)).collect();
    due.sort();
    let fired: Vec<_> = bench
        .diary()
        .lines
        .iter()
        .filter(|line| line.what == Happened::Timer)
        .map(|line| (line.at, line.who))
        .collect();
    assert_eq!(
        fired.iter().map(|(_, who)| who).collect::<Vec<_>>(),
        due.iter().map(|(_, who)| who).collect::<Vec<_>>()
    );
    for ((at, who), (due, _)) in fired.iter().zip(&due) {
        assert!(at >= due, "{who}");
    }
}

#[test]
fn a_deadline_set_anew_replaces_the_old_one() {
    for (delays, wait) in [
        (&[Some(30), Some(120)][..], 120),
        (&[Some(200), Some(40)], 40),
        (&[Some(20), None, Some(90)], 90),
        (&[Some(90), Some(20), Some(60)], 60),
    ] {
        let (mut bench, _peer) = Bench::with("client", sets(delays));
        bench.run_until(|diary| diary.count("client", &Happened::Timer) > 0);
        bench.run_for(ms(250));
        let fired = bench.diary().times("client", &Happened::Timer);
        assert_eq!(fired.len(), 1, "{delays:?}");
        assert!(fired[0] >= connected(&bench, "client") + ms(wait), "{delays:?}");
    }
}

#[test]
fn a_deadline_moved_with_every_read_passes_when_the_reads_end() {
    let (mut bench, mut peer) = Bench::with(
        "client",
        Box::new(|event, context| {
            if matches!(event, Event::Connected | Event::Bytes(_)) {
                context.set_timer(context.now + ms(120));
            }
        }),
    );
    for _ in 0..6 {
        peer.write_all(b"still here").unwrap();
        bench.run_for(ms(40));
    }
    bench.run_until(|diary| diary.count("client", &Happened::Timer) > 0);
    let last = bench.diary().lines.iter().rfind(|line| matches!(line.what, Happened::Bytes(_))).unwrap().at;
    let fired = bench.diary().times("client", &Happened::Timer);
    // A machine that stands still for 120 ms between two words lets it pass early on, and again.
    assert!(*fired.last().unwrap() >= last + ms(120) || fired.len() > 1);
}

#[test]
fn a_deadline_that_was_withdrawn_never_passes() {
    let (mut bench, _peer) = Bench::with("client", sets(&[Some(30), None]));
    bench.run_for(A_WHILE);
    assert_eq!(bench.diary().count("client", &Happened::Timer), 0);
}

#[test]
fn a_deadline_that_has_passed_already_passes_in_the_next_turn() {
    let mut times = 0;
    let (mut bench, _peer) = Bench::with(
        "client",
        Box::new(move |event, context| {
            if matches!(event, Event::Connected | Event::Timer) && times < 5 {
                times += 1;
                context.set_timer(Moment::from_nanos(1));
            }
        }),
    );
    bench.run_until(|diary| diary.count("client", &Happened::Timer) == 5);
    bench.run_for(ms(50));
    assert_eq!(bench.diary().count("client", &Happened::Timer), 5);
}

#[test]
fn a_deadline_passes_while_the_link_is_still_opening() {
    // Nobody takes the connection: the listener's queue is full, and the kernel keeps silent.
    let (full, _guard) = crate::bench::full_listener();
    let mut bench = Bench::new();
    bench.open(
        "client",
        &crate::bench::endpoint(full),
        Box::new(|event, context| match event {
            Event::Opening => context.set_timer(context.now + ms(100)),
            Event::Timer => context.close(),
            _ => {}
        }),
    );
    bench.run_until(|diary| diary.count("client", &Happened::Timer) > 0);
    assert_eq!(bench.diary().of("client"), [Happened::Opening, Happened::Timer]);
    assert!(bench.shard.is_empty());
}

#[test]
fn a_turn_with_nothing_to_do_sleeps_until_its_end_and_not_less() {
    let (mut bench, _peer) = Bench::with("client", silent());
    // What the connecting has left behind is over after a while.
    bench.run_for(ms(20));
    let until = clock::now() + ms(60);
    bench.shard.turn(until).unwrap();
    assert!(clock::now() >= until);
}
