//! Clients that follow each other in their places.

use crate::support::{Run, air, config, measure};

/// What holds of every run whose clients follow each other and of which nothing fails.
fn check(run: &Run, places: u64) {
    assert!(run.failures().is_empty(), "a planned end is no failure: {:?}", run.failures());
    let turnover = &run.workloads()[0]["turnover"];
    let number = |key: &str| turnover[key].as_u64().unwrap();
    assert!(run.slots("planned") >= 3 * places && number("started") > places, "others came: {turnover:#}");
    // On a busy machine a life may be over before it began.
    assert_eq!(
        number("started") + run.slots("missed"),
        run.slots("planned"),
        "every planned start ends in one way"
    );
    assert_eq!(run.well() + run.slots("failed"), number("started"));
    let never_played = number("started") - run.total("played") as u64;
    assert!(number("exits_before_start") <= never_played, "{turnover:#}");
    assert_eq!(run.total("exits_before_start") as u64, number("exits_before_start"));
}

#[test]
fn lives_are_those_of_the_seed() {
    let air = air(&config(&[]));
    let planned = |seed: u32| {
        let run = measure(&format!(
            "seed: {seed}\ndrain: 1s\nworkloads: [{{play: '{}', clients: 6, life: 'exp:500ms', arrival: 'poisson:50/s', duration: 5s}}]",
            air.url
        ));
        check(&run, 6);
        run.slots("planned")
    };
    let [first, again, other] = std::thread::scope(|scope| {
        let planned = &planned;
        [7, 7, 1].map(|seed| scope.spawn(move || planned(seed))).map(|run| run.join().unwrap())
    });
    assert_eq!(again, first);
    assert!(
        other != first || [2, 3].iter().any(|seed| planned(*seed) != first),
        "another seed, another plan"
    );
}
