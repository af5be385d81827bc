//! Whether a watched process grows: its memory and its descriptors against the clients that it has served, and against
//! time. Functions of values; no process and no file is known here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_metrics::Estimate;

/// Part of a window that is left out at its beginning: allocators and caches of the target fill in it.
const SETTLING: f64 = 1.0 / 3.0;
/// Batches of samples that means are taken of, at the most and at the least (B. Schmeiser, Batch size effects in the
/// analysis of simulation output, Operations Research 30, 1982: 10 to 30).
const BATCHES: (usize, usize) = (10, 20);
/// Samples of a batch at the least.
const BATCH: usize = 2;
/// The fewest new clients for a statement on growth a client.
const CLIENTS: f64 = 30.0;

/// A watched process at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moment {
    /// When, in seconds of the run.
    pub(crate) seconds: f64,
    /// Clients that had begun by then, in the whole run.
    pub(crate) served: f64,
    /// The value.
    pub(crate) value: f64,
}

/// How one figure of a process grew over a window in which the number of clients was kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Growth {
    /// By how much for each client that came; none where hardly any did.
    pub per_client: Option<Estimate>,
    /// By how much a second.
    pub per_second: Estimate,
    /// What that comes to.
    pub finding: GrowthFinding,
}

/// What growth comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GrowthFinding {
    /// The interval of the slope lies above zero.
    Grows,
    /// Zero lies in the interval, or above it: no growth above the interval's upper end is seen.
    NotSeen,
}

/// How a watched process grew, and what stayed when the clients were gone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetGrowth {
    /// What was watched.
    pub target: String,
    /// The seconds of the run that the slopes come from.
    pub begin_seconds: f64,
    /// See `begin_seconds`.
    pub end_seconds: f64,
    /// Clients that began in them.
    pub clients: u64,
    /// Resident memory, in bytes; none where too few samples were taken.
    pub memory: Option<Growth>,
    /// Descriptors; none where they cannot be read.
    pub descriptors: Option<Growth>,
    /// What stayed when the clients were gone.
    pub residue: Option<Residue>,
}

/// What stayed of a process when the clients were gone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Residue {
    /// Clients that began in the whole run.
    pub clients: u64,
    /// Seconds between the last client's end and the last look.
    pub after_seconds: f64,
    /// Resident memory at the last look, less that before the first client came.
    pub memory_bytes: i64,
    /// Descriptors at the last look, less those before the first client came.
    pub descriptors: Option<i64>,
}

impl TargetGrowth {
    /// The value of a figure that thresholds may ask for: how much growth the run cannot rule out, the upper end of the
    /// interval.
    pub fn bound(&self, figure: &str) -> Option<f64> {
        let [memory, descriptors] = [self.memory, self.descriptors];
        let bound = match figure {
            PER_CLIENT_BYTES => memory?.per_client?.high,
            PER_SECOND_BYTES => memory?.per_second.high,
            PER_CLIENT_DESCRIPTORS => descriptors?.per_client?.high,
            _ => return None,
        };
        Some(bound)
    }
}

const PER_CLIENT_BYTES: &str = "server.memory.per_client_bytes";
const PER_SECOND_BYTES: &str = "server.memory.per_second_bytes";
const PER_CLIENT_DESCRIPTORS: &str = "server.descriptors.per_client";

/// Figures of the watched process that thresholds may ask for.
pub const SERVER_FIGURES: [&str; 3] = [PER_CLIENT_BYTES, PER_SECOND_BYTES, PER_CLIENT_DESCRIPTORS];

/// The part of a window that slopes come from.
pub(crate) fn settled(window: &[Moment]) -> &[Moment] {
    &window[(window.len() as f64 * SETTLING).ceil() as usize..]
}

/// How a figure grew over these moments, settled and in order; none if they are too few.
pub(crate) fn growth(moments: &[Moment]) -> Option<Growth> {
    let count = (moments.len() / BATCH).min(BATCHES.1);
    if count < BATCHES.0 {
        return None;
    }
    let batches: Vec<Moment> = (0..count)
        .map(|number| mean(&moments[number * moments.len() / count..(number + 1) * moments.len() / count]))
        .collect();
    let came = moments.last()?.served - moments.first()?.served;
    let slope = |of: fn(&Moment) -> f64, batches: &[Moment]| {
        let points: Vec<_> = batches.iter().map(|it| (of(it), it.value)).collect();
        Estimate::of_slope_in_time(&points)
    };
    let per_second = slope(|it| it.seconds, &batches)?;
    let per_client = slope(|it| it.served, &batches).filter(|_| came >= CLIENTS);
    let grows = per_client.unwrap_or(per_second).low > 0.0;
    let finding = if grows { GrowthFinding::Grows } else { GrowthFinding::NotSeen };
    Some(Growth { per_client, per_second, finding })
}

fn mean(moments: &[Moment]) -> Moment {
    let count = moments.len() as f64;
    let of = |value: fn(&Moment) -> f64| moments.iter().map(value).sum::<f64>() / count;
    Moment { seconds: of(|it| it.seconds), served: of(|it| it.served), value: of(|it| it.value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value drawn from the normal distribution (Box, Muller).
    fn normal(random: &mut fastrand::Rng) -> f64 {
        let (radius, angle) =
            ((-2.0 * (1.0 - random.f64()).ln()).sqrt(), random.f64() * std::f64::consts::TAU);
        radius * angle.cos()
    }

    /// A server under clients that come and go: `leak` bytes each, on memory that moves about by `spread` bytes and of
    /// which each second keeps `memory` of the deviation of the one before it. Its pages are of 4 KiB.
    fn window(seed: u64, seconds: u32, rate: f64, leak: f64, spread: f64, memory: f64) -> Vec<Moment> {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut deviation, mut served) = (spread * normal(&mut random), 0.0);
        let step = (1.0 - memory * memory).sqrt();
        (0..seconds)
            .map(|second| {
                deviation = memory * deviation + step * spread * normal(&mut random);
                served += (rate + rate.sqrt() * normal(&mut random)).max(0.0);
                let value = ((40e6 + leak * served + deviation) / 4_096.0).round() * 4_096.0;
                Moment { seconds: f64::from(second), served, value }
            })
            .collect()
    }

    fn of(window: &[Moment]) -> Growth {
        growth(settled(window)).unwrap()
    }

    #[test]
    fn a_leak_is_found_within_ten_percent() {
        for seed in 0..20 {
            let found = of(&window(seed, 120, 100.0, 2_048.0, 200e3, 0.5));
            let slope = found.per_client.unwrap();
            assert!((slope.mean - 2_048.0).abs() < 205.0, "seed {seed}: {slope:?}");
            assert_eq!(found.finding, GrowthFinding::Grows, "seed {seed}: {found:?}");
            assert!((found.per_second.mean / 100.0 - 2_048.0).abs() < 300.0);
        }
    }

    #[test]
    fn the_interval_covers_the_truth_nineteen_times_in_twenty_whatever_seconds_have_in_common() {
        for memory in [0.0, 0.5, 0.9] {
            for leak in [0.0, 2_048.0] {
                let covered = (0..400).filter(|seed| {
                    let slope = of(&window(*seed, 120, 100.0, leak, 500e3, memory)).per_client.unwrap();
                    !slope.excludes(leak)
                });
                let covered = covered.count();
                // 95 % of 400 is 380, give or take twice 4.4.
                assert!(covered >= 371, "{covered} of 400 at {memory} and {leak} bytes");
            }
        }
    }

    #[test]
    fn a_server_that_keeps_nothing_is_said_to_grow_in_one_of_forty() {
        let said = (0..400)
            .filter(|seed| of(&window(*seed, 120, 100.0, 0.0, 500e3, 0.5)).finding != GrowthFinding::NotSeen);
        // Growth is one of the two ends of an interval of 95 %.
        let said = said.count();
        assert!(said <= 20, "{said} of 400");
    }

    #[test]
    fn a_cache_that_fills_is_no_leak_and_while_it_fills_much_cannot_be_ruled_out() {
        let filling = |time: f64| {
            let mut moments = window(3, 180, 100.0, 0.0, 100e3, 0.0);
            moments.iter_mut().for_each(|it| it.value += 80e6 * (1.0 - (-it.seconds / time).exp()));
            of(&moments)
        };
        let filled = filling(5.0);
        assert_eq!(filled.finding, GrowthFinding::NotSeen);
        assert!(filled.per_client.unwrap().high < 100.0, "{filled:?}");
        // It grows on by 80 MB · (e^−1 − e^−3) in 12,000 clients, and no straight line says so.
        let fills = filling(60.0);
        assert_eq!(fills.finding, GrowthFinding::NotSeen);
        assert!(fills.per_client.unwrap().high > 2_100.0, "{fills:?}");
    }

    #[test]
    fn what_is_too_short_or_has_no_clients_says_so() {
        assert_eq!(growth(settled(&window(1, 25, 10.0, 0.0, 1.0, 0.0))), None);
        let nobody = of(&window(1, 60, 0.0, 0.0, 1e5, 0.0));
        assert_eq!((nobody.per_client, nobody.finding), (None, GrowthFinding::NotSeen));
    }
}
