//! Where a shard's clients write their figures during one interval.

use crate::histogram::FilledHistogram;
use crate::{Counter, Failure, Gauge, Kind, Schema, Signed, SignedHistogram, Spread};
use hdrhistogram::Histogram;

/// The figures of one workload on one shard (or, merged, on many) in one interval.
///
/// Recording is an addition or a histogram increment: no lock, and no allocation once the
/// histograms have grown to their range. Three significant digits. What is not recorded takes no room.
#[derive(Clone, Debug)]
pub struct Recorder {
    schema: Schema,
    cells: Box<[Cell]>,
    failures: [u64; Failure::ALL.len()],
}

#[derive(Clone, Debug)]
enum Cell {
    Number(u64),
    Spread(FilledHistogram),
    Signed(SignedHistogram),
}

/// One figure's value, to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reading<'a> {
    Number(u64),
    Spread(&'a Histogram<u64>),
    Signed(&'a SignedHistogram),
}

impl Recorder {
    /// All figures of `schema` at zero.
    pub fn new(schema: Schema) -> Self {
        let cells = schema
            .figures()
            .map(|figure| match figure.kind {
                Kind::Counter | Kind::Gauge(_) => Cell::Number(0),
                Kind::Spread => Cell::Spread(FilledHistogram::default()),
                Kind::Signed => Cell::Signed(SignedHistogram::default()),
            })
            .collect();
        Self { schema, cells, failures: [0; Failure::ALL.len()] }
    }

    /// Which figures are kept.
    pub fn schema(&self) -> Schema {
        self.schema
    }

    /// Adds `n` events.
    #[inline]
    pub fn count(&mut self, counter: Counter, n: u64) {
        if let Cell::Number(value) = &mut self.cells[counter.0 as usize] {
            *value += n;
        }
    }

    /// Puts another number of events in the place of what was counted.
    pub fn recount(&mut self, counter: Counter, n: u64) {
        self.set_number(usize::from(counter.0), n);
    }

    /// Moves a level up or down.
    #[inline]
    pub fn shift(&mut self, gauge: Gauge, by: i64) {
        if let Cell::Number(value) = &mut self.cells[gauge.0 as usize] {
            *value = value.saturating_add_signed(by);
        }
    }

    /// Sets a level.
    #[inline]
    pub fn set(&mut self, gauge: Gauge, level: u64) {
        self.set_number(usize::from(gauge.0), level);
    }

    /// Counts one value of a distribution.
    #[inline]
    pub fn record(&mut self, spread: Spread, value: u64) {
        if let Cell::Spread(histogram) = &mut self.cells[spread.0 as usize] {
            histogram.record(value);
        }
    }

    /// Counts one signed value of a distribution.
    #[inline]
    pub fn record_signed(&mut self, signed: Signed, value: i64) {
        if let Cell::Signed(histogram) = &mut self.cells[signed.0 as usize] {
            histogram.record(value);
        }
    }

    /// Counts one failed client.
    pub fn fail(&mut self, failure: Failure) {
        self.failures[failure as usize] += 1;
        self.count(crate::common::FAILED, 1);
    }

    /// Failures by kind, zero counts left out.
    pub fn failures(&self) -> impl Iterator<Item = (Failure, u64)> + '_ {
        Failure::ALL.iter().copied().zip(self.failures).filter(|(_, n)| *n > 0)
    }

    /// Value of a counter or a gauge's level.
    pub fn number(&self, position: usize) -> u64 {
        match &self.cells[position] {
            Cell::Number(value) => *value,
            Cell::Spread(_) | Cell::Signed(_) => 0,
        }
    }

    /// Value of a counter.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.number(counter.0 as usize)
    }

    /// A gauge's level.
    pub fn gauge(&self, gauge: Gauge) -> u64 {
        self.number(gauge.0 as usize)
    }

    /// The distribution of a figure of kind [`Kind::Spread`].
    pub fn spread(&self, spread: Spread) -> &Histogram<u64> {
        match &self.cells[spread.0 as usize] {
            Cell::Spread(histogram) => histogram.get(),
            Cell::Number(_) | Cell::Signed(_) => unreachable!("a Spread handle points at a histogram"),
        }
    }

    /// The distribution of a figure of kind [`Kind::Signed`].
    pub fn signed(&self, signed: Signed) -> &SignedHistogram {
        match &self.cells[signed.0 as usize] {
            Cell::Signed(histogram) => histogram,
            Cell::Number(_) | Cell::Spread(_) => unreachable!("a Signed handle points at a signed histogram"),
        }
    }

    /// Hands out what was recorded and starts the next interval: counters and distributions from
    /// zero, gauges from where they are.
    pub fn take(&mut self) -> Self {
        let mut next = Self::new(self.schema);
        for ((figure, from), to) in self.schema.figures().zip(&self.cells).zip(&mut next.cells) {
            if let (Kind::Gauge(_), Cell::Number(level)) = (figure.kind, from) {
                *to = Cell::Number(*level);
            }
        }
        std::mem::replace(self, next)
    }

    /// Adds what another shard recorded in the same interval.
    pub fn merge(&mut self, other: &Self) {
        self.absorb(other, crate::Merge::of);
    }

    /// Adds what was recorded in a later interval: gauges take the later level.
    pub fn append(&mut self, later: &Self) {
        self.absorb(later, |_, _, level| level);
    }

    fn absorb(&mut self, other: &Self, gauge: impl Fn(crate::Merge, u64, u64) -> u64) {
        for ((figure, mine), theirs) in self.schema.figures().zip(&mut self.cells).zip(&other.cells) {
            match (mine, theirs) {
                (Cell::Number(mine), Cell::Number(theirs)) => {
                    *mine = match figure.kind {
                        Kind::Gauge(merge) => gauge(merge, *mine, *theirs),
                        _ => mine.saturating_add(*theirs),
                    }
                }
                (Cell::Spread(mine), Cell::Spread(theirs)) => mine.add(theirs),
                (Cell::Signed(mine), Cell::Signed(theirs)) => mine.add(theirs),
                _ => unreachable!("recorders of one schema have cells of the same kinds"),
            }
        }
        for (mine, theirs) in self.failures.iter_mut().zip(other.failures) {
            *mine = mine.saturating_add(theirs);
        }
    }

    pub(crate) fn readings(&self) -> impl Iterator<Item = Reading<'_>> {
        self.cells.iter().map(|cell| match cell {
            Cell::Number(value) => Reading::Number(*value),
            Cell::Spread(histogram) => Reading::Spread(histogram.get()),
            Cell::Signed(histogram) => Reading::Signed(histogram),
        })
    }

    pub(crate) fn set_number(&mut self, position: usize, value: u64) {
        if let Some(Cell::Number(cell)) = self.cells.get_mut(position) {
            *cell = value;
        }
    }

    pub(crate) fn set_failure(&mut self, failure: Failure, n: u64) {
        self.failures[failure as usize] = n;
    }

    pub(crate) fn set_spread(&mut self, position: usize, histogram: Histogram<u64>) {
        if let Some(Cell::Spread(cell)) = self.cells.get_mut(position) {
            *cell = histogram.into();
        }
    }

    pub(crate) fn set_signed(&mut self, position: usize, histogram: SignedHistogram) {
        if let Some(Cell::Signed(cell)) = self.cells.get_mut(position) {
            *cell = histogram;
        }
    }
}
