use super::*;
use crate::loss_report;

const START: Moment = Moment::from_nanos(1_000_000_000_000);
const TO: (u32, u32) = (0, 7);
/// A packet of the bench, with its header.
const LENGTH: u64 = 116;

fn at(millis: u64) -> Moment {
    START + Duration::from_millis(millis)
}

struct Bench {
    sender: Sender,
    outbox: Outbox,
    counts: Statistics,
    round_trip: RoundTrip,
}

impl Bench {
    /// With a latency of nothing, so that the pace holds nothing back and packets are kept for a second.
    fn new(has_periodic_reports: bool) -> Self {
        let sender = Sender::new(
            SequenceNumber::new(0),
            MOST_WINDOW as u32,
            Duration::ZERO,
            has_periodic_reports,
            START,
        );
        let (outbox, counts) = (Outbox::default(), Statistics::default());
        Self { sender, outbox, counts, round_trip: RoundTrip::default() }
    }

    fn queue(&mut self, packets: usize, now: Moment) {
        for _ in 0..packets {
            self.sender.queue(&[1; 100], 0, &self.round_trip, now, &mut self.counts);
        }
        self.pump(now);
    }

    fn pump(&mut self, now: Moment) {
        self.sender.pump(TO.1, now, &mut self.outbox, &mut self.counts);
    }

    fn acknowledge(&mut self, next: u32, now: Moment) {
        self.sender.on_acknowledgement(SequenceNumber::new(next), None, now);
    }

    fn report(&mut self, first: u32, last: u32, now: Moment) {
        let mut list = Vec::new();
        loss_report::write(SequenceNumber::new(first), SequenceNumber::new(last), &mut list);
        let report = LossReport::new(&list);
        self.sender.on_loss_report(report, TO, &self.round_trip, now, &mut self.outbox, &mut self.counts);
    }

    fn handle_timeout(&mut self, now: Moment) -> bool {
        self.sender.handle_timeout(TO.1, &self.round_trip, now, &mut self.outbox, &mut self.counts)
    }

    /// Datagrams that leave.
    fn flush(&mut self) -> u64 {
        self.flush_into(usize::MAX)
    }

    /// The same, into a socket that has room for the first ones only.
    fn flush_into(&mut self, mut room: usize) -> u64 {
        let (sender, counts) = (&mut self.sender, &mut self.counts);
        let mut sent = 0;
        self.outbox.flush(
            &mut |bytes, length| {
                let taken = bytes.len().div_ceil(length).min(room);
                room -= taken;
                sent += taken as u64;
                taken
            },
            &mut |content, length| sender.on_taken(content, length, counts),
        );
        sent
    }

    /// Packets of the peer's and of this side's doing that were given up by then.
    fn given_up(&mut self, now: Moment) -> (u64, u64) {
        self.handle_timeout(now);
        (self.counts.send_dropped, self.counts.send_discarded)
    }
}

#[test]
fn what_a_full_outbox_does_not_take_stays_in_the_window_and_is_not_counted() {
    let mut bench = Bench::new(true);
    bench.queue(10_000, START);
    let mut left = 0;
    for _ in 0..3 {
        left += bench.flush();
        assert_eq!(bench.counts.sent, left, "what is counted has left");
        assert!(
            bench.sender.poll_timeout(&RoundTrip::default()).is_some_and(|at| left == 10_000 || at <= START)
        );
        bench.pump(START);
    }
    assert_eq!((left, bench.counts.sent, bench.counts.send_dropped), (10_000, 10_000, 0));
    // Copies as well: those that found no room leave when the next report names them. All that is reported is counted.
    for (reports, expected) in [(2, 4_096), (4, 8_192), (6, 10_000)] {
        bench.report(0, 9_999, START);
        bench.report(0, 9_999, START);
        left = bench.flush();
        assert!(left <= 4_096);
        assert_eq!((bench.counts.retransmitted, bench.counts.reported_missing), (expected, reports * 10_000));
    }
}

#[test]
fn what_is_reported_behind_a_full_outbox_is_counted_as_well() {
    let mut bench = Bench::new(true);
    bench.queue(5_000, START);
    bench.flush();
    bench.pump(START);
    bench.flush();
    let mut list = Vec::new();
    for (first, last) in [(0, 4_500), (4_600, 4_700), (4_800, 4_800)] {
        loss_report::write(SequenceNumber::new(first), SequenceNumber::new(last), &mut list);
    }
    let (outbox, counts) = (&mut bench.outbox, &mut bench.counts);
    let report = LossReport::new(&list);
    bench.sender.on_loss_report(report, TO, &bench.round_trip, START, outbox, counts);
    assert_eq!((bench.flush(), bench.counts.reported_missing), (4_096, 4_501 + 101 + 1));
}

#[test]
fn what_is_given_up_is_the_peers_unless_it_was_held_here() {
    // Sent, and not acknowledged.
    let mut bench = Bench::new(true);
    bench.queue(10, START);
    bench.flush();
    assert_eq!(bench.given_up(at(2_000)), (10, 0));
    // Of these eight were never sent, for the peer has room for two.
    let mut bench = Bench::new(true);
    bench.sender.window = 2;
    bench.queue(10, START);
    bench.flush();
    assert_eq!((bench.counts.sent, bench.given_up(at(2_000))), (2, (10, 0)));
    // The outbox was full, and the thread late.
    let mut bench = Bench::new(true);
    bench.queue(5_000, START);
    bench.flush();
    assert_eq!(bench.given_up(at(2_000)), (4_096, 904));
}

#[test]
fn what_the_socket_refuses_is_this_sides_and_so_is_what_the_peer_cannot_acknowledge_for_lack_of_it() {
    let mut bench = Bench::new(true);
    bench.queue(10, START);
    assert_eq!((bench.flush_into(6), bench.counts.sent), (6, 6));
    // The round trip is not measured: 300 ms.
    bench.queue(2, at(300));
    bench.queue(5, at(301));
    assert_eq!(bench.flush(), 7);
    assert_eq!(bench.given_up(at(3_000)), (6 + 5, 4 + 2), "one refused datagram excuses no more than that");
}

#[test]
fn what_the_socket_has_refused_goes_out_as_it_would_have_the_first_time() {
    let mut bench = Bench::new(true);
    bench.queue(10, START);
    bench.flush_into(6);
    bench.report(5, 9, at(10));
    let mut contents = Vec::new();
    let number = SequenceNumber::new;
    bench.outbox.flush(&mut |bytes, length| bytes.len().div_ceil(length), &mut |content, length| {
        contents.push(content);
        bench.sender.on_taken(content, length, &mut bench.counts);
    });
    assert_eq!(contents[..2], [Content::Copy(number(5)), Content::Original(number(6))]);
    assert_eq!((bench.counts.sent, bench.counts.retransmitted), (10, 1));
    // It left in good time.
    assert_eq!(bench.given_up(at(2_000)), (10, 0));
}

#[test]
fn what_lies_in_the_socket_or_lay_there_for_half_of_its_time_is_this_sides() {
    for (leaves_at, expected) in [(0, (10, 0)), (450, (10, 0)), (600, (0, 10)), (5_000, (0, 10))] {
        let mut bench = Bench::new(true);
        bench.queue(10, START);
        bench.flush();
        assert!(!bench.sender.asks_for_unsent(at(99)), "what is acknowledged soon costs no system call");
        for millis in (100..1_000).filter(|millis| millis % 10 == 0) {
            if bench.sender.asks_for_unsent(at(millis)) {
                let held = if millis < leaves_at { 10 * LENGTH } else { 0 };
                bench.sender.on_unsent(held, at(millis));
            }
        }
        // The peer is there, and has none of them.
        bench.acknowledge(0, at(500));
        assert_eq!(bench.given_up(at(1_000)), expected, "leaves after {leaves_at} ms");
    }
}

#[test]
fn a_window_that_is_full_of_what_lies_in_the_socket_is_not_the_peers() {
    let mut bench = Bench::new(true);
    bench.sender.window = 2;
    bench.queue(2, START);
    bench.flush();
    bench.sender.on_unsent(2 * LENGTH, START);
    bench.queue(8, at(1));
    bench.sender.on_unsent(2 * LENGTH, at(1_000));
    bench.acknowledge(0, at(500));
    assert_eq!(bench.given_up(at(1_001)), (0, 10));
}

#[test]
fn what_is_for_a_machine_that_is_gone_lies_in_the_socket_and_is_the_peers_all_the_same() {
    let mut bench = Bench::new(true);
    bench.acknowledge(0, START);
    bench.queue(10, at(1));
    bench.flush();
    // Its address is asked for and not answered: datagrams wait in the kernel.
    (1..20).for_each(|time| bench.sender.on_unsent(10 * LENGTH, at(50 * time)));
    assert_eq!(bench.given_up(at(1_001)), (10, 0));
}

#[test]
fn a_packet_that_was_lost_is_this_sides_if_what_was_to_go_out_in_its_place_was_held_here() {
    for (room, held, expected) in [(1, 0, (1, 0)), (0, 0, (0, 1)), (1, LENGTH, (0, 1))] {
        let mut bench = Bench::new(true);
        bench.queue(1, START);
        bench.flush();
        bench.sender.on_unsent(0, at(50));
        bench.report(0, 0, at(100));
        bench.flush_into(room);
        bench.sender.on_unsent(held, at(900));
        assert_eq!(bench.given_up(at(1_000)), expected, "{room} {held}");
    }
}

#[test]
fn a_socket_that_was_asked_late_says_nothing_of_when_a_packet_left() {
    let mut bench = Bench::new(true);
    bench.queue(1, START);
    bench.flush();
    bench.acknowledge(0, at(10));
    bench.sender.on_unsent(0, at(700));
    assert_eq!(bench.given_up(at(1_000)), (1, 0));
}

#[test]
fn what_waited_in_the_socket_is_this_sides_though_the_peer_has_no_room_for_what_is_behind_it() {
    // The window is full from the first moment on: until the first packets have left because of this side, and from then on because of
    // the peer. Up to 100 ms, when the socket is first asked, it is taken to be the peer's.
    for (leaves_at, expected) in [(400, (10, 0)), (700, (0, 10))] {
        let mut bench = Bench::new(true);
        bench.sender.window = 2;
        bench.queue(10, START);
        let mut given = bench.flush();
        for millis in (10..1_000).step_by(10) {
            if bench.sender.asks_for_unsent(at(millis)) {
                let held = if millis < leaves_at { given * LENGTH } else { 0 };
                bench.sender.on_unsent(held, at(millis));
            }
            bench.handle_timeout(at(millis));
            given += bench.flush();
        }
        bench.acknowledge(0, at(999));
        assert_eq!(bench.given_up(at(1_000)), expected, "leaves after {leaves_at} ms");
    }
}

#[test]
fn what_lies_in_the_socket_for_long_after_the_peer_had_no_room_is_this_sides_and_for_short_the_peers() {
    for (has_room_at, expected) in [(100, (0, 1)), (800, (1, 0))] {
        let mut bench = Bench::new(true);
        bench.sender.window = 1;
        bench.queue(1, START);
        bench.flush();
        bench.sender.on_unsent(0, at(1));
        bench.queue(1, at(1));
        bench.acknowledge(1, at(has_room_at));
        bench.pump(at(has_room_at));
        let mut given = bench.flush();
        // That there is no room for the next one is nothing to this one.
        bench.queue(1, at(has_room_at + 1));
        for millis in (has_room_at..1_000).step_by(50) {
            bench.sender.on_unsent(given * LENGTH, at(millis));
            bench.handle_timeout(at(millis));
            given += bench.flush();
        }
        assert_eq!(bench.given_up(at(1_001)), expected, "room after {has_room_at} ms");
    }
}

#[test]
fn what_was_not_sent_though_the_peer_had_room_for_half_of_its_time_is_this_sides() {
    for (has_room_at, expected) in [(300, (0, 1)), (700, (1, 0))] {
        let mut bench = Bench::new(true);
        bench.sender.window = 0;
        bench.queue(1, START);
        bench.handle_timeout(at(100));
        bench.sender.on_acknowledgement(SequenceNumber::new(0), Some(1), at(has_room_at));
        // Nothing is sent: the thread stands still, or the pace holds it back.
        assert_eq!(bench.given_up(at(1_000)), expected, "room after {has_room_at} ms");
    }
}

#[test]
fn a_last_packet_that_finds_no_room_is_sent_again_later() {
    for has_periodic_reports in [true, false] {
        let mut bench = Bench::new(has_periodic_reports);
        bench.queue(1, START);
        bench.flush();
        while !bench.outbox.is_full() {
            bench.outbox.add(Content::Other, |bytes| bytes.push(1));
        }
        let now = bench.sender.poll_timeout(&RoundTrip::default()).unwrap();
        assert!(!bench.handle_timeout(now));
        assert_eq!((bench.counts.retransmitted, bench.flush()), (0, 4_096));
        assert!(bench.handle_timeout(now));
        assert_eq!((bench.flush(), bench.counts.retransmitted), (1, 1));
    }
}

#[test]
fn reports_of_a_peer_that_does_not_repeat_them_have_a_packet_copied_once_in_ten_milliseconds() {
    let mut bench = Bench::new(false);
    bench.queue(1_000, START);
    bench.flush();
    for millis in 0..100 {
        (0..5).for_each(|_| bench.report(0, 999, at(millis)));
        bench.flush();
    }
    assert_eq!(bench.counts.retransmitted, 10 * 1_000);
}
