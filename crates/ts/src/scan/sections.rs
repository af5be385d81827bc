//! Sections: checked, read, and what they make of other PIDs.

use super::Scan;
use crate::finding::FindingKind;
use crate::packet::pid;
use crate::psi::table;
use crate::section::Section;
use crate::stream_type::Codec;
use crate::tables::{Program, Watch};
use crate::units::UnitTimes;

impl Scan {
    pub(super) fn sections(&mut self, index: usize, payload: &[u8], start: bool) {
        let Some(mut assembler) = self.records[index].sections.take() else { return };
        let pid = self.states[index].pid;
        let is_pmt = self.records[index].is_pmt;
        let mut roles = false;
        assembler.payload(payload, start, &mut |section| roles |= self.section(pid, is_pmt, section));
        self.records[index].sections = Some(assembler);
        if roles {
            self.give_out_roles();
        }
    }

    /// `true`: what PIDs are for has changed.
    fn section(&mut self, pid: u16, is_pmt: bool, section: Section<'_>) -> bool {
        let table_id = section.table_id();
        if !section.is_intact() {
            self.counts.crc_error += 1;
            self.find(Some(pid), FindingKind::Crc { table_id });
            return false;
        }
        let (now, half_second) = (self.clock.at(self.place), self.half_second());
        match (pid, table_id) {
            (pid::PAT, table::PAT) if self.pat_sections.seen(now, half_second) => {
                self.counts.pat_error_2 += 1;
                self.find(Some(pid), FindingKind::PatMissing);
            }
            (pid::PAT, table::PAT) => {}
            (pid::PAT, _) => {
                self.counts.pat_error += 1;
                self.counts.pat_error_2 += 1;
                self.find(Some(pid), FindingKind::PatWrong);
            }
            (pid::CAT, table::CAT) => self.cat_seen = true,
            (pid::CAT, _) => {
                self.counts.cat_error += 1;
                self.find(Some(pid), FindingKind::CatWrong);
            }
            _ => {}
        }
        let Some(long) = section.long().filter(|long| long.current) else { return false };
        let news = match (pid, table_id) {
            (pid::PAT, table::PAT) => self.tables.pat(long, now),
            (pid::SDT, table::SDT_ACTUAL) => self.tables.sdt(long, self.text),
            (_, table::PMT) if is_pmt => {
                let program =
                    |program: &&mut Program| program.number == long.extension && program.pmt_pid == pid;
                let late = self.tables.programs.iter_mut().find(program);
                if late.is_some_and(|program| program.watch.seen(now, half_second)) {
                    self.pmt_missing(pid);
                }
                self.tables.pmt(pid, long)
            }
            _ => return false,
        };
        self.counts.version_changes += u64::from(news.changed);
        if news.same_version {
            self.find(Some(pid), FindingKind::VersionKept { table_id });
        }
        news.roles
    }

    /// Gives PIDs the roles that the tables state.
    fn give_out_roles(&mut self) {
        for record in &mut self.records {
            (record.codec, record.needed, record.is_pmt) = (None, false, false);
        }
        let now = self.clock.at(self.place);
        for program in 0..self.tables.programs.len() {
            let index = self.index_of(self.tables.programs[program].pmt_pid);
            self.records[index].is_pmt = true;
            self.read_sections(index);
            for component in 0..self.tables.programs[program].components.len() {
                let (pid, codec) = {
                    let component = &self.tables.programs[program].components[component];
                    (component.pid, component.codec)
                };
                let needed = self.tables.programs[program].needs(codec);
                let index = self.index_of(pid);
                let record = &mut self.records[index];
                record.codec = Some(codec);
                record.needed |= needed;
                record.presence = Watch::from(now);
                self.roles_are_known = true;
            }
        }
        if self.tap.is_some() {
            self.mark_kept();
        }
        // Pictures or sound that no map names any more have not run out.
        let kinds: [fn(Codec) -> bool; 2] = [Codec::is_video, Codec::is_audio];
        for (units, is_of) in self.units.iter_mut().zip(kinds) {
            if !self.records.iter().filter_map(|record| record.codec).any(is_of) {
                *units = UnitTimes::default();
            }
        }
        // What a new map no longer names may end without being late.
        for record in self.records.iter_mut().filter(|record| record.codec.is_none()) {
            (record.stamp, record.stamps) = (None, None);
        }
    }
}
