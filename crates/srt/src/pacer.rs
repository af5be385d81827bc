//! When packets may leave: pacing of live mode (draft-sharabayko-srt-01, section 5.1). Knows bytes and moments, and no packet.

use crate::packet::HEADER_LENGTH;
use std::time::Duration;
use weir_metrics::Moment;

/// "MAX_BW = EST_INPUT_BW * (1 + OVERHEAD / 100)" (section 5.1.1), with libsrt's overhead of 25 % (SRTO_OHEADBW).
const OVERHEAD: f64 = 1.25;
/// Bytes a second while the input is not measured: 100 Mbit/s, more than most streams have, and no burst that fills the buffers of
/// a path when a thousand connections begin. The 1 Gbit/s of section 5.1.1 is for a rate that is set.
const UNMEASURED: f64 = 12_500_000.0;
/// How long the input is measured, as libsrt does.
const MEASURED_FOR: Duration = Duration::from_secs(1);
/// Input that is silent for longer has stopped: what comes then is a stream that begins, and the silence is no part of its rate.
const SILENCE: Duration = Duration::from_secs(1);
/// Packets that were sent again hold others back no longer than this: a path that loses much would else stop the stream for minutes.
const LONGEST_DEBT: Duration = Duration::from_millis(250);
/// Packets of this time leave together, so that pacing does not cost a system call and a wake-up for each packet: those of a frame at
/// 25 frames a second. Libsrt spreads nothing unless it is told to (SRTO_MAXBW is infinite).
const TOGETHER: Duration = Duration::from_millis(40);
/// Bytes that leave together at the most, unless the rate asks for more: 24 packets.
const MOST_TOGETHER: f64 = 32_768.0;
/// Packets of this time leave together at any rate.
const LEAST_TOGETHER: Duration = Duration::from_millis(10);

/// The pace of one sender.
#[derive(Debug)]
pub(crate) struct Pacer {
    /// Since when the input is measured, and what has come since then.
    since: Moment,
    bytes: u64,
    /// When a payload was queued last.
    newest: Option<Moment>,
    /// Bytes a second that the input allows: [`UNMEASURED`] until it is known.
    paced: f64,
    /// Bytes that have left ahead of their pace, at that moment, and the bytes a second that hold from then on.
    ahead: f64,
    at: Moment,
    rate: f64,
    /// How long a packet may be held back.
    longest: Duration,
}

impl Pacer {
    /// Of a connection whose peer holds what it gets for `latency`.
    pub(crate) fn new(latency: Duration, now: Moment) -> Self {
        // The peer gives up by the packet's timestamp, which is that of its queueing: most of the latency is for sending it again.
        let longest = latency / 4;
        Self {
            since: now,
            bytes: 0,
            newest: None,
            paced: UNMEASURED,
            ahead: 0.0,
            at: now,
            rate: UNMEASURED,
            longest,
        }
    }

    /// A payload was queued.
    pub(crate) fn queued(&mut self, bytes: usize, now: Moment) {
        let newest = self.newest.map_or(now, |newest| newest.max(now));
        let before = self.newest.replace(newest);
        if before.is_none_or(|before| newest.since(before) > SILENCE) {
            // The rate from before the silence holds until there is another. This payload is the beginning of the measurement, and what
            // comes from here on is in it.
            (self.since, self.bytes) = (newest, 0);
            return;
        }
        self.bytes += (bytes + HEADER_LENGTH) as u64;
        let span = newest.since(self.since);
        if span >= MEASURED_FOR {
            self.paced = OVERHEAD * self.bytes as f64 / span.as_secs_f64();
            (self.since, self.bytes) = (newest, 0);
        }
    }

    /// Sets the rate while `waiting` bytes wait, the last of them since `newest`.
    pub(crate) fn advance(&mut self, waiting: usize, newest: Moment, now: Moment) {
        // A deadline that is served late is one before the moment at which something was sent last.
        let now = now.max(self.at);
        self.ahead = (self.ahead - self.rate * now.since(self.at).as_secs_f64()).max(0.0);
        self.at = now;
        // A burst above the mean has to be gone when its last packet has waited as long as it may.
        let left = (newest + self.longest).since(now).as_secs_f64().max(0.001);
        self.rate = self.paced.max(waiting as f64 / left);
        self.bound_debt();
    }

    /// Whether a packet that was queued at this moment may leave.
    pub(crate) fn allows(&self, queued: Moment) -> bool {
        self.ahead <= self.together() || queued + self.longest <= self.at
    }

    /// When a packet that may not leave now may, together with others.
    pub(crate) fn next(&self, queued: Moment) -> Moment {
        let apart = Duration::from_nanos((self.ahead * 1e9 / self.rate) as u64);
        (self.at + apart).min(queued + self.longest)
    }

    /// A packet leaves, original or not.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.ahead += (bytes + HEADER_LENGTH) as f64;
        self.bound_debt();
    }

    /// Bytes that may leave ahead of their pace.
    fn together(&self) -> f64 {
        (self.rate * TOGETHER.as_secs_f64()).min(MOST_TOGETHER).max(self.rate * LEAST_TOGETHER.as_secs_f64())
    }

    fn bound_debt(&mut self) {
        self.ahead = self.ahead.min(self.rate * LONGEST_DEBT.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Moment = Moment::from_nanos(1_000_000_000);
    const PAYLOAD: usize = 1_316;

    fn measured(bytes_per_second: usize, latency: u64) -> (Pacer, Moment) {
        let mut pacer = Pacer::new(Duration::from_millis(latency), START);
        feed(&mut pacer, START, bytes_per_second / 10, Duration::from_millis(100), 11);
        (pacer, START + MEASURED_FOR)
    }

    /// Queues payloads of one length, with their headers, so far apart.
    fn feed(pacer: &mut Pacer, start: Moment, bytes: usize, apart: Duration, count: u32) {
        (0..count).for_each(|number| pacer.queued(bytes - HEADER_LENGTH, start + apart * number));
    }

    /// When each packet of a burst leaves, in milliseconds.
    fn leaves(mut pacer: Pacer, start: Moment, packets: usize) -> Vec<u128> {
        let (mut now, mut times) = (start, Vec::new());
        while times.len() < packets {
            pacer.advance((packets - times.len()) * PAYLOAD, start, now);
            if pacer.allows(start) {
                pacer.sent(PAYLOAD);
                times.push(now.since(start).as_millis());
            } else {
                let next = pacer.next(start);
                assert!(next > now, "time goes on");
                now = next;
            }
        }
        times
    }

    #[test]
    fn a_burst_leaves_at_the_rate_of_the_input_and_a_quarter() {
        // 80 packets a second, of which the pace lets 100 through: 20 take 200 ms.
        let (pacer, now) = measured(80 * (PAYLOAD + HEADER_LENGTH), 2_000);
        let times = leaves(pacer, now, 20);
        assert!((140..=200).contains(times.last().unwrap()), "{times:?}");
        assert!(times.iter().filter(|time| **time == 0).count() <= 6, "{times:?}");
    }

    #[test]
    fn a_burst_is_gone_within_a_quarter_of_the_latency() {
        let (pacer, now) = measured(80 * (PAYLOAD + HEADER_LENGTH), 200);
        let times = leaves(pacer, now, 100);
        assert!((40..=50).contains(times.last().unwrap()), "{times:?}");
        let at_once = times.chunk_by(|a, b| a == b).map(<[u128]>::len).max().unwrap();
        assert!(at_once <= 30, "a burst of 100 leaves evenly: {times:?}");
    }

    #[test]
    fn what_is_not_measured_leaves_at_100_mbit_and_what_may_not_wait_at_once() {
        // 1,000 packets of 1,332 bytes take 107 ms.
        let times = leaves(Pacer::new(Duration::from_secs(8), START), START, 1_000);
        assert!((90..=110).contains(times.last().unwrap()), "{times:?}");
        assert!(times.iter().filter(|time| **time == 0).count() <= 100, "{times:?}");
        let (pacer, now) = measured(1_000, 0);
        assert_eq!(leaves(pacer, now, 500), [0; 500]);
    }

    #[test]
    fn a_silence_is_no_rate() {
        // 1 Mbit/s, then a minute of nothing, then the same again. A rate that had the minute in it would be a sixtieth.
        let (mut pacer, now) = measured(125_000, 2_000);
        let rate = pacer.paced;
        assert!((rate / (OVERHEAD * 125_000.0) - 1.0).abs() < 0.01, "{rate}");
        let again = now + Duration::from_secs(60);
        for tenth in 0..40 {
            pacer.queued(12_500 - HEADER_LENGTH, again + Duration::from_millis(100) * tenth);
            assert!((pacer.paced / rate - 1.0).abs() < 0.01, "{} after {tenth} tenths", pacer.paced);
        }
        // What begins faster than before is measured within a second of its own.
        let third = again + Duration::from_secs(600);
        feed(&mut pacer, third, 125_000, Duration::from_millis(100), 11);
        assert!((pacer.paced / (10.0 * rate) - 1.0).abs() < 0.01, "{}", pacer.paced);
    }

    #[test]
    fn the_silence_before_the_first_payload_is_no_rate_and_one_payload_in_seconds_is_none_either() {
        let mut pacer = Pacer::new(Duration::from_secs(2), START);
        feed(&mut pacer, START + Duration::from_secs(30), 1_000, Duration::from_secs(5), 20);
        assert!((pacer.paced - UNMEASURED).abs() < 1.0, "nothing was measured: {}", pacer.paced);
        let mut pacer = Pacer::new(Duration::from_secs(2), START);
        feed(&mut pacer, START + Duration::from_millis(900), 12_500, Duration::from_millis(100), 11);
        assert!((pacer.paced / (OVERHEAD * 125_000.0) - 1.0).abs() < 0.01, "{}", pacer.paced);
    }

    #[test]
    fn what_was_sent_again_holds_an_original_back_for_a_bounded_time() {
        let (mut pacer, now) = measured(125_000, 8_000);
        pacer.advance(0, now, now);
        // 13 MB of retransmissions: 84 seconds at this pace.
        (0..10_000).for_each(|_| pacer.sent(PAYLOAD));
        pacer.advance(PAYLOAD, now, now);
        assert!(!pacer.allows(now), "they hold it back");
        let next = pacer.next(now);
        assert!(next <= now + LONGEST_DEBT, "{:?}", next.since(now));
        pacer.advance(PAYLOAD, now, next);
        assert!(pacer.allows(now));
        // A debt from a time with a higher rate is bounded by the rate that holds now.
        let mut pacer = Pacer::new(Duration::from_secs(8), START);
        (0..10_000).for_each(|_| pacer.sent(PAYLOAD));
        feed(&mut pacer, START, 1_250, Duration::from_millis(100), 11);
        pacer.advance(PAYLOAD, START + MEASURED_FOR, START);
        assert!(pacer.next(START + MEASURED_FOR) <= START + LONGEST_DEBT + Duration::from_millis(1));
    }

    #[test]
    fn time_does_not_run_back() {
        let (mut pacer, now) = measured(125_000, 8_000);
        pacer.advance(0, now, now);
        (0..30).for_each(|_| pacer.sent(PAYLOAD));
        // Half of the debt is worked off; a deadline that is served late changes nothing.
        let half = now + Duration::from_millis(125);
        pacer.advance(PAYLOAD, half, half);
        let next = pacer.next(half);
        for earlier in [now, START, half] {
            pacer.advance(PAYLOAD, half, earlier);
            assert_eq!(pacer.next(half), next);
        }
        pacer.queued(PAYLOAD, now);
        pacer.queued(PAYLOAD, START);
        let paced = pacer.paced;
        assert!((paced / (OVERHEAD * 125_000.0) - 1.0).abs() < 0.01, "{paced}");
    }
}
