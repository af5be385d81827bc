//! What others do to the machine while something is measured that is no run.

use std::time::Duration;
use weir_engine::summary::{Verdict, VerdictState};
use weir_engine::verdict_of_machine;
use weir_metrics::Moment;
use weir_observe::{Environment, Sample, Sampler, Usage, Window};
use weir_runner::{ErrorKind, RunError};
use weir_shard::clock;

/// Time between two looks, as in a run.
const INTERVAL: Duration = Duration::from_secs(1);

/// Samples that are kept: of a measurement that takes longer than this many seconds, the verdict is of its last ones.
const KEPT: usize = 3_600;

/// Looks at the machine once a second, whenever it is called.
pub(crate) struct MachineWatch {
    sampler: Sampler,
    samples: Vec<Sample>,
    next: Moment,
}

impl MachineWatch {
    /// Looks for the first time.
    pub(crate) fn begin() -> Result<Self, RunError> {
        let sampler = Sampler::new([]).map_err(RunError::with(ErrorKind::Internal))?;
        let mut watch = Self { sampler, samples: Vec::new(), next: clock::now() };
        watch.look();
        Ok(watch)
    }

    /// Looks, if a second has passed since it last did.
    pub(crate) fn look(&mut self) {
        let now = clock::now();
        if now >= self.next {
            self.take(now);
        }
    }

    fn take(&mut self, now: Moment) {
        self.next = now + INTERVAL;
        if self.samples.len() == KEPT {
            self.samples.remove(0);
        }
        self.samples.push(self.sampler.sample(now.as_nanos()));
    }

    /// What it has seen from its beginning until now.
    pub(crate) fn verdict(mut self) -> Verdict {
        self.take(clock::now());
        let usage = Usage::summary(&self.samples, Window { from_ns: 0, to_ns: u64::MAX });
        let quiet = Verdict { state: VerdictState::Valid, reasons: Vec::new(), waived: Vec::new() };
        usage.map_or(quiet, |usage| verdict_of_machine(&usage, &Environment::read()))
    }
}
