//! What a machine's points over a load come to, beside what they were before it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Figure, MachinePoint, MachineValues, Window};

/// The five figures over a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineUsage {
    /// `cpu`, in percent of all CPUs together.
    pub cpu_percent: Option<Figure>,
    /// `memory`, in bytes.
    pub memory_bytes: Option<Figure>,
    /// `load1`.
    pub load1: Option<Figure>,
    /// `tx`, in bits a second.
    pub tx_bps: Option<Figure>,
    /// `rx`, in bits a second.
    pub rx_bps: Option<Figure>,
}

impl MachineUsage {
    /// Sums up the points in the window.
    pub fn over(points: &[MachinePoint], window: Window) -> Self {
        let points: Vec<_> =
            points.iter().filter(|it| (window.from_ns..=window.to_ns).contains(&it.at_ns)).collect();
        let gauge = |value: fn(&MachineValues) -> Option<f64>| {
            Figure::of_gauge(points.iter().filter_map(|point| value(&point.values)))
        };
        let rate = |value: fn(&MachineValues) -> Option<f64>| {
            let parts = || points.iter().filter_map(|point| Some((value(&point.values)?, point.seconds)));
            let seconds: f64 = parts().map(|(_, seconds)| seconds).sum();
            let mean = parts().map(|(value, seconds)| value * seconds).sum::<f64>() / seconds;
            Figure::of_rate(parts().map(|(value, _)| value), mean)
        };
        // A mean over moments is one of the whole time; their maximum is not.
        let is_within =
            |point: &MachinePoint| point.at_ns.saturating_sub((point.seconds * 1e9) as u64) >= window.from_ns;
        let peaks = points.iter().filter(|it| is_within(it)).filter_map(|it| it.values.memory_peak_bytes);
        let most = peaks.fold(0.0, f64::max);
        Self {
            cpu_percent: rate(|it| it.cpu_percent),
            memory_bytes: gauge(|it| it.memory_bytes)
                .map(|figure| Figure { max: figure.max.max(most), ..figure }),
            load1: gauge(|it| it.load1),
            tx_bps: rate(|it| it.tx_bps),
            rx_bps: rate(|it| it.rx_bps),
        }
    }

    /// Name and figure, in the order of the classic table.
    pub fn named(&self) -> [(&'static str, Option<Figure>); 5] {
        [
            ("cpu", self.cpu_percent),
            ("memory", self.memory_bytes),
            ("load1", self.load1),
            ("tx", self.tx_bps),
            ("rx", self.rx_bps),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(at_ns: u64, seconds: f64, cpu: Option<f64>, load: Option<f64>) -> MachinePoint {
        let values = MachineValues { cpu_percent: cpu, load1: load, ..MachineValues::default() };
        MachinePoint { at_ns, seconds, values }
    }

    #[test]
    fn the_most_memory_is_that_between_the_points_too() {
        let values = |now, peak| MachineValues {
            memory_bytes: Some(now),
            memory_peak_bytes: peak,
            ..MachineValues::default()
        };
        let points = [(10, values(4.0, None)), (20, values(6.0, Some(11.0))), (30, values(5.0, Some(5.0)))];
        let points = points.map(|(at_ns, values)| MachinePoint { at_ns, seconds: 10.0, values });
        let usage = MachineUsage::over(&points, Window { from_ns: 0, to_ns: 40 });
        assert_eq!(usage.memory_bytes, Some(Figure { min: 4.0, mean: 5.0, p95: 6.0, max: 11.0 }));
    }

    #[test]
    fn a_rates_mean_is_weighted_by_its_time_and_a_gauges_is_not() {
        let points = [
            point(0, 1.0, Some(99.0), Some(99.0)),
            point(10, 1.0, Some(10.0), Some(1.0)),
            point(40, 3.0, Some(50.0), Some(2.0)),
            point(50, 1.0, None, Some(6.0)),
            point(51, 1.0, Some(99.0), None),
        ];
        let usage = MachineUsage::over(&points, Window { from_ns: 10, to_ns: 50 });
        assert_eq!(usage.cpu_percent, Some(Figure { min: 10.0, mean: 40.0, p95: 50.0, max: 50.0 }));
        assert_eq!(usage.load1, Some(Figure { min: 1.0, mean: 3.0, p95: 6.0, max: 6.0 }));
        assert_eq!((usage.memory_bytes, usage.tx_bps), (None, None));
        assert_eq!(MachineUsage::over(&points, Window { from_ns: 11, to_ns: 12 }), MachineUsage::default());
    }
}
