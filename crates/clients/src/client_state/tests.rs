use super::*;
use crate::shard_recorder::Turn;
use weir_metrics::Schema;
use weir_metrics::common::{CUT_OFF, PLAYED_TIME, PLAYING, RETURNED, WAITED_TIME, WAITING};

const SECOND: Duration = Duration::from_secs(1);

/// A planned start of the client with this number.
fn client(client: u32) -> PlannedStart {
    let at = Moment::from_nanos(7_000_000_000);
    PlannedStart { client, workload: 0, cell: 0, at, turn: Turn::default() }
}

fn begin(late: Duration) -> (ClientState, ShardRecorder, Moment) {
    let mut shard = ShardRecorder::new([Schema::new(&[])]).keeping_endings();
    let planned = client(0);
    let state = ClientState::begin(planned, Timeouts::all(10 * SECOND), planned.at + late, &mut shard);
    (state, shard, planned.at)
}

#[test]
fn one_timeout_covers_the_way_from_consent_to_the_first_frame() {
    let (mut state, mut shard, start) = begin(Duration::ZERO);
    state.reach(ClientPhase::Waiting, start + SECOND, &mut shard);
    state.reach(ClientPhase::Opening, start + 5 * SECOND, &mut shard);
    assert_eq!(state.deadline(), Some(start + 11 * SECOND));
    state.reach(ClientPhase::Playing, start + 6 * SECOND, &mut shard);
    assert_eq!(state.deadline(), None);
}

#[test]
fn a_viewer_without_media_does_not_play_until_some_comes() {
    let (mut state, mut shard, start) = begin(Duration::ZERO);
    let planned = state.planned();
    let levels = |shard: &mut ShardRecorder| {
        let figures = shard.of(planned);
        (figures.gauge(PLAYING), figures.gauge(STARVING), figures.counter(STARVED))
    };
    state.reach(ClientPhase::Playing, start + SECOND, &mut shard);
    assert_eq!(state.deadline(), None, "nobody said that it needs media");
    state.fed(start + 2 * SECOND, &mut shard);
    assert_eq!(state.deadline(), Some(start + 12 * SECOND));
    state.starve(start + 11 * SECOND, &mut shard);
    assert_eq!(levels(&mut shard), (1, 0, 0));
    state.starve(start + 12 * SECOND, &mut shard);
    state.starve(start + 30 * SECOND, &mut shard);
    assert_eq!((levels(&mut shard), state.deadline()), ((0, 1, 1), None));
    state.fed(start + 31 * SECOND, &mut shard);
    assert_eq!((levels(&mut shard), state.deadline()), ((1, 0, 1), Some(start + 41 * SECOND)));
    state.starve(start + 41 * SECOND, &mut shard);
    assert_eq!(levels(&mut shard), (0, 1, 1), "it is one client, however often it starves");
    state.finish(start + 42 * SECOND, &mut shard);
    assert_eq!(levels(&mut shard), (0, 0, 1));
}

#[test]
fn a_client_without_a_link_does_not_play_and_returns_once() {
    let (mut state, mut shard, start) = begin(Duration::ZERO);
    let planned = state.planned();
    state.pause(start, &mut shard);
    state.reach(ClientPhase::Playing, start, &mut shard);
    state.pause(start + SECOND / 2, &mut shard);
    state.pause(start + SECOND, &mut shard);
    let figures = shard.of(planned);
    assert_eq!((figures.gauge(PLAYING), figures.counter(CUT_OFF), figures.counter(RETURNED)), (0, 1, 0));
    state.resume(start + SECOND, &mut shard);
    state.resume(start + 2 * SECOND, &mut shard);
    let figures = shard.of(planned);
    assert_eq!((figures.gauge(PLAYING), figures.counter(CUT_OFF), figures.counter(RETURNED)), (1, 1, 1));
    let latest = shard.latest()[0];
    assert_eq!((latest.cut_off, latest.returned), (Some(start + SECOND / 2), Some(start + SECOND)));
    state.pause(start + 2 * SECOND, &mut shard);
    state.finish(start + 3 * SECOND, &mut shard);
    let figures = shard.of(planned);
    assert_eq!((figures.counter(LEFT_AWAY), figures.counter(RETURNED)), (1, 1));
}

#[test]
fn a_client_that_makes_all_of_its_way_again_has_started_once() {
    let (mut state, mut shard, start) = begin(Duration::ZERO);
    let planned = state.planned();
    state.reach(ClientPhase::Playing, start + SECOND, &mut shard);
    state.fed(start + SECOND, &mut shard);
    state.starve(start + 11 * SECOND, &mut shard);
    for attempt in [12, 13] {
        state.begin_again(start + attempt * SECOND, &mut shard);
        let figures = shard.of(planned);
        let levels = [PLAYING, STARVING, AWAY, ACTIVE].map(|level| figures.gauge(level));
        assert_eq!((levels, figures.counter(CUT_OFF)), ([0, 0, 1, 1], 1));
        assert!(state.is_away() && state.has_begun());
    }
    state.attempt(start + 14 * SECOND);
    assert_eq!(state.deadline(), Some(start + 24 * SECOND));
    state.reach(ClientPhase::Opening, start + 15 * SECOND, &mut shard);
    state.reach(ClientPhase::Playing, start + 16 * SECOND, &mut shard);
    let figures = shard.of(planned);
    assert_eq!([PLAYING, AWAY].map(|level| figures.gauge(level)), [1, 0]);
    assert_eq!([PLAYED, CONNECTED, RETURNED].map(|count| figures.counter(count)), [1, 1, 1]);
    assert_eq!([STARTUP, CONNECT, FIRST_FRAME].map(|spread| figures.spread(spread).len()), [1, 1, 0]);
    assert!(figures.spread(AWAY_TIME).max() >= 3_900_000);
    state.begin_again(start + 17 * SECOND, &mut shard);
    state.fail(Failure::Reset, "", start + 18 * SECOND, &mut shard);
    assert_eq!([PLAYING, AWAY, ACTIVE].map(|level| shard.of(planned).gauge(level)), [0; 3]);
}

#[test]
fn the_time_that_clients_played_is_known_however_seconds_cut_it() {
    let (mut state, mut shard, start) = begin(Duration::ZERO);
    let planned = state.planned();
    let ms = Duration::from_millis;
    let second = |shard: &mut ShardRecorder, end: Moment| {
        shard.book_times(end);
        shard.take_figures().remove(0).counter(PLAYED_TIME)
    };
    state.reach(ClientPhase::Playing, start + ms(300), &mut shard);
    assert_eq!(second(&mut shard, start + SECOND), 700_000);
    assert_eq!(second(&mut shard, start + 2 * SECOND), 1_000_000);
    state.pause(start + ms(2_250), &mut shard);
    state.resume(start + ms(2_500), &mut shard);
    assert_eq!(second(&mut shard, start + 3 * SECOND), 750_000);
    // It leaves within a second: at the second's end it does not play.
    state.finish(start + ms(3_800), &mut shard);
    assert_eq!(shard.of(planned).gauge(PLAYING), 0);
    assert_eq!(second(&mut shard, start + 4 * SECOND), 800_000);
    assert_eq!(second(&mut shard, start + 5 * SECOND), 0);
}

#[test]
fn who_leaves_by_plan_before_it_played_exits_before_start_unless_it_was_given_time() {
    let exits = |mean_life: Option<Duration>, stayed: Duration, plays: bool| {
        let (mut state, mut shard, start) = begin(Duration::ZERO);
        state.planned.turn = Turn { number: 3, mean_life };
        if plays {
            state.reach(ClientPhase::Playing, start, &mut shard);
        }
        state.finish(start + stayed, &mut shard);
        let planned = state.planned();
        assert_eq!(shard.take_ended(), [(planned, Ending::OnTime)], "it is no failure in any case");
        shard.of(planned).counter(EXITS_BEFORE_START)
    };
    let ms = Duration::from_millis;
    assert_eq!(exits(Some(4 * SECOND), ms(1_999), false), 1);
    assert_eq!(exits(Some(4 * SECOND), ms(2_000), false), 0, "half a life without a frame is the target's");
    assert_eq!(exits(Some(4 * SECOND), SECOND, true), 0);
    assert_eq!(exits(None, SECOND, false), 0, "nobody was to follow it");
    // No longer than the timeout, by which it has failed.
    assert_eq!(exits(Some(60 * SECOND), ms(9_999), false), 1);
    assert_eq!(exits(Some(60 * SECOND), 10 * SECOND, false), 0);
}

/// Exponential lives of 50 ms in the mean: few are as long as a handshake takes.
#[test]
fn who_leaves_before_it_could_have_played_says_nothing_of_the_server() {
    let ms = Duration::from_millis;
    let exits = |others: &[u64], stayed: Duration| {
        let (mut state, mut shard, start) = begin(Duration::ZERO);
        others.iter().for_each(|startup| shard.note_startup(state.planned(), ms(*startup)));
        state.planned.turn = Turn { number: 3, mean_life: Some(ms(50)) };
        state.finish(start + stayed, &mut shard);
        shard.of(state.planned()).counter(EXITS_BEFORE_START)
    };
    // Longer than half of a mean life, and nothing is known yet of how long a start takes.
    assert_eq!([exits(&[], ms(40)), exits(&[], ms(999)), exits(&[], ms(1_000))], [1, 1, 0]);
    // Others took 100 ms: twice as long is enough.
    assert_eq!([exits(&[100], ms(199)), exits(&[100], ms(200))], [1, 0]);
    // A slow server has a second.
    assert_eq!([exits(&[3_000], ms(999)), exits(&[3_000], ms(1_000))], [1, 0]);
}

#[test]
fn a_late_start_counts_against_the_generator_and_not_for_the_server() {
    let (mut state, mut shard, start) = begin(SECOND);
    state.reach(ClientPhase::Handshaking, start + 2 * SECOND, &mut shard);
    state.finish(start + 3 * SECOND, &mut shard);
    state.fail(Failure::Reset, "too late to tell", start + 3 * SECOND, &mut shard);
    assert_eq!(shard.take_ended(), [(state.planned(), Ending::Late)]);
    let figures = shard.take_figures().remove(0);
    assert_eq!(
        (figures.spread(CONNECT).max() / 100_000, figures.spread(START_LAG).max() / 10_000),
        (20, 100)
    );
    assert_eq!((figures.gauge(ACTIVE), figures.counter(weir_metrics::common::FAILED)), (0, 0));
}

/// What is known of waits: the level, waits begun and over, seconds of them.
fn waits(shard: &mut ShardRecorder, planned: PlannedStart, now: Moment) -> (u64, u64, u64, u64) {
    shard.book_times(now);
    let figures = shard.of(planned);
    let counts = [KEYFRAME_WAITS, KEYFRAME_WAITS_OVER, WAITED_TIME].map(|counter| figures.counter(counter));
    (figures.gauge(WAITING), counts[0], counts[1], counts[2] / 1_000_000)
}

fn waiting() -> (ClientState, ShardRecorder, Moment) {
    let (state, mut shard, start) = begin(Duration::ZERO);
    let mut state = state.waiting_for_keyframes();
    state.reach(ClientPhase::Waiting, start + SECOND, &mut shard);
    state.reach(ClientPhase::Opening, start + 2 * SECOND, &mut shard);
    (state, shard, start)
}

#[test]
fn a_viewer_waits_for_a_keyframe_for_six_timeouts_while_media_comes() {
    let (mut state, mut shard, start) = waiting();
    let planned = state.planned();
    assert_eq!(state.deadline(), Some(start + 11 * SECOND));
    for second in 3..61 {
        let now = start + second * SECOND;
        state.fed(now, &mut shard);
        let is_due = state.deadline().is_some_and(|deadline| deadline <= now);
        assert!(!is_due || state.waits_on(now, &mut shard), "second {second}");
    }
    assert_eq!(waits(&mut shard, planned, start + 61 * SECOND), (1, 1, 0, 59));
    assert!(!state.waits_on(start + 61 * SECOND, &mut shard), "six timeouts from consent on are over");
    state.fail(Failure::NoMedia, "", start + 61 * SECOND, &mut shard);
    assert_eq!(waits(&mut shard, planned, start + 62 * SECOND), (0, 1, 1, 59));
}

#[test]
fn a_viewer_that_waits_for_a_keyframe_fails_when_media_ends() {
    let (mut state, mut shard, start) = waiting();
    state.fed(start + 9 * SECOND, &mut shard);
    assert!(state.waits_on(start + 11 * SECOND, &mut shard));
    assert_eq!(state.deadline(), Some(start + 19 * SECOND));
    assert!(!state.waits_on(start + 19 * SECOND, &mut shard));
}

#[test]
fn a_wait_that_is_longer_than_keyframes_are_apart_is_not_excused() {
    let (mut state, mut shard, start) = waiting();
    let planned = state.planned();
    shard.note_keyframe_interval(planned, 2 * SECOND);
    shard.keyframe_came(planned, start + 7 * SECOND);
    assert!(state.is_excused());
    state.fed(start + 11 * SECOND, &mut shard);
    assert!(state.waits_on(start + 11 * SECOND, &mut shard));
    assert_eq!(waits(&mut shard, planned, start + 12 * SECOND), (0, 1, 1, 9));
    // It may play still, and is booked once.
    state.fed(start + 20 * SECOND, &mut shard);
    assert_eq!(state.deadline(), Some(start + 21 * SECOND));
    state.reach(ClientPhase::Playing, start + 20 * SECOND, &mut shard);
    assert_eq!(waits(&mut shard, planned, start + 22 * SECOND), (0, 1, 1, 9));
}

#[test]
fn a_wait_that_the_planned_end_cuts_short_is_not_over() {
    let (mut state, mut shard, start) = waiting();
    let planned = state.planned();
    state.finish(start + 5 * SECOND, &mut shard);
    state.fail(Failure::NoMedia, "", start + 5 * SECOND, &mut shard);
    assert_eq!(waits(&mut shard, planned, start + 6 * SECOND), (0, 1, 0, 3), "what is over takes no notice");
    // A client of its own life that exits before it plays is left out as that.
    let (mut state, mut shard, start) = waiting();
    state.planned.turn = Turn { number: 0, mean_life: Some(30 * SECOND) };
    state.finish(start + 5 * SECOND, &mut shard);
    assert_eq!(shard.of(planned).counter(EXITS_BEFORE_START), 1);
    assert_eq!(waits(&mut shard, planned, start + 6 * SECOND), (0, 1, 1, 3));
}

#[test]
fn a_viewer_that_comes_to_play_at_once_and_one_that_needs_no_keyframe_have_not_waited() {
    let (state, mut shard, start) = begin(Duration::ZERO);
    let planned = state.planned();
    let mut needs_none = state;
    needs_none.reach(ClientPhase::Opening, start + SECOND, &mut shard);
    assert!(!needs_none.waits_on(start + 10 * SECOND, &mut shard));
    let mut at_once = state.waiting_for_keyframes();
    at_once.reach(ClientPhase::Opening, start + SECOND, &mut shard);
    at_once.reach(ClientPhase::Playing, start + SECOND, &mut shard);
    assert_eq!(waits(&mut shard, planned, start + 10 * SECOND), (0, 1, 1, 0));
    assert_eq!(at_once.deadline(), None);
}

#[test]
fn the_keyframe_that_a_viewer_begins_with_says_nothing_of_how_far_they_are_apart() {
    let (mut state, mut shard, start) = waiting();
    let planned = state.planned();
    state.reach(ClientPhase::Playing, start + 5 * SECOND, &mut shard);
    // It may have begun with sound, long after a keyframe.
    state.note_keyframe(start + 8 * SECOND, 1_000, &mut shard);
    assert_eq!(shard.keyframe_interval(planned), None);
    for (second, media_time, longest) in [
        (12, 5_000, 4),
        (14, 7_000, 4),
        // What is read together, or was kept by the server, is as far apart as its own clock says.
        (14, 13_000, 6),
        (15, 20_000, 7),
        (25, 22_000, 10),
        // Clocks that jump and that go back.
        (26, 3_000_000, 10),
        (27, 1_000, 10),
    ] {
        state.note_keyframe(start + second * SECOND, media_time, &mut shard);
        assert_eq!(shard.keyframe_interval(planned), Some(longest * SECOND), "{second}");
    }
}

#[test]
fn a_stream_whose_keyframes_are_close_is_no_measure_for_another() {
    let (_, mut shard, start) = waiting();
    shard.set_targets(0, 2);
    shard.note_keyframe_interval(client(0), 2 * SECOND);
    shard.keyframe_came(client(0), start + 7 * SECOND);
    for (number, is_excused) in [(1, true), (2, false), (3, true)] {
        let state = ClientState::begin(client(number), Timeouts::all(10 * SECOND), start, &mut shard);
        let mut state = state.waiting_for_keyframes();
        state.reach(ClientPhase::Opening, start, &mut shard);
        state.fed(start + 9 * SECOND, &mut shard);
        assert!(state.waits_on(start + 10 * SECOND, &mut shard));
        assert_eq!(state.is_excused(), is_excused, "client {number}");
    }
}

#[test]
fn a_wait_that_the_end_cuts_short_is_held_against_the_server_if_it_was_too_long() {
    // With keyframes four seconds apart, and where that is not known: then another viewer had one while this one waited, or none has.
    for (interval, another_at, stayed, is_excused) in [
        (Some(4), Some(6), 7, true),
        (Some(4), Some(6), 9, false),
        // A change of scene may have made them so close.
        (Some(4), None, 22, true),
        (Some(4), None, 24, false),
        (None, Some(6), 22, true),
        (None, Some(6), 24, false),
        (None, Some(4), 24, true),
        (None, None, 24, true),
        (None, None, 61, true),
    ] {
        let (mut state, mut shard, start) = waiting();
        let (planned, end) = (state.planned(), start + stayed * SECOND);
        interval.into_iter().for_each(|interval| shard.note_keyframe_interval(planned, interval * SECOND));
        another_at.into_iter().for_each(|second| shard.keyframe_came(planned, start + second * SECOND));
        state.finish(end, &mut shard);
        let over = u64::from(!is_excused);
        let waited = u64::from(stayed) - 2;
        assert_eq!(
            waits(&mut shard, planned, end + SECOND),
            (0, 1, over, waited),
            "{interval:?}, {another_at:?}, {stayed} s"
        );
    }
}

#[test]
fn a_viewer_that_keyframes_pass_by_is_held_against_the_server_though_none_has_had_two() {
    let (mut state, mut shard, start) = waiting();
    let planned = state.planned();
    // What begins to play has had one.
    let other = ClientState::begin(client(1), Timeouts::all(10 * SECOND), start, &mut shard);
    let mut other = other.waiting_for_keyframes();
    other.reach(ClientPhase::Opening, start + 3 * SECOND, &mut shard);
    other.reach(ClientPhase::Playing, start + 8 * SECOND, &mut shard);
    assert_eq!(shard.keyframe_interval(planned), None);
    for (second, is_excused) in [(11, true), (21, true), (31, false)] {
        let now = start + second * SECOND;
        state.fed(now, &mut shard);
        assert!(state.waits_on(now, &mut shard));
        assert_eq!(state.is_excused(), is_excused, "{second}");
    }
}

#[test]
fn a_keyframe_that_no_decoder_can_begin_with_ends_what_is_excused() {
    let (mut state, mut shard, start) = waiting();
    let planned = state.planned();
    assert!(!state.waited_for_keyframe(start + 3 * SECOND), "it may have joined in the middle of one");
    assert!(state.is_excused() && state.waited_for_keyframe(start + 5 * SECOND));
    state.miss_keyframe(start + 5 * SECOND, &mut shard);
    assert_eq!(waits(&mut shard, planned, start + 6 * SECOND), (0, 1, 1, 3));
    state.reach(ClientPhase::Playing, start + 7 * SECOND, &mut shard);
    assert!(!state.waited_for_keyframe(start + 9 * SECOND), "it plays");
}
