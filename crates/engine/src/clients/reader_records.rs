//! What clients left behind, in memory that does not grow with their number: the records of some, and sums over all.

use crate::clients::reader_record::ReaderRecord;
use crate::clients::reservoir::{MOST, Reservoir};
use crate::clients::sums::{ChannelSums, ClientSums, ColumnSums};

/// The records of one workload's clients.
#[derive(Debug, Default)]
pub(crate) struct ReaderRecords {
    kept: Vec<ReaderRecord>,
    sums: ClientSums,
    reservoir: Reservoir,
}

impl ReaderRecords {
    pub(crate) fn push(&mut self, record: ReaderRecord) {
        self.sums.add(&record);
        if let Some(place) = self.reservoir.place() {
            self.keep(record, place);
        }
    }

    /// Adds one whose place is known: it was given when the run directory was written.
    pub(crate) fn push_to(&mut self, place: usize, record: ReaderRecord) {
        self.sums.add(&record);
        self.reservoir.skip(1);
        self.keep(record, place);
    }

    /// Adds clients of which there is no record.
    pub(crate) fn left_out(&mut self, sums: &ClientSums) {
        self.sums.append(sums);
        self.reservoir.skip(sums.clients());
    }

    fn keep(&mut self, record: ReaderRecord, place: usize) {
        if let Some(kept) = self.kept.get_mut(place) {
            *kept = record;
        } else if self.kept.len() < MOST {
            self.kept.push(record);
        }
    }

    /// Those that are kept one by one.
    pub(crate) fn kept(&self) -> &[ReaderRecord] {
        &self.kept
    }

    /// How many there were.
    pub(crate) fn all(&self) -> u64 {
        self.sums.clients()
    }

    /// A column over all of them; none if no client had it.
    pub(crate) fn column(&self, at: usize) -> Option<&ColumnSums> {
        self.sums.column(at)
    }

    /// The clients of a channel.
    pub(crate) fn channel(&self, channel: u32) -> ChannelSums {
        self.sums.channel(channel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_metrics::Failure;

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
    fn what_is_written_of_a_million_clients_is_read_as_it_was_kept() {
        let (mut kept, mut read) = (ReaderRecords::default(), ReaderRecords::default());
        let (mut reservoir, mut left_out, mut lines) = (Reservoir::default(), ClientSums::default(), 0);
        for client in 0..1_000_000 {
            kept.push(record(client));
            match reservoir.place() {
                Some(place) if place == read.kept().len() => read.push(record(client)),
                Some(place) => read.push_to(place, record(client)),
                None => left_out.add(&record(client)),
            }
            lines = read.all();
        }
        // 100,000 lines, and as many again for each e-fold of clients.
        assert!((325_000..335_000).contains(&lines), "{lines} lines");
        let text = serde_json::to_string(&left_out).unwrap();
        read.left_out(&serde_json::from_str(&text).unwrap());
        let clients = |records: &ReaderRecords| records.kept().iter().map(|it| it.client).collect::<Vec<_>>();
        assert_eq!(clients(&read), clients(&kept));
        assert_eq!((read.all(), read.column(2)), (1_000_000, None));
        assert_eq!(read.column(0), kept.column(0));
        assert_eq!(read.channel(1), kept.channel(1));
    }

    #[test]
    fn of_fewer_each_is_kept_in_the_order_in_which_they_ended() {
        let mut records = ReaderRecords::default();
        [5, 3, 4].map(record).into_iter().for_each(|it| records.push(it));
        let clients: Vec<_> = records.kept().iter().map(|it| it.client).collect();
        assert_eq!(clients, [5, 3, 4]);
    }
}
