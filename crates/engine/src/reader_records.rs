//! What clients left behind, in memory that does not grow with their number: each record of the first hundred thousand, then as
//! many drawn at random out of all, and sums that are exact.

use std::collections::BTreeMap;
use weir_metrics::Failure;

/// Records that are kept one by one: 100 MB of those with most columns.
pub(crate) const MOST: usize = 100_000;
/// Whole numbers below this are counted one by one: they stand for the words of a column of words, of which none has more.
const WORDS: usize = 16;

/// What one client said when it ended.
#[derive(Clone, Debug)]
pub(crate) struct ReaderRecord {
    pub(crate) channel: u32,
    pub(crate) client: u32,
    /// `None` for one that never read.
    pub(crate) since: Option<f64>,
    pub(crate) until: f64,
    pub(crate) failure: Option<Failure>,
    pub(crate) numbers: Vec<Option<f64>>,
}

/// The records of one workload's clients.
#[derive(Debug)]
pub(crate) struct ReaderRecords {
    kept: Vec<ReaderRecord>,
    all: u64,
    columns: Vec<ColumnSums>,
    channels: BTreeMap<u32, ChannelSums>,
    /// Of a fixed seed: who reads a run directory again keeps the same ones.
    random: fastrand::Rng,
}

/// A column over all clients.
#[derive(Clone, Debug)]
pub(crate) struct ColumnSums {
    /// Clients that have a number in it.
    pub(crate) count: u64,
    pub(crate) sum: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
    /// How many clients have each of the smallest whole numbers.
    words: [u64; WORDS],
}

/// The clients of one channel.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChannelSums {
    pub(crate) failed: u64,
    /// Clients that read, how long together, and the sums of their columns.
    pub(crate) readers: u64,
    pub(crate) seconds: f64,
    sums: Vec<f64>,
}

impl Default for ReaderRecords {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            all: 0,
            columns: Vec::new(),
            channels: BTreeMap::new(),
            random: fastrand::Rng::with_seed(0),
        }
    }
}

impl ReaderRecords {
    pub(crate) fn push(&mut self, record: ReaderRecord) {
        self.all += 1;
        if self.columns.len() < record.numbers.len() {
            self.columns.resize(record.numbers.len(), ColumnSums::NONE);
        }
        for (column, number) in self.columns.iter_mut().zip(&record.numbers) {
            number.iter().for_each(|number| column.add(*number));
        }
        self.channels.entry(record.channel).or_default().add(&record);
        if self.kept.len() < MOST {
            self.kept.push(record);
            return;
        }
        // Algorithm R (J. Vitter, Random sampling with a reservoir, ACM TOMS 11, 1985): each of all has the same chance.
        let at = self.random.u64(..self.all);
        if let Some(kept) = usize::try_from(at).ok().and_then(|at| self.kept.get_mut(at)) {
            *kept = record;
        }
    }

    /// Those that are kept one by one.
    pub(crate) fn kept(&self) -> &[ReaderRecord] {
        &self.kept
    }

    /// How many there were.
    pub(crate) fn all(&self) -> u64 {
        self.all
    }

    /// A column over all of them; none if no client had it.
    pub(crate) fn column(&self, at: usize) -> Option<&ColumnSums> {
        self.columns.get(at).filter(|column| column.count > 0)
    }

    /// The clients of a channel.
    pub(crate) fn channel(&self, channel: u32) -> ChannelSums {
        self.channels.get(&channel).cloned().unwrap_or_default()
    }
}

impl ColumnSums {
    pub(crate) const NONE: Self =
        Self { count: 0, sum: 0.0, least: f64::INFINITY, most: f64::NEG_INFINITY, words: [0; WORDS] };

    fn add(&mut self, number: f64) {
        self.count += 1;
        self.sum += number;
        self.least = self.least.min(number);
        self.most = self.most.max(number);
        if number.fract() == 0.0 && (0.0..WORDS as f64).contains(&number) {
            self.words[number as usize] += 1;
        }
    }

    /// The same with this many more clients, which have counted nothing.
    pub(crate) fn with_zeroes(mut self, clients: u64) -> Self {
        if clients > 0 {
            self.count += clients;
            self.least = self.least.min(0.0);
            self.most = self.most.max(0.0);
        }
        self
    }

    /// How many clients have the word of this position.
    pub(crate) fn of_word(&self, position: usize) -> u64 {
        self.words.get(position).copied().unwrap_or_default()
    }
}

impl ChannelSums {
    fn add(&mut self, record: &ReaderRecord) {
        self.failed += u64::from(record.failure.is_some());
        let Some(since) = record.since else { return };
        self.readers += 1;
        self.seconds += record.until - since;
        self.sums.resize(self.sums.len().max(record.numbers.len()), 0.0);
        for (sum, number) in self.sums.iter_mut().zip(&record.numbers) {
            *sum += number.unwrap_or_default();
        }
    }

    /// The sum of a column over those that read.
    pub(crate) fn sum(&self, at: usize) -> u64 {
        self.sums.get(at).map_or(0, |sum| *sum as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(client: u32) -> ReaderRecord {
        let numbers = vec![Some(f64::from(client)), Some(f64::from(client % 3)), None];
        let failure = client.is_multiple_of(10).then_some(Failure::Reset);
        ReaderRecord { channel: client % 2, client, since: Some(1.0), until: 3.0, failure, numbers }
    }

    #[test]
    fn of_a_million_clients_a_hundred_thousand_are_kept_and_the_sums_are_exact() {
        const ALL: u32 = 1_000_000;
        let mut records = ReaderRecords::default();
        (0..ALL).for_each(|client| records.push(record(client)));
        assert_eq!((records.kept().len(), records.all()), (MOST, u64::from(ALL)));
        let column = records.column(0).unwrap();
        let sum = f64::from(ALL) * f64::from(ALL - 1) / 2.0;
        assert_eq!((column.sum, column.least, column.most), (sum, 0.0, f64::from(ALL - 1)));
        let words = [0, 1, 2, 3].map(|word| records.column(1).unwrap().of_word(word));
        assert_eq!(words, [333_334, 333_333, 333_333, 0]);
        assert!(records.column(2).is_none());
        let channel = records.channel(1);
        assert_eq!((channel.readers, channel.failed, channel.seconds), (500_000, 0, 1e6));
        assert_eq!(records.channel(0).failed, 100_000);
        // A hundred thousand draws of uniform numbers: their mean is within five standard errors of the middle.
        let mean = records.kept().iter().map(|it| f64::from(it.client)).sum::<f64>() / MOST as f64;
        assert!((mean / f64::from(ALL) - 0.5).abs() < 5.0 * 0.289 / (MOST as f64).sqrt(), "{mean}");
    }

    #[test]
    fn of_fewer_each_is_kept_in_the_order_in_which_they_ended() {
        let mut records = ReaderRecords::default();
        [5, 3, 4].map(record).into_iter().for_each(|it| records.push(it));
        let clients: Vec<_> = records.kept().iter().map(|it| it.client).collect();
        assert_eq!(clients, [5, 3, 4]);
    }
}
