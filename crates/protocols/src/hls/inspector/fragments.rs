//! Pictures of segments that are fragmented MPEG-4 (ISO/IEC 14496-12), read from the boxes that describe them: what is in `mdat` is
//! passed over.

use super::Frame;

/// What a segment may begin with (ISO/IEC 14496-12; CMAF, ISO/IEC 23000-19, section 7.3.2.3).
pub(super) const BOXES: &[&[u8]] =
    &[b"styp", b"moof", b"sidx", b"prft", b"emsg", b"ftyp", b"moov", b"mdat", b"free", b"skip", b"uuid"];

/// The longest box that is read: a `moof` of a minute of 60 pictures and 50 frames of sound a second has 110 kB.
const LONGEST_BOX: u64 = 1 << 20;

/// Samples of a fragment, in all of its runs: more have no box of that size, or are not described one by one.
const MOST_SAMPLES: u32 = 1 << 16;

/// Tracks of a map.
const MOST_TRACKS: usize = 64;

/// `sample_is_non_sync_sample` (section 8.8.3.1).
const NON_SYNC: u32 = 0x1_0000;

/// The body of a box, read from its beginning.
#[derive(Clone, Copy)]
struct Body<'a>(&'a [u8]);

#[derive(Clone, Copy, Debug, Default)]
struct VideoTrack {
    id: u32,
    timescale: u32,
    default_duration: u32,
    default_flags: u32,
}

/// Takes boxes apart as their bytes come.
#[derive(Debug, Default)]
struct BoxReader {
    /// The head of a box, or the whole of one that is read.
    kept: Vec<u8>,
    /// What is left of the box under way behind that.
    left: u64,
    /// Whether the rest of it is kept, too.
    keeps: bool,
}

#[derive(Debug, Default)]
pub(super) struct FragmentReader {
    boxes: BoxReader,
    map: Option<Vec<u8>>,
    /// The first track of pictures.
    video: Option<VideoTrack>,
    /// Whether a map was read.
    has_map: bool,
    /// `sequence_number` of the last fragment of this unit.
    sequence_number: Option<u32>,
    gaps: u64,
    fragments: u64,
    is_malformed: bool,
}

impl FragmentReader {
    /// A segment or a part begins.
    pub(super) fn begin(&mut self) {
        self.boxes = BoxReader::default();
        (self.sequence_number, self.gaps, self.fragments, self.is_malformed) = (None, 0, 0, false);
    }

    /// A map begins. Of one that did not end nothing is known.
    pub(super) fn begin_map(&mut self) {
        self.map = None;
    }

    /// The next bytes of a map.
    pub(super) fn take_map(&mut self, bytes: &[u8]) {
        let map = self.map.get_or_insert_default();
        if (map.len() + bytes.len()) as u64 <= LONGEST_BOX {
            map.extend_from_slice(bytes);
        }
    }

    /// The map is whole. Whether it describes tracks.
    pub(super) fn finish_map(&mut self) -> bool {
        let map = self.map.take().unwrap_or_default();
        let moov = Body(&map).find(b"moov");
        (self.video, self.has_map) = (moov.and_then(video_track), moov.is_some());
        self.has_map
    }

    pub(super) fn take(&mut self, mut bytes: &[u8], each: &mut impl FnMut(Frame)) {
        while !bytes.is_empty() && !self.is_malformed {
            match self.boxes.take(&mut bytes) {
                Ok(Some(whole)) => {
                    // A segment may have its own map (ISO/IEC 14496-12 calls it self-initializing).
                    if let Some(moov) = Body(&whole).find(b"moov") {
                        (self.video, self.has_map) = (video_track(moov), true);
                    } else if let Some(moof) = Body(&whole).find(b"moof") {
                        let is_read = self.fragment(moof, each);
                        self.is_malformed = is_read.is_none();
                    }
                }
                Ok(None) => {}
                Err(Malformed) => self.is_malformed = true,
            }
        }
    }

    /// The unit is whole. How many times sequence numbers leave some out; `None` if it could not be read.
    pub(super) fn finish(&self) -> Option<u64> {
        let is_whole = self.has_map && self.fragments > 0 && !self.is_malformed && self.boxes.is_between();
        is_whole.then_some(self.gaps)
    }

    /// A movie fragment (section 8.8.4).
    fn fragment(&mut self, moof: Body<'_>, each: &mut impl FnMut(Frame)) -> Option<()> {
        self.fragments += 1;
        if let Some(number) = moof.find(b"mfhd").and_then(|mut mfhd| mfhd.skip(4)?.word()) {
            // Section 8.8.5.1: "the number associated with this fragment", which is to increase; writers count by one.
            let before = self.sequence_number.replace(number);
            self.gaps += u64::from(before.is_some_and(|before| number > before.saturating_add(1)));
        }
        let Some(video) = self.video else { return Some(()) };
        let mut left = MOST_SAMPLES;
        for traf in moof.all(b"traf") {
            track_fragment(traf, video, &mut left, each)?;
        }
        Some(())
    }
}

/// A box that is longer than is read, or whose size is less than that of its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Malformed;

impl BoxReader {
    /// Takes bytes up to the end of a box that is read, and hands it out; or all of them.
    fn take(&mut self, bytes: &mut &[u8]) -> Result<Option<Vec<u8>>, Malformed> {
        loop {
            if self.left > 0 {
                let (now, rest) =
                    bytes.split_at(bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX)));
                if self.keeps {
                    self.kept.extend_from_slice(now);
                }
                self.left -= now.len() as u64;
                *bytes = rest;
                if self.left > 0 {
                    return Ok(None);
                }
                let whole = std::mem::take(&mut self.kept);
                if std::mem::take(&mut self.keeps) {
                    return Ok(Some(whole));
                }
            }
            // The head: a size of 32 bits and a type; of size 1, one of 64 bits behind them (section 4.2).
            let has_long_size = self.kept.len() >= 8 && self.kept[..4] == [0, 0, 0, 1];
            let head = if has_long_size { 16 } else { 8 };
            if self.kept.len() < head {
                let (now, rest) = bytes.split_at(bytes.len().min(head - self.kept.len()));
                self.kept.extend_from_slice(now);
                *bytes = rest;
                if now.is_empty() {
                    return Ok(None);
                }
                continue;
            }
            let size = match self.kept[..4] {
                // To the end of the file.
                [0, 0, 0, 0] => u64::MAX,
                [0, 0, 0, 1] => u64::from_be_bytes(self.kept[8..16].try_into().map_err(|_| Malformed)?),
                [a, b, c, d] => u32::from_be_bytes([a, b, c, d]).into(),
                _ => return Err(Malformed),
            };
            let kind = &self.kept[4..8];
            self.keeps = kind == b"moof" || kind == b"moov";
            if size < head as u64 || self.keeps && size > LONGEST_BOX {
                return Err(Malformed);
            }
            self.left = size - head as u64;
            if !self.keeps || self.left == 0 {
                self.kept.clear();
                self.keeps &= self.left > 0;
            }
        }
    }

    /// Whether no box is under way; one without a size may end anywhere.
    fn is_between(&self) -> bool {
        self.kept.is_empty() && (self.left == 0 || self.left > u64::MAX / 2)
    }
}

/// The first track of pictures that a `moov` describes (sections 8.4.2, 8.4.3 and 8.8.3).
fn video_track(moov: Body<'_>) -> Option<VideoTrack> {
    let is_video = |mdia: Body<'_>| {
        mdia.find(b"hdlr").and_then(|mut hdlr| hdlr.skip(8)?.take(4)).is_some_and(|it| it == b"vide")
    };
    let (id, timescale) = moov.all(b"trak").take(MOST_TRACKS).find_map(|trak| {
        let mdia = trak.find(b"mdia").filter(|mdia| is_video(*mdia))?;
        let mut tkhd = trak.find(b"tkhd")?;
        let of_64_bits = tkhd.word()? >> 24 == 1;
        let id = tkhd.skip(if of_64_bits { 16 } else { 8 })?.word()?;
        let mut mdhd = mdia.find(b"mdhd")?;
        let of_64_bits = mdhd.word()? >> 24 == 1;
        let timescale = mdhd.skip(if of_64_bits { 16 } else { 8 })?.word()?;
        (timescale > 0).then_some((id, timescale))
    })?;
    let track = VideoTrack { id, timescale, ..VideoTrack::default() };
    let trex = moov.find(b"mvex").and_then(|mvex| {
        mvex.all(b"trex").find_map(|mut trex| {
            let is_this = trex.skip(4)?.word()? == id;
            trex.skip(4)?;
            let default_duration = trex.word()?;
            let default_flags = trex.skip(4)?.word()?;
            is_this.then_some(VideoTrack { default_duration, default_flags, ..track })
        })
    });
    Some(trex.unwrap_or(track))
}

/// The samples of a track in a fragment (sections 8.8.7, 8.8.8 and 8.8.12), of which no more than `left` are read.
fn track_fragment(
    traf: Body<'_>,
    video: VideoTrack,
    left: &mut u32,
    each: &mut impl FnMut(Frame),
) -> Option<()> {
    let mut tfhd = traf.find(b"tfhd")?;
    let has = tfhd.word()?;
    if tfhd.word()? != video.id {
        return Some(());
    }
    let mut optional = |flag: u32, size: usize| -> Option<Option<u32>> {
        if has & flag == 0 {
            return Some(None);
        }
        if size == 8 {
            tfhd.skip(8)?;
            return Some(None);
        }
        tfhd.word().map(Some)
    };
    optional(0x1, 8)?;
    optional(0x2, 4)?;
    let default_duration = optional(0x8, 4)?.unwrap_or(video.default_duration);
    optional(0x10, 4)?;
    let default_flags = optional(0x20, 4)?.unwrap_or(video.default_flags);
    let mut decoding = match traf.find(b"tfdt") {
        Some(mut tfdt) => {
            let of_64_bits = tfdt.word()? >> 24 == 1;
            Some(if of_64_bits { tfdt.long()? } else { tfdt.word()?.into() })
        }
        None => None,
    };
    for mut trun in traf.all(b"trun") {
        let has = trun.word()?;
        let count = trun.word()?;
        *left = left.checked_sub(count)?;
        if has & 0x1 != 0 {
            trun.word()?;
        }
        let first_flags = if has & 0x4 != 0 { Some(trun.word()?) } else { None };
        for number in 0..count {
            let duration = if has & 0x100 != 0 { trun.word()? } else { default_duration };
            if has & 0x200 != 0 {
                trun.word()?;
            }
            let flags = if has & 0x400 != 0 { trun.word()? } else { default_flags };
            let flags = first_flags.filter(|_| number == 0).unwrap_or(flags);
            if has & 0x800 != 0 {
                trun.word()?;
            }
            let microseconds = |ticks: u64| {
                i64::try_from(u128::from(ticks) * 1_000_000 / u128::from(video.timescale))
                    .unwrap_or(i64::MAX / 2)
            };
            each(Frame { time: decoding.map(microseconds), keyframe: flags & NON_SYNC == 0 });
            decoding = decoding.map(|it| it.wrapping_add(duration.into()));
        }
    }
    Some(())
}

impl<'a> Body<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn skip(&mut self, count: usize) -> Option<&mut Self> {
        self.take(count)?;
        Some(self)
    }

    fn word(&mut self) -> Option<u32> {
        self.take(4).and_then(|it| it.try_into().ok()).map(u32::from_be_bytes)
    }

    fn long(&mut self) -> Option<u64> {
        self.take(8).and_then(|it| it.try_into().ok()).map(u64::from_be_bytes)
    }

    /// The bodies of the boxes of a kind among those that this one consists of.
    fn all(self, kind: &'static [u8; 4]) -> impl Iterator<Item = Body<'a>> {
        let mut rest = self;
        std::iter::from_fn(move || {
            loop {
                let size = rest.word()? as usize;
                let found = rest.take(4)?;
                let body = rest.take(size.checked_sub(8)?)?;
                if found == kind {
                    return Some(Body(body));
                }
            }
        })
    }

    fn find(self, kind: &'static [u8; 4]) -> Option<Body<'a>> {
        self.all(kind).next()
    }
}
