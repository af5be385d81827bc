//! AAC in RTP (RFC 3640), in the mode that encoders and cameras use: AAC-hbr, and any other lengths of the fields.

use crate::sdp::Format;

/// The longest frame of AAC in a payload, in bytes: 6,144 bits a channel (ISO/IEC 14496-3 section 4.5.3), for 8 channels.
const LONGEST_FRAME: usize = 6_144;

/// Bits of the size and of the index of a frame in mode AAC-hbr (section 3.3.6).
const SIZE_BITS: u8 = 13;
const INDEX_BITS: u8 = 3;

/// How payloads are laid out, as a session description says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    size: u8,
    index: u8,
    delta: u8,
    /// The size of each frame, where headers do not say it.
    constant: usize,
}

impl Layout {
    /// The layout that a format describes; `None` if it is none that weir reads: with interleaving in time.
    pub fn described(format: &Format) -> Option<Self> {
        let number = |name: &str| format.parameter(name).and_then(|value| value.parse::<u16>().ok());
        let bits = |name: &str| number(name).unwrap_or(0).min(32) as u8;
        let layout = Self {
            size: bits("sizelength"),
            index: bits("indexlength"),
            delta: bits("indexdeltalength"),
            constant: number("constantsize").unwrap_or(0).into(),
        };
        let has_more =
            ["ctsdeltalength", "dtsdeltalength", "streamstateindication", "auxiliarydatasizelength"];
        let is_plain = has_more.iter().all(|name| bits(name) == 0)
            && format.parameter("randomaccessindication") != Some("1");
        (is_plain && (layout.size > 0 || layout.constant > 0)).then_some(layout)
    }
}

/// The AudioSpecificConfig in a description (section 4.1, `config`), if it is hexadecimal.
pub fn described_config(format: &Format) -> Option<Vec<u8>> {
    let text = format.parameter("config")?;
    let digits: Option<Vec<u8>> =
        text.bytes().map(|it| char::from(it).to_digit(16).map(|it| it as u8)).collect();
    let config: Vec<u8> = digits?.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    (!config.is_empty()).then_some(config)
}

/// A format that describes frames with this AudioSpecificConfig, in mode AAC-hbr.
pub fn described_format(payload_type: u8, sample_rate: u32, channels: u8, config: &[u8]) -> Format {
    let config: String = config.iter().map(|byte| format!("{byte:02X}")).collect();
    Format {
        payload_type,
        name: "MPEG4-GENERIC".to_owned(),
        clock_rate: sample_rate,
        channels: Some(channels),
        parameters: format!(
            "streamtype=5;profile-level-id=1;mode=AAC-hbr;sizelength={SIZE_BITS};indexlength={INDEX_BITS};indexdeltalength={INDEX_BITS};config={config}"
        ),
        ..Format::default()
    }
}

/// Appends the payload of one frame in mode AAC-hbr; whether it fits one.
///
/// RFC 3640 section 3.2.1: "AU-headers-length … specifies the length in bits of the immediately following AU-headers".
pub fn append_payload(frame: &[u8], out: &mut Vec<u8>) -> bool {
    if frame.is_empty() || frame.len() >= 1 << SIZE_BITS {
        return false;
    }
    out.extend([0, SIZE_BITS + INDEX_BITS]);
    out.extend(((frame.len() as u16) << INDEX_BITS).to_be_bytes());
    out.extend_from_slice(frame);
    true
}

/// Takes payloads apart, and puts a frame together that has several.
#[derive(Clone, Debug)]
pub struct Depacketiser {
    layout: Layout,
    /// A frame under way: the timestamp and the number behind it, and its size.
    partial: Option<(u32, u64, usize)>,
    bytes: Vec<u8>,
}

impl Depacketiser {
    /// Nothing has come.
    pub fn new(layout: Layout) -> Self {
        Self { layout, partial: None, bytes: Vec::new() }
    }

    /// Takes a payload: its extended sequence number and timestamp. `emit` gets each frame, with its place in the payload. Whether
    /// it was well formed.
    pub fn push(
        &mut self,
        number: u64,
        timestamp: u32,
        payload: &[u8],
        mut emit: impl FnMut(u32, &[u8]),
    ) -> bool {
        let Some((mut bits, mut data)) = headers(payload, self.layout) else { return false };
        let (mut place, mut is_first) = (0, true);
        let goes_on = self.partial.take_if(|partial| (partial.0, partial.1) == (timestamp, number));
        self.partial = None;
        while let Some(size) = bits.header(self.layout, std::mem::take(&mut is_first)) {
            if size > LONGEST_FRAME {
                return false;
            }
            if size > data.len() {
                // Section 3.2.3.1: a frame in fragments is alone in each of its packets, and its header says the size of all of it.
                if place > 0 {
                    return false;
                }
                if goes_on.is_none() {
                    self.bytes.clear();
                }
                self.bytes.extend_from_slice(data);
                if self.bytes.len() < size {
                    self.partial = Some((timestamp, number + 1, size));
                } else if goes_on.is_some_and(|(_, _, whole)| whole == size) {
                    emit(0, &self.bytes[..size]);
                }
                return true;
            }
            let frame;
            (frame, data) = data.split_at(size);
            emit(place, frame);
            place += 1;
        }
        true
    }
}

/// The headers of a payload and what is behind them.
fn headers(payload: &[u8], layout: Layout) -> Option<(Bits<'_>, &[u8])> {
    if layout.size + layout.index + layout.delta == 0 {
        // Section 3.3.2 and 3.3.3: without headers all of it is frames of one size.
        return Some((Bits { bytes: &[], at: 0, end: 0, left: payload.len() }, payload));
    }
    let (length, rest) = payload.split_first_chunk()?;
    let length = usize::from(u16::from_be_bytes(*length));
    let (bytes, data) = rest.split_at_checked(length.div_ceil(8))?;
    Some((Bits { bytes, at: 0, end: length, left: data.len() }, data))
}

/// Reads headers.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
    end: usize,
    /// Bytes of frames that no header has spoken for yet.
    left: usize,
}

impl Bits<'_> {
    /// The size of the next frame.
    fn header(&mut self, layout: Layout, is_first: bool) -> Option<usize> {
        if self.end == 0 && layout.constant > 0 {
            self.left = self.left.checked_sub(layout.constant)?;
            return Some(layout.constant);
        }
        let index = if is_first { layout.index } else { layout.delta };
        let size = match layout.size {
            0 => layout.constant,
            bits => self.take(bits)?,
        };
        if index > 0 {
            self.take(index)?;
        } else if layout.size == 0 {
            return None;
        }
        Some(size)
    }

    fn take(&mut self, bits: u8) -> Option<usize> {
        let end = self.at + usize::from(bits);
        if end > self.end {
            return None;
        }
        let value = (self.at..end).fold(0, |value, at| {
            value << 1 | usize::from(self.bytes.get(at / 8).is_some_and(|byte| byte >> (7 - at % 8) & 1 == 1))
        });
        self.at = end;
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn described(parameters: &str) -> Format {
        Format { parameters: parameters.to_owned(), ..Format::default() }
    }

    fn hbr() -> Layout {
        Layout::described(&described_format(97, 44_100, 2, &[0x12, 0x10])).unwrap()
    }

    #[test]
    fn a_description_says_configuration_and_layout() {
        let format = described(
            "mode=AAC-hbr; SizeLength=13; IndexLength=3; IndexDeltaLength=3; Profile=1; config=1210",
        );
        assert_eq!(Layout::described(&format), Some(hbr()));
        assert_eq!(described_config(&format).as_deref(), Some(&[0x12, 0x10][..]));
        for other in ["", "sizelength=13;ctsdeltalength=4", "mode=generic"] {
            assert_eq!(Layout::described(&described(other)), None, "{other}");
        }
        assert_eq!(described_config(&described("config=1g")), None);
    }

    #[test]
    fn a_payload_of_several_frames_and_a_frame_of_several_payloads_are_read() {
        let mut reader = Depacketiser::new(hbr());
        let mut frames = Vec::new();
        let two = [&[0, 32, 0, 2 << 3, 0, 3 << 3][..], b"ab", b"cde"].concat();
        assert!(reader.push(1, 0, &two, |place, frame| frames.push((place, frame.to_vec()))));
        assert_eq!(frames, [(0, b"ab".to_vec()), (1, b"cde".to_vec())]);
        frames.clear();
        for (number, part) in [(2, b"fg"), (3, b"hi"), (4, b"jk")] {
            let payload = [&[0, 16, 0, 6 << 3][..], part].concat();
            assert!(reader.push(number, 9, &payload, |place, frame| frames.push((place, frame.to_vec()))));
        }
        assert_eq!(frames, [(0, b"fghijk".to_vec())]);
        // A gap in it, and what is cut short.
        frames.clear();
        for number in [6, 8] {
            reader.push(number, 20, &[0, 16, 0, 6 << 3, 1, 2, 3], |place, frame| {
                frames.push((place, frame.to_vec()));
            });
        }
        assert!(frames.is_empty());
        assert!(!reader.push(9, 30, &[0, 99], |_, _| {}) && !reader.push(10, 30, &[], |_, _| {}));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(frame in prop::collection::vec(any::<u8>(), 1..3_000)) {
            let mut payload = Vec::new();
            prop_assert!(append_payload(&frame, &mut payload));
            let mut read = Vec::new();
            prop_assert!(Depacketiser::new(hbr()).push(0, 0, &payload, |_, frame| read.push(frame.to_vec())));
            prop_assert_eq!(read, vec![frame]);
        }

        #[test]
        fn any_bytes_are_read_within_bounds(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..8),
            size in 0u8..40, index in 0u8..40, delta in 0u8..40, constant in 0usize..20,
        ) {
            let layout = Layout { size: size.min(32), index: index.min(32), delta: delta.min(32), constant };
            let mut reader = Depacketiser::new(layout);
            for (number, payload) in (0..).zip(&payloads) {
                let mut length = 0;
                reader.push(number, 0, payload, |_, frame| length += frame.len());
                prop_assert!(length <= LONGEST_FRAME.max(payload.len()));
            }
        }
    }
}
