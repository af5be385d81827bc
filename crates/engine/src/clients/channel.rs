//! What the readers of each channel counted, and which of them met the gaps in it.

use crate::clients;
use crate::clients::reader_record::ReaderRecord;
use crate::clients::reader_records::ReaderRecords;
use crate::clients::sums::ClientSums;
use crate::record::event::EventLine;
use crate::scenario::facts::WorkloadFacts;
use crate::summary::{ChannelFigure, ChannelSummary, ClientsSummary, GapSources};
use std::collections::{BTreeMap, BTreeSet};
use weir_clients::Column;
use weir_protocols::columns_of;

/// Sightings of one gap lie this near to each other on the stream's clock, in seconds: each reader reckons it from
/// the last reference.
const NEAR: f64 = 0.02;
/// A reader that began or ended less than this before or after a gap was met, in seconds, need not have met it: a
/// crowd viewer reads up to two seconds at a time.
const MARGIN: f64 = 2.5;
/// Gaps whose places are kept: 40 MB, and far more than anybody looks at.
const MOST_SIGHTINGS: usize = 1_000_000;
/// The column with all gaps of a reader.
const GAPS: &str = "ts.gap_events";

/// What readers said.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    records: ReaderRecords,
    sightings: Vec<Sighting>,
}

#[derive(Clone, Copy, Debug)]
struct Sighting {
    channel: u32,
    client: u32,
    at: f64,
    mark: u32,
    place: f64,
}

impl Readers {
    /// Takes note of an event, if it is one of a reader's.
    pub(crate) fn take(&mut self, line: &EventLine) {
        match line {
            EventLine::Account { place, .. } => {
                let Some(record) = ReaderRecord::of(line) else { return };
                match place {
                    Some(place) => self.records.push_to(*place as usize, record),
                    None => self.records.push(record),
                }
            }
            // What is beyond has no place, and is counted as such.
            EventLine::Gap { .. } if self.sightings.len() >= MOST_SIGHTINGS => {}
            EventLine::Gap { at_seconds, client, channel, mark, place_seconds, .. } => {
                self.sightings.push(Sighting {
                    channel: *channel,
                    client: *client,
                    at: *at_seconds,
                    mark: *mark,
                    place: *place_seconds,
                });
            }
            _ => {}
        }
    }

    /// Takes note of clients that have no event of their own.
    pub(crate) fn left_out(&mut self, sums: &ClientSums) {
        self.records.left_out(sums);
    }

    /// One entry a channel, in the order of the targets; none without records of clients. `complaints` are the
    /// stretches of the run, in seconds, in which this host's receive path complained.
    pub(crate) fn channels(&self, facts: &WorkloadFacts, complaints: &[(f64, f64)]) -> Vec<ChannelSummary> {
        let columns: Vec<(usize, &Column)> =
            columns_of(&facts.protocol).iter().enumerate().filter(|(_, column)| column.by_channel).collect();
        if columns.is_empty() || self.records.all() == 0 {
            return Vec::new();
        }
        let channels = facts.targets.iter().enumerate();
        channels.map(|(channel, target)| self.channel(channel as u32, target, &columns, complaints)).collect()
    }

    /// What each client left behind, and all `planned` of them together.
    pub(crate) fn clients(&self, facts: &WorkloadFacts, planned: u64) -> Option<ClientsSummary> {
        clients::of_records(columns_of(&facts.protocol), &self.records, planned)
    }

    /// What is said where not every client is kept one by one.
    pub(crate) fn thinned(&self) -> Option<String> {
        let (kept, all) = (self.records.kept().len() as u64, self.records.all());
        (kept < all).then(|| {
            format!(
                "{kept} of {all} clients have a row in clients.csv, and percentiles of clients are theirs: they were drawn at random; sums, means and extremes are of all"
            )
        })
    }

    fn channel(
        &self,
        channel: u32,
        target: &str,
        columns: &[(usize, &Column)],
        complaints: &[(f64, f64)],
    ) -> ChannelSummary {
        let sums = self.records.channel(channel);
        let kept = self.records.kept().iter();
        let kept: Vec<_> = kept.filter(|it| it.channel == channel && it.since.is_some()).collect();
        let figures = columns.iter().map(|(at, column)| ChannelFigure {
            name: column.figure.to_owned(),
            title: column.title.to_owned(),
            total: sums.sum(*at),
        });
        let seconds = sums.seconds;
        let bytes = sums.sum(0);
        let met = columns.iter().find(|(_, column)| column.figure == GAPS).map_or(0, |(at, _)| sums.sum(*at));
        ChannelSummary {
            target: target.to_owned(),
            readers: sums.readers,
            failed: sums.failed,
            bit_rate_bps: if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 },
            figures: figures.collect(),
            gaps: self.gaps(channel, &kept, complaints, met),
        }
    }

    /// `met` is how many gaps the readers counted; of most of them they know the place.
    fn gaps(
        &self,
        channel: u32,
        accounts: &[&ReaderRecord],
        complaints: &[(f64, f64)],
        met: u64,
    ) -> GapSources {
        let sightings = self.sightings.iter().filter(|it| it.channel == channel);
        let placed = sightings.clone().count() as u64;
        let mut sources = GapSources { unplaced: met.saturating_sub(placed), ..GapSources::default() };
        for gap in places(sightings) {
            let first = gap.iter().map(|it| it.at).fold(f64::INFINITY, f64::min);
            let last = gap.iter().map(|it| it.at).fold(0.0, f64::max);
            let met: BTreeSet<u32> = gap.iter().map(|it| it.client).collect();
            // Readers that read before the gap and after it.
            let there = |it: &&&ReaderRecord| {
                it.since.is_some_and(|since| since + MARGIN <= first) && last + MARGIN <= it.until
            };
            let others = accounts.iter().filter(there).any(|it| !met.contains(&it.client));
            let complained =
                || complaints.iter().any(|(begin, end)| *begin <= last + 1.0 && first - 1.0 <= *end);
            match (met.len(), others) {
                (1, false) => sources.unknown += 1,
                (_, false) => sources.of_source += 1,
                _ if complained() => sources.of_generator += 1,
                _ => sources.of_connection += 1,
            }
        }
        sources
    }
}

/// Sightings of the same gap together: of the same mark, near to each other, no client twice.
fn places<'a>(sightings: impl Iterator<Item = &'a Sighting>) -> Vec<Vec<Sighting>> {
    let mut by_mark: BTreeMap<u32, Vec<Sighting>> = BTreeMap::new();
    for sighting in sightings {
        by_mark.entry(sighting.mark).or_default().push(*sighting);
    }
    let mut places: Vec<Vec<Sighting>> = Vec::new();
    for mut same in by_mark.into_values() {
        same.sort_by(|a, b| a.place.total_cmp(&b.place));
        let mut open: Vec<Vec<Sighting>> = Vec::new();
        for sighting in same {
            let fits = |place: &&mut Vec<Sighting>| {
                sighting.place - place[0].place <= NEAR && place.iter().all(|it| it.client != sighting.client)
            };
            match open.iter_mut().rev().take(8).find(fits) {
                Some(place) => place.push(sighting),
                None => open.push(vec![sighting]),
            }
        }
        places.append(&mut open);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::role::Role;
    use weir_metrics::Failure;

    fn facts() -> WorkloadFacts {
        WorkloadFacts {
            background: false,
            servers: Vec::new(),
            warnings: Vec::new(),
            name: "play".to_owned(),
            role: Role::Play,
            protocol: "http".to_owned(),
            targets: vec!["one".to_owned(), "two".to_owned()],
            expect: None,
            frame_time_seconds: None,
            messages_per_second: None,
            timeout_seconds: 10.0,
        }
    }

    fn account(client: u32, channel: u32, since_seconds: f64, at_seconds: f64) -> EventLine {
        let numbers = [1e6, 5.0, 4.0, 3.0, 3.0, 2.0, 1.0, 0.0, 0.0, 0.0].map(Some).into();
        let since_seconds = Some(since_seconds);
        EventLine::Account {
            at_seconds,
            workload: 0,
            client,
            channel,
            since_seconds,
            failure: None,
            numbers,
            place: None,
        }
    }

    fn gap(client: u32, channel: u32, at_seconds: f64, mark: u32, place_seconds: f64) -> EventLine {
        EventLine::Gap { at_seconds, workload: 0, client, channel, mark, place_seconds }
    }

    fn channels(lines: &[EventLine], complaints: &[(f64, f64)]) -> Vec<ChannelSummary> {
        let mut readers = Readers::default();
        lines.iter().for_each(|line| readers.take(line));
        readers.channels(&facts(), complaints)
    }

    #[test]
    fn a_channel_sums_up_its_readers() {
        let lines = [account(0, 0, 1.0, 11.0), account(1, 1, 1.0, 11.0), account(2, 0, 1.0, 11.0)];
        let [one, two] = &channels(&lines, &[])[..] else { panic!("two channels") };
        assert_eq!((one.readers, two.readers, one.target.as_str()), (2, 1, "one"));
        assert_eq!((one.bit_rate_bps, two.bit_rate_bps), (800_000.0, 800_000.0));
        let totals: Vec<u64> = one.figures.iter().map(|figure| figure.total).collect();
        assert_eq!(totals[..7], [2_000_000, 10, 8, 6, 6, 4, 2]);
        assert_eq!(one.figures[2].title, "#DROPS");
        assert!(channels(&[], &[]).is_empty());
    }

    #[test]
    fn who_never_read_has_failed_and_a_gap_without_a_place_is_counted() {
        let never = |client| EventLine::Account {
            at_seconds: 2.0,
            workload: 0,
            client,
            channel: 1,
            since_seconds: None,
            failure: Some(Failure::ConnectTimeout),
            numbers: vec![Some(0.0); 10],
            place: None,
        };
        let [one, two] = &channels(&[account(0, 0, 0.0, 60.0), never(1), never(3)], &[])[..] else {
            panic!("two channels")
        };
        assert_eq!((one.readers, one.failed, one.gaps.unplaced), (1, 0, 2));
        assert_eq!((two.readers, two.failed, two.bit_rate_bps), (0, 2, 0.0));
    }

    #[test]
    fn who_met_a_gap_says_where_it_was_made() {
        let three = (0..3).map(|client| account(client, 0, 0.0, 60.0));
        let mut lines: Vec<EventLine> = three.collect();
        // All three: the same place, reckoned a little apart, met seconds apart.
        lines.extend([gap(0, 0, 10.0, 7, 100.0), gap(1, 0, 11.5, 7, 100.004), gap(2, 0, 10.1, 7, 99.999)]);
        // One of three, twice at nearly the same place; and two of three.
        lines.extend([gap(1, 0, 20.0, 7, 110.0), gap(1, 0, 20.0, 7, 110.001)]);
        lines.extend([gap(1, 0, 30.0, 9, 120.0), gap(2, 0, 30.0, 9, 120.0)]);
        // Each client met two gaps, and seven were reported.
        let unplaced = 0;
        let gaps = |complaints: &[(f64, f64)]| channels(&lines, complaints)[0].gaps;
        let expected = GapSources { of_source: 1, of_connection: 3, unplaced, ..GapSources::default() };
        assert_eq!(gaps(&[]), expected);
        // What all met is the server's even while this host complains.
        let expected = GapSources { of_source: 1, of_connection: 1, of_generator: 2, unknown: 0, unplaced };
        assert_eq!(gaps(&[(9.0, 10.0), (20.0, 21.0)]), expected);
    }

    #[test]
    fn one_reader_cannot_tell_and_who_was_not_there_need_not_have_met_it() {
        let lines = [
            account(0, 0, 0.0, 60.0),
            account(1, 0, 30.0, 60.0),
            account(2, 1, 0.0, 60.0),
            gap(0, 0, 10.0, 7, 100.0),
            gap(0, 0, 31.0, 7, 121.0),
            gap(0, 0, 40.0, 7, 130.0),
            gap(1, 0, 40.0, 7, 130.0),
        ];
        let gaps = channels(&lines, &[])[0].gaps;
        assert_eq!((gaps.of_source, gaps.of_connection, gaps.of_generator, gaps.unknown), (1, 0, 0, 2));
    }
}
