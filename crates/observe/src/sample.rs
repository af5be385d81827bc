//! One line of `observe.ndjson`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::others;
use crate::{HostSample, MachineSample, OtherProcesses, ProcessSample, TargetSample};

/// Everything that was observed at one moment. Counters are running totals:
/// [`Usage::between`](crate::Usage::between) two samples makes rates of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// When, in nanoseconds on the caller's monotonic clock.
    pub at_ns: u64,
    /// The watched servers, in the order in which they were asked for.
    pub targets: Vec<TargetSample>,
    /// weir itself, from `/proc/self`.
    pub generator: ProcessSample,
    /// The machine that weir runs on.
    pub host: HostSample,
    /// What was read of other machines, in the order of the scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<MachineSample>,
    /// What else used the CPU since `/proc` was walked before, busiest first; nothing while that was little.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherProcesses>,
}

/// Shortest time between two samples that a rate is taken over: the kernel counts CPU in ticks of 10 ms, so that over
/// half a second a rate is good to 2 points, and one tick in 3 ms would be 333 %.
const LEAST_NS: u64 = 500_000_000;

impl Sample {
    /// The samples that rates are taken between: the first, the last, and those that are not too close to another. A
    /// stretch that is too short becomes part of the one before it, the first of all part of the one after it.
    pub fn spaced(samples: &[Self]) -> Vec<&Self> {
        let mut spaced: Vec<&Self> = Vec::with_capacity(samples.len());
        for sample in samples {
            let is_close = |last: &&Self| sample.at_ns.saturating_sub(last.at_ns) < LEAST_NS;
            match spaced.len() {
                0 => spaced.push(sample),
                _ if !spaced.last().is_some_and(is_close) => spaced.push(sample),
                1 => {}
                last => spaced[last - 1] = sample,
            }
        }
        spaced
    }

    /// Takes over what an earlier sample, which is not kept, has of the time before it and this one has not: the CPU of other
    /// processes, points of other machines and why there were none.
    pub fn take_over(&mut self, earlier: Self) {
        self.others = others::together(earlier.others.iter().chain(&self.others));
        let machines = self.machines.iter_mut().zip(earlier.machines);
        machines.for_each(|(machine, earlier)| machine.take_over(earlier));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProcessSample;

    #[test]
    fn a_stretch_that_is_too_short_for_a_rate_becomes_part_of_its_neighbour() {
        let kept = |milliseconds: &[u64]| {
            let sample = |at: &u64| Sample {
                at_ns: at * 1_000_000,
                targets: Vec::new(),
                generator: ProcessSample::default(),
                host: HostSample::default(),
                machines: Vec::new(),
                others: Vec::new(),
            };
            let samples: Vec<Sample> = milliseconds.iter().map(sample).collect();
            Sample::spaced(&samples).iter().map(|sample| sample.at_ns / 1_000_000).collect::<Vec<_>>()
        };
        assert_eq!(kept(&[0, 1_000, 2_000, 3_000]), [0, 1_000, 2_000, 3_000]);
        // The last sample is taken when the run is over, whenever that is.
        assert_eq!(kept(&[0, 1_000, 2_000, 2_003]), [0, 1_000, 2_003]);
        assert_eq!(kept(&[0, 3, 1_003]), [0, 1_003]);
        assert_eq!(kept(&[0, 1_700, 2_000, 3_000]), [0, 2_000, 3_000]);
        assert_eq!((kept(&[]), kept(&[5]), kept(&[5, 8])), (vec![], vec![5], vec![5]));
    }
}
