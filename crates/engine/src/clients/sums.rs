//! Sums over clients: what is exact of them however many there are.

use crate::clients::reader_record::ReaderRecord;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Whole numbers below this are counted one by one: they stand for the words of a column of words, of which none has more.
const WORDS: usize = 16;

/// Any number of clients of one workload.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ClientSums {
    clients: u64,
    columns: Vec<ColumnSums>,
    channels: BTreeMap<u32, ChannelSums>,
}

/// A column over all clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ColumnSums {
    /// Clients that have a number in it. Without any the others say nothing.
    pub(crate) count: u64,
    pub(crate) sum: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
    /// How many clients have each of the smallest whole numbers.
    words: [u64; WORDS],
}

/// The clients of one channel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ChannelSums {
    pub(crate) failed: u64,
    /// Clients that read, how long together, and the sums of their columns.
    pub(crate) readers: u64,
    pub(crate) seconds: f64,
    sums: Vec<f64>,
}

impl ClientSums {
    pub(crate) fn add(&mut self, record: &ReaderRecord) {
        self.clients += 1;
        self.columns.resize_with(self.columns.len().max(record.numbers.len()), ColumnSums::default);
        for (column, number) in self.columns.iter_mut().zip(&record.numbers) {
            number.iter().for_each(|number| column.add(*number));
        }
        self.channels.entry(record.channel).or_default().add(record);
    }

    /// Adds other clients.
    pub(crate) fn append(&mut self, other: &Self) {
        self.clients = self.clients.saturating_add(other.clients);
        self.columns.resize_with(self.columns.len().max(other.columns.len()), ColumnSums::default);
        self.columns.iter_mut().zip(&other.columns).for_each(|(mine, theirs)| mine.append(theirs));
        for (channel, theirs) in &other.channels {
            self.channels.entry(*channel).or_default().append(theirs);
        }
    }

    /// How many there are.
    pub(crate) fn clients(&self) -> u64 {
        self.clients
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
    fn add(&mut self, number: f64) {
        self.extend(number, number);
        self.count += 1;
        self.sum += number;
        if number.fract() == 0.0 && (0.0..WORDS as f64).contains(&number) {
            self.words[number as usize] += 1;
        }
    }

    fn append(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.extend(other.least, other.most);
        self.count = self.count.saturating_add(other.count);
        self.sum += other.sum;
        for (mine, theirs) in self.words.iter_mut().zip(other.words) {
            *mine = mine.saturating_add(theirs);
        }
    }

    fn extend(&mut self, least: f64, most: f64) {
        let is_first = self.count == 0;
        self.least = if is_first { least } else { self.least.min(least) };
        self.most = if is_first { most } else { self.most.max(most) };
    }

    /// The same with this many more clients, which have counted nothing.
    pub(crate) fn with_zeroes(mut self, clients: u64) -> Self {
        if clients > 0 {
            self.extend(0.0, 0.0);
            self.count = self.count.saturating_add(clients);
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

    fn append(&mut self, other: &Self) {
        self.failed = self.failed.saturating_add(other.failed);
        self.readers = self.readers.saturating_add(other.readers);
        self.seconds += other.seconds;
        self.sums.resize(self.sums.len().max(other.sums.len()), 0.0);
        self.sums.iter_mut().zip(&other.sums).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// The sum of a column over those that read.
    pub(crate) fn sum(&self, at: usize) -> u64 {
        self.sums.get(at).map_or(0, |sum| *sum as u64)
    }
}
