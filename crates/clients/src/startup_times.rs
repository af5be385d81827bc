//! How long the latest clients of a workload took to play: one that leaves by plan sooner could not have played.

use std::time::Duration;

/// How many are looked at.
const LATEST: usize = 16;

/// No server is given longer than this, and one of which nothing is known is given it.
const LONGEST: Duration = Duration::from_secs(1);

/// What a start may take beyond those that were seen: of short lives only the fast ones are.
const TOLERANCE: u32 = 2;

/// The startups of the latest clients of a workload that came to play.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StartupTimes {
    /// In microseconds.
    latest: [u32; LATEST],
    count: usize,
}

impl StartupTimes {
    /// A client played, so long after its planned start.
    pub(crate) fn add(&mut self, startup: Duration) {
        self.latest[self.count % LATEST] = u32::try_from(startup.as_micros()).unwrap_or(u32::MAX);
        self.count = self.count.wrapping_add(1).max(1);
    }

    /// How long a client must have stayed for it to say anything of the server that it has not played.
    pub(crate) fn needed(&self) -> Duration {
        let slowest = self.latest.iter().max().filter(|_| self.count > 0);
        slowest.map_or(LONGEST, |slowest| (TOLERANCE * Duration::from_micros((*slowest).into())).min(LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_of_the_latest_says_how_long_a_start_takes_and_a_second_at_the_most() {
        let ms = Duration::from_millis;
        let mut times = StartupTimes::default();
        assert_eq!(times.needed(), ms(1_000));
        times.add(ms(120));
        (0..15).for_each(|_| times.add(ms(80)));
        assert_eq!(times.needed(), ms(240));
        times.add(ms(80));
        assert_eq!(times.needed(), ms(160));
        times.add(ms(9_000));
        assert_eq!(times.needed(), ms(1_000));
    }
}
