//! Datagrams that wait to be read together: when they came is known all the same, and nothing overtakes them.

use std::net::{SocketAddr, UdpSocket};
use std::thread::{self, sleep};
use std::time::Duration;
use weir_metrics::Moment;
use weir_shard::{Context, Event, Incoming, Lag, Session, SessionId, Shard, World, clock};

const MILLISECOND: Duration = Duration::from_millis(1);

/// What was told, in order.
#[derive(Default)]
struct Told {
    arrivals: Vec<Moment>,
    reads: usize,
    /// When the first deadline is.
    due: Option<Moment>,
    /// Of each deadline, how many datagrams came before it.
    deadlines: Vec<usize>,
}

impl World for Told {
    type Message = ();

    fn receive(&mut self, (): (), _: Moment, _: &mut Vec<SessionId>) {}
}

/// Lets datagrams wait from the first on, and has a deadline that long after it.
struct Waiter(Duration);

impl Session<Told> for Waiter {
    fn handle(&mut self, event: Event<'_>, context: &mut Context<'_, Told>) {
        match event {
            Event::Datagrams(mut datagrams) => {
                if context.world.reads == 0 {
                    context.let_datagrams_wait(true);
                    let due = context.now + self.0;
                    context.world.due = Some(due);
                    context.set_timer(due);
                }
                context.world.reads += 1;
                while let Some(Incoming { arrived, .. }) = datagrams.take_next() {
                    assert!(arrived <= context.now);
                    context.world.arrivals.push(arrived);
                }
            }
            Event::Timer => {
                let before = context.world.arrivals.len();
                context.world.deadlines.push(before);
            }
            _ => {}
        }
    }
}

/// A shard whose one session waits, and a peer that has said its first word.
fn waiting(deadline: Duration) -> (Shard<Told>, UdpSocket, SocketAddr) {
    let mut shard = Shard::new(Told::default()).unwrap();
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let (_, address) = shard.open_datagrams(local, Box::new(Waiter(deadline))).unwrap();
    let peer = UdpSocket::bind(local).unwrap();
    peer.send_to(b"hello", address).unwrap();
    run_until(&mut shard, |told| told.reads == 1);
    (shard, peer, address)
}

fn run_until(shard: &mut Shard<Told>, mut done: impl FnMut(&Told) -> bool) {
    let end = clock::now() + Duration::from_secs(60);
    while !done(&shard.world) {
        assert!(clock::now() < end, "not within a minute");
        shard.turn(clock::now() + 10 * MILLISECOND).unwrap();
    }
}

/// Sends `count` datagrams `apart` from each other; when each was sent at the earliest and the latest.
fn send(
    peer: UdpSocket,
    to: SocketAddr,
    count: usize,
    apart: Duration,
) -> thread::JoinHandle<Vec<(Moment, Moment)>> {
    thread::spawn(move || {
        let one = |_| {
            sleep(apart);
            let before = clock::now();
            peer.send_to(b"news", to).unwrap();
            (before, clock::now())
        };
        (0..count).map(one).collect()
    })
}

#[test]
fn what_is_read_together_came_when_it_was_sent() {
    let (mut shard, peer, address) = waiting(Duration::from_secs(60));
    let sender = send(peer, address, 200, MILLISECOND);
    run_until(&mut shard, |told| told.arrivals.len() == 201);
    let sent = sender.join().unwrap();
    // Over 200 ms of them, and a read every 60 ms.
    assert!(shard.world.reads < 100, "{} reads", shard.world.reads);
    let arrivals = &shard.world.arrivals[1..];
    assert!(arrivals.is_sorted());
    // The two clocks cannot be read at one moment: a machine that is busy may come between.
    let exact = |((before, after), at): (&(Moment, Moment), &Moment)| {
        *before <= *at + MILLISECOND && *at <= *after + MILLISECOND
    };
    let exact = sent.iter().zip(arrivals).filter(|pair| exact(*pair)).count();
    assert!(exact > 180, "{exact} of 200");
}

#[test]
fn a_deadline_does_not_overtake_what_came_before_it() {
    // Both within the 60 ms of a wait, and at other places of it each time.
    for deadline in [5, 12, 19, 26, 33, 47, 55] {
        told_at_deadline(deadline * MILLISECOND, 1);
    }
}

/// What was told at a deadline before which this many datagrams came: all of them. A test that stands still for as long sends them
/// too late, and tries again.
fn told_at_deadline(deadline: Duration, count: usize) {
    for _ in 0..100 {
        let (mut shard, peer, address) = waiting(deadline);
        for _ in 0..count {
            peer.send_to(b"news", address).unwrap();
        }
        let is_in_time = shard.world.due.is_some_and(|due| clock::now() < due);
        // Nobody reads until it is over, as if this machine had been away.
        sleep(if count > 1 { 2 * deadline } else { Duration::ZERO });
        run_until(&mut shard, |told| !told.deadlines.is_empty());
        if is_in_time {
            return assert_eq!(shard.world.deadlines, [1 + count]);
        }
    }
    panic!("a hundred times this machine stood still for {deadline:?}");
}

#[test]
fn a_sweep_reads_what_waits() {
    let (mut shard, peer, address) = waiting(Duration::from_secs(60));
    peer.send_to(b"news", address).unwrap();
    shard.sweep(clock::now());
    assert_eq!(shard.world.arrivals.len(), 2);
}

#[test]
fn who_gets_so_much_that_the_socket_might_fill_is_read_at_once_for_a_while() {
    let (mut shard, peer, address) = waiting(Duration::from_secs(60));
    // Over a quarter of the largest socket that weir asks for, which the kernel doubles; of a small one some are lost.
    for _ in 0..500 {
        peer.send_to(&[7; 1_200], address).unwrap();
    }
    let end = clock::now() + Duration::from_millis(100);
    run_until(&mut shard, |told| told.arrivals.len() > 100 && clock::now() > end);
    let (reads, came) = (shard.world.reads, shard.world.arrivals.len());
    let sender = send(peer, address, 50, 4 * MILLISECOND);
    run_until(&mut shard, |told| told.arrivals.len() >= came + 50);
    sender.join().unwrap();
    // In 200 ms there would be six.
    let reads = shard.world.reads - reads;
    assert!(reads > 12, "{reads} reads");
}

#[test]
fn a_deadline_does_not_overtake_what_takes_many_reads() {
    told_at_deadline(20 * MILLISECOND, 150);
}

#[test]
fn a_turn_that_takes_long_is_known() {
    struct Sleeper;
    impl Session<Told> for Sleeper {
        fn handle(&mut self, event: Event<'_>, _: &mut Context<'_, Told>) {
            if matches!(event, Event::Datagrams(_)) {
                sleep(100 * MILLISECOND);
            }
        }
    }
    let mut shard = Shard::new(Told::default()).unwrap();
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let (_, address) = shard.open_datagrams(local, Box::new(Sleeper)).unwrap();
    UdpSocket::bind(local).unwrap().send_to(b"news", address).unwrap();
    shard.turn(clock::now() + Duration::from_secs(20)).unwrap();
    let lag = shard.take_lag();
    assert!(lag.longest >= 100 * MILLISECOND && lag.late >= lag.longest, "{lag:?}");
    assert_eq!(shard.take_lag(), Lag::default());
}

/// Has a deadline, and counts what came before it.
struct Punctual;

impl Session<Told> for Punctual {
    fn handle(&mut self, event: Event<'_>, context: &mut Context<'_, Told>) {
        match event {
            Event::Datagrams(mut datagrams) => {
                while let Some(Incoming { arrived, .. }) = datagrams.take_next() {
                    context.world.arrivals.push(arrived);
                }
                if context.world.due.is_none() {
                    let due = context.now + 30 * MILLISECOND;
                    context.world.due = Some(due);
                    context.set_timer(due);
                }
            }
            Event::Timer => {
                let before = context.world.arrivals.len();
                context.world.deadlines.push(before);
            }
            _ => {}
        }
    }
}

/// Has somebody send to another, and stands still until that one's deadline has passed.
struct Still(UdpSocket, SocketAddr);

impl Session<Told> for Still {
    fn handle(&mut self, event: Event<'_>, context: &mut Context<'_, Told>) {
        if matches!(event, Event::Datagrams(_)) {
            self.0.send_to(b"in time", self.1).unwrap();
            let due = context.world.due.expect("the other has its deadline");
            sleep(due.since(clock::now()) + 20 * MILLISECOND);
        }
    }
}

#[test]
fn no_deadline_overtakes_what_came_while_the_loop_stood_still() {
    let mut shard = Shard::new(Told::default()).unwrap();
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let peer = UdpSocket::bind(local).unwrap();
    let (_, punctual) = shard.open_datagrams(local, Box::new(Punctual)).unwrap();
    let still = Still(peer.try_clone().unwrap(), punctual);
    let (_, still) = shard.open_datagrams(local, Box::new(still)).unwrap();
    peer.send_to(b"hello", punctual).unwrap();
    run_until(&mut shard, |told| told.due.is_some());
    peer.send_to(b"stand still", still).unwrap();
    run_until(&mut shard, |told| !told.deadlines.is_empty());
    assert_eq!(shard.world.deadlines, [2], "both datagrams came before the deadline");
}
