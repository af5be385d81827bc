//! When packets may leave: pacing of live mode (draft-sharabayko-srt-01, section 5.1). Knows bytes and moments, and no packet.

use crate::packet::HEADER_LENGTH;
use std::time::Duration;
use weir_metrics::Moment;

/// "MAX_BW = EST_INPUT_BW * (1 + OVERHEAD / 100)" (section 5.1.1), with libsrt's overhead of 25 % (SRTO_OHEADBW).
const OVERHEAD: f64 = 1.25;
/// Bytes a second while the input is not measured: the 1 Gbit/s that section 5.1.1 recommends for a rate that is set.
const UNMEASURED: f64 = 125_000_000.0;
/// How long the input is measured, as libsrt does.
const MEASURED_FOR: Duration = Duration::from_secs(1);
/// Packets of this time leave together, so that pacing does not cost a system call and a wake-up for each packet.
const TOGETHER: Duration = Duration::from_millis(10);

/// The pace of one sender.
#[derive(Debug)]
pub(crate) struct Pacer {
    /// Since when the input is measured, and what has come since then.
    since: Moment,
    bytes: u64,
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
        Self { since: now, bytes: 0, paced: UNMEASURED, ahead: 0.0, at: now, rate: UNMEASURED, longest }
    }

    /// A payload was queued.
    pub(crate) fn queued(&mut self, bytes: usize, now: Moment) {
        self.bytes += (bytes + HEADER_LENGTH) as u64;
        let span = now.since(self.since);
        if span >= MEASURED_FOR {
            self.paced = OVERHEAD * self.bytes as f64 / span.as_secs_f64();
            (self.since, self.bytes) = (now, 0);
        }
    }

    /// Sets the rate while `waiting` bytes wait, the last of them since `newest`.
    pub(crate) fn advance(&mut self, waiting: usize, newest: Moment, now: Moment) {
        self.ahead = (self.ahead - self.rate * now.since(self.at).as_secs_f64()).max(0.0);
        self.at = now;
        // A burst above the mean has to be gone when its last packet has waited as long as it may.
        let left = (newest + self.longest).since(now).as_secs_f64().max(0.001);
        self.rate = self.paced.max(waiting as f64 / left);
    }

    /// Whether a packet that was queued at this moment may leave.
    pub(crate) fn allows(&self, queued: Moment) -> bool {
        self.ahead <= self.rate * TOGETHER.as_secs_f64() || queued + self.longest <= self.at
    }

    /// When a packet that may not leave now may, together with others.
    pub(crate) fn next(&self, queued: Moment) -> Moment {
        let apart = Duration::from_nanos((self.ahead * 1e9 / self.rate) as u64);
        (self.at + apart).min(queued + self.longest)
    }

    /// A packet leaves, original or not.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.ahead += (bytes + HEADER_LENGTH) as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Moment = Moment::from_nanos(1_000_000_000);
    const PAYLOAD: usize = 1_316;

    fn measured(bytes_per_second: usize, latency: u64) -> (Pacer, Moment) {
        let mut pacer = Pacer::new(Duration::from_millis(latency), START);
        let now = START + MEASURED_FOR;
        pacer.queued(bytes_per_second - HEADER_LENGTH, now);
        (pacer, now)
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
        assert!((170..=200).contains(times.last().unwrap()), "{times:?}");
        assert!(times.iter().filter(|time| **time == 0).count() <= 3, "{times:?}");
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
    fn what_is_not_measured_leaves_at_a_gigabit_and_what_may_not_wait_at_once() {
        assert_eq!(leaves(Pacer::new(Duration::from_secs(8), START), START, 500), [0; 500]);
        let (pacer, now) = measured(1_000, 0);
        assert_eq!(leaves(pacer, now, 500), [0; 500]);
    }
}
