//! Units as MPEG-2 Transport Streams (ISO/IEC 13818-1).

use super::unit::{Sound, Tracks, Unit};
use weir_media::{Framing, UnitType, adts_header, parameter_sets, units};
use weir_ts::mux::{AccessUnit, MuxSettings, Muxer};

/// Decoding times count from here, so that clock references before them are not negative; 90 kHz ticks.
const FIRST_DECODING: i64 = 90_000;

/// Writes the units of one publication, as long as their tracks are the same.
#[derive(Debug)]
pub(crate) struct TransportWriter {
    muxer: Muxer,
    parameter_sets: Vec<Vec<u8>>,
    specific_config: Option<Box<[u8]>>,
    /// The decoding time of the first unit, in milliseconds.
    first: i64,
    unit: Vec<u8>,
    out: Vec<u8>,
}

impl TransportWriter {
    pub(crate) fn new(tracks: &Tracks, first: i64) -> Self {
        let usual = MuxSettings::default();
        // There is no mapping of Opus for players of HLS: it is left out.
        let specific_config = match &tracks.audio {
            Some(Sound::Aac(config)) => Some(config.as_ref().into()),
            _ => None,
        };
        let settings = MuxSettings {
            video: usual.video.filter(|_| tracks.video.is_some()),
            audio: usual.audio.filter(|_| specific_config.is_some()),
            // Every segment begins with tables; between them, clock references are as far apart as they may be
            // (section 2.7.2: 0.1 s).
            table_interval: 27_000_000,
            pcr_interval: 27_000 * 90,
            ..usual
        };
        let sets = tracks.video.iter().flat_map(|record| parameter_sets(record).map(<[u8]>::to_vec));
        let parameter_sets = sets.collect();
        Self {
            muxer: Muxer::new(settings),
            parameter_sets,
            specific_config,
            first,
            unit: Vec::new(),
            out: Vec::new(),
        }
    }

    /// What comes next can be read without what came before.
    pub(crate) fn begin_segment(&mut self) {
        // RFC 8216, section 3.2: "Each Transport Stream Segment MUST contain a PAT and a PMT, or have an EXT-X-MAP tag […] applied to
        // it."
        self.muxer.repeat_tables();
    }

    pub(crate) fn write(&mut self, unit: &Unit<'_>) {
        let ticks = |time: i64| ((time - self.first) * 90 + FIRST_DECODING).max(0) as u64;
        let (pts, dts) = (ticks(unit.presentation), ticks(unit.decoding));
        self.unit.clear();
        if !unit.is_video {
            let Some(config) = &self.specific_config else { return };
            let Some(header) = adts_header(config, unit.bytes.len()) else { return };
            self.unit.extend_from_slice(&header);
            self.unit.extend_from_slice(unit.bytes);
            let unit = AccessUnit { pts, dts, random_access: true, bytes: &self.unit };
            return self.muxer.audio(&unit, &mut self.out);
        }
        let is = |nal: &[u8], kind: UnitType| UnitType::of(nal) == Some(kind);
        let nals = || units(unit.bytes, Framing::LengthPrefixed);
        let has_sets = nals().any(|nal| is(nal, UnitType::SequenceParameterSet));
        let sets = if unit.keyframe && !has_sets { &self.parameter_sets[..] } else { &[] };
        // The muxer begins each access unit with a delimiter.
        let pictures = nals().filter(|nal| !is(nal, UnitType::AccessUnitDelimiter));
        for nal in sets.iter().map(Vec::as_slice).chain(pictures) {
            self.unit.extend_from_slice(&[0, 0, 0, 1]);
            self.unit.extend_from_slice(nal);
        }
        let unit = AccessUnit { pts, dts, random_access: unit.keyframe, bytes: &self.unit };
        self.muxer.video(&unit, &mut self.out);
    }

    /// What was written since the last time.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.out.len()
    }
}
