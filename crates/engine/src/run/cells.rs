//! Where a generator thread keeps the figures of a workload: in one cell, or in one for each server that its clients go to.

use weir_clients::Workload;
use weir_metrics::{Interval, IntervalKey, Recorder, Schema};

/// The cells of a run's workloads. The first ones are one a workload, in their order, for its first server.
#[derive(Clone, Debug)]
pub(crate) struct Cells {
    schemas: Vec<Schema>,
    /// Of each workload, how many servers it has, and the cell of the second.
    workloads: Vec<(u16, u16)>,
}

impl Cells {
    pub(crate) fn of<'a>(workloads: impl Iterator<Item = &'a Workload>) -> Self {
        let workloads: Vec<_> =
            workloads.map(|workload| (workload.schema, workload.servers().len().max(1) as u16)).collect();
        let mut schemas: Vec<_> = workloads.iter().map(|(schema, _)| *schema).collect();
        let servers = workloads.into_iter().map(|(schema, servers)| {
            let second = schemas.len() as u16;
            schemas.extend((1..servers).map(|_| schema));
            (servers, second)
        });
        let workloads = servers.collect();
        Self { schemas, workloads }
    }

    /// The figures that each cell has.
    pub(crate) fn schemas(&self) -> impl Iterator<Item = Schema> + use<'_> {
        self.schemas.iter().copied()
    }

    /// The cell of a workload's clients of one server.
    pub(crate) fn cell(&self, workload: u16, server: u16) -> u16 {
        match server {
            0 => workload,
            server => self.workloads[usize::from(workload)].1 + server - 1,
        }
    }

    /// The figures of each cell, out of the intervals of one second: what [`Self::intervals`] makes of them.
    pub(crate) fn figures(&self, intervals: &[Interval]) -> Vec<Recorder> {
        let mut figures: Vec<_> = self.schemas().map(Recorder::new).collect();
        for Interval { key, figures: counted, .. } in intervals {
            let Some((servers, _)) = self.workloads.get(usize::from(key.workload)) else { continue };
            // The sum over several servers is made again of theirs.
            let server = match key.server {
                None if *servers == 1 => 0,
                Some(server) if server < *servers && *servers > 1 => server,
                _ => continue,
            };
            figures[usize::from(self.cell(key.workload, server))].merge(counted);
        }
        figures
    }

    /// The figures of one second, one recorder a cell, as intervals: of each workload, and behind it of each of its servers if
    /// it has several.
    pub(crate) fn intervals(&self, second: u32, figures: &[Recorder]) -> Vec<Interval> {
        let mut intervals = Vec::new();
        for (workload, (servers, _)) in (0..).zip(&self.workloads) {
            let mut total = Recorder::new(self.schemas[usize::from(workload)]);
            let mut parts = Vec::new();
            for server in 0..*servers {
                let Some(figures) = figures.get(usize::from(self.cell(workload, server))) else { continue };
                total.merge(figures);
                let key = IntervalKey { second, workload, server: Some(server) };
                parts.push(Interval::new(key, figures.clone()));
            }
            intervals.push(Interval::new(IntervalKey { second, workload, server: None }, total));
            intervals.extend(parts.into_iter().filter(|_| *servers > 1));
        }
        intervals
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_metrics::common::{FAILED, PLAYED};

    #[test]
    fn what_the_servers_of_a_workload_counted_adds_up_to_what_it_counted() {
        let schema = Schema::new(&[]);
        // The second workload has three servers.
        let cells = Cells { schemas: vec![schema; 5], workloads: vec![(1, 3), (3, 3), (1, 5)] };
        let mut figures: Vec<_> = cells.schemas().map(Recorder::new).collect();
        for (server, played) in [(0, 5), (1, 7), (2, 11)] {
            figures[usize::from(cells.cell(1, server))].count(PLAYED, played);
        }
        figures[usize::from(cells.cell(2, 0))].count(FAILED, 1);
        let intervals = cells.intervals(9, &figures);
        let played = |interval: &Interval| (interval.key.server, interval.figures.counter(PLAYED));
        let of =
            |workload| intervals.iter().filter(move |it| it.key.workload == workload).map(played).collect();
        let (first, second, third): (Vec<_>, Vec<_>, Vec<_>) = (of(0), of(1), of(2));
        assert_eq!((first, third), (vec![(None, 0)], vec![(None, 0)]));
        assert_eq!(second, [(None, 23), (Some(0), 5), (Some(1), 7), (Some(2), 11)]);
        assert_eq!(intervals.last().unwrap().figures.counter(FAILED), 1);
        let lines = |figures: &[Recorder]| {
            cells.intervals(9, figures).iter().map(Interval::to_line).collect::<Vec<_>>()
        };
        assert_eq!(lines(&cells.figures(&intervals)), lines(&figures));
    }
}
