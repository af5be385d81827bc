//! One witness whose streams are decoded now and then: what it hands in, and from where to where.

use super::interlaced::may_have_fields;
use super::queue::Feed;
use super::{Decoders, StreamFormat, TURN, ivf};
use crate::parameter_sets::{NalCodec, ParameterSets};
use std::sync::Arc;
use weir_media::{Framing, PictureCodec, adts_header, units};
use weir_metrics::Moment;

/// A witness of a workload that decodes some.
pub(crate) struct DecodedWitness {
    decoders: Arc<Decoders>,
    /// Turns that it has had.
    turns: u32,
    turn: Option<Turn>,
    /// Parameter sets that come beside the pictures, each behind a start code.
    described: Vec<u8>,
    /// There may be two access units to a frame.
    has_fields: bool,
    /// The configuration of the sound, if ADTS can say it.
    sound: Option<[u8; 2]>,
}

/// A turn; the decoders are done with it some time after it has ended.
struct Turn {
    decoders: Arc<Decoders>,
    ends: Moment,
    pictures: Option<Feed>,
    /// What they are.
    format: Option<StreamFormat>,
    /// Frames in IVF that were handed in.
    frames: u64,
    sound: Option<Feed>,
    /// Pictures that need some of before the first one are left out.
    skips_leading: bool,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.decoders.end_turn();
    }
}

/// What an access unit has in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Content {
    /// Pictures that begin.
    pictures: u64,
    /// A picture with which a decoder can begin at once: IDR, or any intra random access point of H.265.
    is_start: bool,
    /// A picture that is shown before the start that it comes behind, and one of them that cannot be shown where a decoder has begun with that
    /// start (RASL; ITU-T H.265 section 7.4.2.2).
    is_leading: bool,
    is_skipped: bool,
    has_sets: bool,
    has_fields: bool,
}

impl Content {
    fn of(codec: NalCodec, access_unit: &[u8], framing: Framing) -> Self {
        let mut content = Self::default();
        let mut sets = ParameterSets::new(codec);
        for unit in units(access_unit, framing) {
            let Some(first) = unit.first() else { continue };
            sets.take(unit);
            let kind = codec.unit_type(*first);
            let (is_slice, header) = match codec {
                NalCodec::H264 => (matches!(kind, 1 | 2 | 5), 1),
                NalCodec::H265 => (kind < 32, 2),
            };
            // first_mb_in_slice of 0, and first_slice_segment_in_pic_flag.
            let begins = is_slice && unit.get(header).is_some_and(|byte| byte & 0x80 != 0);
            content.pictures += u64::from(begins);
            content.is_start |= codec.is_random_access(unit);
            content.is_leading |= codec == NalCodec::H265 && matches!(kind, 6..=9);
            content.is_skipped |= codec == NalCodec::H265 && matches!(kind, 8 | 9);
            content.has_fields |= codec == NalCodec::H264 && kind == 7 && may_have_fields(unit);
        }
        content.has_sets = sets.are_whole();
        content
    }
}

impl DecodedWitness {
    pub(crate) fn new(decoders: Arc<Decoders>) -> Self {
        Self { decoders, turns: 0, turn: None, described: Vec::new(), has_fields: false, sound: None }
    }

    /// Parameter sets came beside the pictures.
    pub(crate) fn describe<'a>(&mut self, codec: NalCodec, sets: impl Iterator<Item = &'a [u8]>) {
        self.described.clear();
        self.has_fields = false;
        for unit in sets {
            self.described.extend([0, 0, 0, 1]);
            self.described.extend_from_slice(unit);
            let is_sequence = codec == NalCodec::H264 && unit.first().is_some_and(|first| first & 0x1F == 7);
            self.has_fields |= is_sequence && may_have_fields(unit);
        }
    }

    /// An access unit came whole.
    pub(crate) fn picture(&mut self, codec: NalCodec, access_unit: &[u8], framing: Framing, now: Moment) {
        let content = Content::of(codec, access_unit, framing);
        if content.has_sets {
            self.has_fields = content.has_fields;
        }
        let format = match codec {
            NalCodec::H264 => StreamFormat::H264,
            NalCodec::H265 => StreamFormat::H265,
        };
        self.change_to(format);
        let is_start = content.is_start && (content.has_sets || !self.described.is_empty());
        if is_start {
            self.turn.take_if(|turn| turn.ends <= now || self.has_fields);
            if self.turn.is_none() && !self.has_fields {
                self.begin(now);
            }
        }
        let Some(turn) = &mut self.turn else { return };
        if turn.pictures.is_none() {
            if !is_start {
                return;
            }
            turn.pictures = turn.decoders.decode(format);
            (turn.format, turn.skips_leading) = (Some(format), true);
        }
        let Some(feed) = &mut turn.pictures else { return };
        if content.is_skipped && turn.skips_leading {
            return;
        }
        turn.skips_leading &= content.is_start || content.is_leading;
        let mut bytes = Vec::with_capacity(access_unit.len() + self.described.len() + 64);
        if is_start && !content.has_sets {
            bytes.extend_from_slice(&self.described);
        }
        for unit in units(access_unit, framing) {
            bytes.extend([0, 0, 0, 1]);
            bytes.extend_from_slice(unit);
        }
        feed.put(bytes, content.pictures, is_start);
    }

    /// A frame of VP8 or VP9, or a temporal unit of AV1 whose OBUs have their sizes, came whole.
    pub(crate) fn frame(&mut self, codec: PictureCodec, frame: &[u8], now: Moment) {
        let format = match codec {
            PictureCodec::Vp8 => StreamFormat::Vp8,
            PictureCodec::Vp9 => StreamFormat::Vp9,
            PictureCodec::Av1 => StreamFormat::Av1,
            PictureCodec::H264 | PictureCodec::H265 => return,
        };
        self.change_to(format);
        let is_start = codec.begins_with(frame);
        if is_start {
            self.turn.take_if(|turn| turn.ends <= now);
            if self.turn.is_none() {
                self.begin(now);
            }
        }
        let Some(turn) = &mut self.turn else { return };
        if turn.pictures.is_none() {
            if !is_start {
                return;
            }
            (turn.format, turn.frames) = (Some(format), 0);
            turn.pictures = turn.decoders.decode(format);
            if let Some(feed) = &mut turn.pictures {
                feed.put(ivf::header(format).to_vec(), 0, true);
            }
        }
        if let Some(feed) = &mut turn.pictures {
            feed.put(ivf::frame(turn.frames, frame), codec.pictures_of(frame), is_start);
            turn.frames += 1;
        }
    }

    /// Pictures of this format come: a turn with others is over.
    fn change_to(&mut self, format: StreamFormat) {
        self.turn.take_if(|turn| turn.format.is_some_and(|known| known != format));
    }

    /// An access unit came that is not whole: a decoder goes on at the next with which it can begin.
    pub(crate) fn broken_picture(&mut self) {
        if let Some(feed) = self.turn.as_mut().and_then(|turn| turn.pictures.as_mut()) {
            feed.interrupt();
        }
    }

    /// The configuration of AAC came (ISO/IEC 14496-3 section 1.6.2.1). One that ADTS cannot say is not handed in: another object type
    /// than AAC's four, a sampling frequency in words, or channels that a program config element lists.
    pub(crate) fn describe_sound(&mut self, config: &[u8]) {
        self.sound = match config {
            [first, second, ..] if (1..=4).contains(&(first >> 3)) => {
                let (frequency, channels) = ((first & 7) << 1 | second >> 7, second >> 3 & 0xF);
                (frequency < 13 && (1..=7).contains(&channels)).then_some([*first, *second])
            }
            _ => None,
        };
    }

    /// A frame of AAC came, without a header. `alone`: there are no pictures.
    pub(crate) fn sound(&mut self, payload: &[u8], alone: bool, now: Moment) {
        // A frame has at most 8,191 bytes with its header of seven (ISO/IEC 14496-3 section 1.A.2.2.1).
        let header =
            self.sound.filter(|_| payload.len() < 8_185).and_then(|it| adts_header(&it, payload.len()));
        let Some(header) = header else { return };
        self.framed_sound([&header[..], payload].concat(), 1, alone, now);
    }

    /// Frames of AAC in ADTS came.
    pub(crate) fn framed_sound(&mut self, bytes: Vec<u8>, frames: u64, alone: bool, now: Moment) {
        if alone {
            self.turn.take_if(|turn| turn.ends <= now);
            if self.turn.is_none() {
                self.begin(now);
            }
        }
        let Some(turn) = &mut self.turn else { return };
        if turn.sound.is_none() && (alone || turn.pictures.is_some()) {
            turn.sound = turn.decoders.decode(StreamFormat::Adts);
        }
        if let Some(feed) = &mut turn.sound {
            feed.put(bytes, frames, true);
        }
    }

    fn begin(&mut self, now: Moment) {
        if self.decoders.begin_turn(self.turns, now) {
            self.turns += 1;
            let decoders = Arc::clone(&self.decoders);
            self.turn = Some(Turn {
                decoders,
                ends: now + TURN,
                pictures: None,
                format: None,
                frames: 0,
                sound: None,
                skips_leading: false,
            });
        }
    }
}
