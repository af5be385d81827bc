//! Whether a watched process grows: its memory and its descriptors against the clients that it has served, and against
//! time. Functions of values; no process and no file is known here.

use crate::summary::units::FigureUnit;
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
/// How steep each half has to be, in parts of the whole. A cache that fills is steep in the first and flat in the second.
const AGREEING: f64 = 0.5;
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

/// How much a watched process grows, as thresholds may ask for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerGrowth {
    /// Resident memory, in bytes for each client that came.
    MemoryPerClient,
    /// Resident memory, in bytes a second.
    MemoryPerSecond,
    /// Descriptors for each client that came.
    DescriptorsPerClient,
}

impl ServerGrowth {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::MemoryPerClient, Self::MemoryPerSecond, Self::DescriptorsPerClient];

    /// Its name in thresholds.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MemoryPerClient => "server.memory.per_client_bytes",
            Self::MemoryPerSecond => "server.memory.per_second_bytes",
            Self::DescriptorsPerClient => "server.descriptors.per_client",
        }
    }

    /// What it is in.
    pub const fn unit(self) -> FigureUnit {
        match self {
            Self::MemoryPerClient | Self::MemoryPerSecond => FigureUnit::Bytes,
            Self::DescriptorsPerClient => FigureUnit::Count,
        }
    }

    /// How much growth a run cannot rule out: the upper end of the interval.
    pub fn bound(self, growth: &TargetGrowth) -> Option<f64> {
        Some(match self {
            Self::MemoryPerClient => growth.memory?.per_client?.high,
            Self::MemoryPerSecond => growth.memory?.per_second.high,
            Self::DescriptorsPerClient => growth.descriptors?.per_client?.high,
        })
    }
}

/// The part of a window that slopes come from: what is behind its settling, and behind the first `generation`, if clients follow
/// each other: a server that has just been started grows with each of its first clients, and gives that to those who follow them.
pub(crate) fn settled(window: &[Moment], generation: f64) -> &[Moment] {
    let settling = (window.len() as f64 * SETTLING).ceil() as usize;
    let begun = window.first().map_or(0.0, |first| first.served);
    let gone = window.partition_point(|it| it.served < begun + generation);
    &window[settling.max(gone)..]
}

/// How a figure grew over these moments, settled and in order; none if they are too few. It is called growth where two generations of
/// clients agree on it, or two halves of the time if clients do not follow each other.
pub(crate) fn growth(moments: &[Moment], generation: f64) -> Option<Growth> {
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
    let found = per_client.unwrap_or(per_second);
    let of: fn(&Moment) -> f64 = if per_client.is_some() { |it| it.served } else { |it| it.seconds };
    let (first, second) = batches.split_at(batches.len() / 2);
    let agrees = |half| steepness(of, half).is_some_and(|slope| slope >= AGREEING * found.mean);
    let grows = found.low > 0.0 && came >= 2.0 * generation && agrees(first) && agrees(second);
    let finding = if grows { GrowthFinding::Grows } else { GrowthFinding::NotSeen };
    Some(Growth { per_client, per_second, finding })
}

/// By how much the value grows with another, by least squares.
fn steepness(of: fn(&Moment) -> f64, moments: &[Moment]) -> Option<f64> {
    let count = moments.len() as f64;
    let mean = |value: &dyn Fn(&Moment) -> f64| moments.iter().map(value).sum::<f64>() / count;
    let (x, y) = (mean(&of), mean(&|it| it.value));
    let spread = mean(&|it| (of(it) - x).powi(2));
    (spread > 0.0).then(|| mean(&|it| (of(it) - x) * (it.value - y)) / spread)
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
        growth(settled(window, 0.0), 0.0).unwrap()
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
    fn a_server_that_grows_with_its_first_clients_does_not_leak() {
        // 100 clients a second stay for 20 s each: 45 kB for each of the first 2,000, and nothing for those who follow them.
        let fresh = |leak: f64| {
            let mut moments = window(5, 120, 100.0, leak, 50e3, 0.5);
            moments.iter_mut().for_each(|it| it.value += 45e3 * it.served.min(2_000.0));
            moments
        };
        let of = |moments: &[Moment]| growth(settled(moments, 2_000.0), 2_000.0).map(|it| it.finding);
        assert_eq!(of(&fresh(0.0)), Some(GrowthFinding::NotSeen));
        assert_eq!(of(&fresh(2_048.0)), Some(GrowthFinding::Grows), "a leak beside it is found");
        // Of what only one generation shows nothing is said; before the first has gone there is nothing to look at.
        assert_eq!(of(&fresh(2_048.0)[..55]), Some(GrowthFinding::NotSeen));
        assert_eq!(of(&fresh(2_048.0)[..25]), None);
        // A cache that is filled by clients and takes longer than that: steep in the first half, flat in the second.
        let mut filling = window(5, 200, 100.0, 0.0, 50e3, 0.5);
        filling.iter_mut().for_each(|it| it.value += 2_048.0 * it.served.min(13_000.0));
        assert_eq!(growth(settled(&filling, 2_000.0), 2_000.0).unwrap().finding, GrowthFinding::NotSeen);
    }

    #[test]
    fn what_is_too_short_or_has_no_clients_says_so() {
        assert_eq!(growth(settled(&window(1, 25, 10.0, 0.0, 1.0, 0.0), 0.0), 0.0), None);
        let nobody = of(&window(1, 60, 0.0, 0.0, 1e5, 0.0));
        assert_eq!((nobody.per_client, nobody.finding), (None, GrowthFinding::NotSeen));
    }
}
