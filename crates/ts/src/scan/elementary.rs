//! Which elementary streams are kept for a caller, and their bytes.

use super::Scan;
use crate::elementary::{ElementaryPiece, ElementaryStreams, Tap};
use crate::pes::PesHeader;
use crate::stream_type::Codec;
use crate::tables::Program;

impl Scan {
    pub(crate) fn keep_elementary(&mut self, streams: Option<ElementaryStreams>) {
        self.tap = streams.map(|streams| Box::new(Tap::new(streams)));
        self.mark_kept();
    }

    pub(crate) fn take_elementary(&mut self, each: impl FnMut(ElementaryPiece<'_>)) {
        if let Some(tap) = &mut self.tap {
            tap.take(each);
        }
    }

    /// Marks the PIDs whose bytes are kept, by the program maps that are known.
    pub(super) fn mark_kept(&mut self) {
        let streams = self.tap.as_ref().map(|tap| tap.streams);
        for record in &mut self.records {
            record.is_kept = streams.is_some() && record.needed;
        }
        for program in 0..self.tables.programs.len() {
            for component in 0..self.tables.programs[program].components.len() {
                let program = &self.tables.programs[program];
                let (pid, codec) = (program.components[component].pid, program.components[component].codec);
                let is_kept = streams.is_some_and(|streams| streams.have(program, codec));
                let index = self.index_of(pid);
                self.records[index].is_kept |= is_kept;
            }
        }
        for (state, record) in self.states.iter_mut().zip(&self.records).skip(1) {
            state.inspect(record.sections.is_some() || record.is_kept);
        }
    }

    /// Keeps a part of an elementary stream in clear: what of a payload lies behind the header of its PES packet.
    pub(super) fn keep(
        &mut self,
        index: usize,
        payload: &[u8],
        begin: usize,
        start: bool,
        random_access: bool,
    ) {
        let bytes = payload.get(begin..).unwrap_or_default();
        let (Some(tap), Some(codec)) = (&mut self.tap, self.records[index].codec) else { return };
        let random_access = start && (random_access || codec.begins(bytes));
        let (pid, needed) = (self.states[index].pid, self.records[index].needed);
        let header = if start { PesHeader::parse(payload) } else { None };
        let times = header.and_then(|it| it.pts.map(|shown| (shown, it.dts.unwrap_or(shown))));
        tap.push(&ElementaryPiece { pid, codec, needed, start, random_access, times, bytes });
    }
}

impl ElementaryStreams {
    /// Whether a stream of a program that is not needed is one of these.
    fn have(self, program: &Program, codec: Codec) -> bool {
        match self {
            Self::All => codec.is_video() || codec.is_audio(),
            // Where there is other sound, a viewer may choose that.
            Self::Beginnings => {
                codec == Codec::AacLatm
                    && !program.components.iter().any(|other| other.codec.is_audio() && other.codec != codec)
            }
        }
    }
}
