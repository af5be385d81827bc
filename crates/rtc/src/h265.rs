//! H.265 in RTP (RFC 7798): single NAL units, aggregation packets, fragments, and such in a PACI.

use crate::h264;
use crate::piece::{Header, Piece, Unreadable};
use crate::sdp::Format;

/// Ticks of H.265's RTP clock a second (section 7.1).
pub const CLOCK_RATE: u32 = 90_000;

/// Types of payloads (section 4.4) and of NAL units (ITU-T H.265 table 7-1).
pub(crate) mod kind {
    pub(super) const RANDOM_ACCESS: std::ops::RangeInclusive<u8> = 16..=23;
    pub(super) const LAST_SLICE: u8 = 31;
    pub(super) const VPS: u8 = 32;
    pub(super) const SPS: u8 = 33;
    pub(super) const PPS: u8 = 34;
    pub(crate) const AGGREGATION: u8 = 48;
    pub(crate) const FRAGMENT: u8 = 49;
    pub(super) const PACI: u8 = 50;
}

/// The bits of an FU header (section 4.4.3).
pub(crate) const FRAGMENT_START: u8 = 0x80;
pub(crate) const FRAGMENT_END: u8 = 0x40;
const FRAGMENT_TYPE: u8 = 0x3F;

/// `nal_unit_type` in the first byte of a NAL unit (section 1.1.4).
pub(crate) fn unit_type(first: u8) -> u8 {
    first >> 1 & 0x3F
}

/// The first byte of a header, with another type.
pub(crate) fn with_type(first: u8, kind: u8) -> u8 {
    first & 0x81 | kind << 1
}

/// Whether a NAL unit that begins so is a slice of an intra random access point (ITU-T H.265 section 3.73: types 16 to 23).
pub(crate) fn is_random_access(first: u8) -> bool {
    kind::RANDOM_ACCESS.contains(&unit_type(first))
}

/// The NAL units of a payload, or the fragment of one.
pub(crate) fn pieces<'a>(payload: &'a [u8], take: &mut impl FnMut(Piece<'a>)) -> Result<(), Unreadable> {
    let (header, rest) = payload.split_first_chunk::<2>().ok_or(Unreadable)?;
    match unit_type(header[0]) {
        kind::PACI => {
            // Section 4.4.4: A, cType (6 bits), PHSsize (5 bits), four flags; then PHSsize octets, and a payload without its header, the type
            // of which is cType.
            let (fields, rest) = rest.split_first_chunk::<2>().ok_or(Unreadable)?;
            let fields = u16::from_be_bytes(*fields);
            let (inner, extension) = ((fields >> 9 & 0x3F) as u8, usize::from(fields >> 4 & 0x1F));
            let rest = rest.get(extension..).ok_or(Unreadable)?;
            // No PACI lies within another.
            if inner == kind::PACI {
                return Err(Unreadable);
            }
            contents([with_type(header[0], inner), header[1]], rest, None, take)
        }
        _ => contents(*header, rest, Some(payload), take),
    }
}

/// What is behind a payload header. `whole` has the header in front of it, where it is there.
fn contents<'a>(
    header: [u8; 2],
    rest: &'a [u8],
    whole: Option<&'a [u8]>,
    take: &mut impl FnMut(Piece<'a>),
) -> Result<(), Unreadable> {
    match unit_type(header[0]) {
        0..=47 => {
            match whole {
                Some(unit) => take(Piece::whole(unit)),
                None => take(Piece { start: true, end: true, header: Header::two(header), bytes: rest }),
            }
            Ok(())
        }
        kind::AGGREGATION => {
            // Section 4.4.2: a size of 16 bits, and a NAL unit with its header.
            let mut rest = rest;
            while !rest.is_empty() {
                let (length, behind) = rest.split_first_chunk().ok_or(Unreadable)?;
                let (unit, behind) =
                    behind.split_at_checked(u16::from_be_bytes(*length).into()).ok_or(Unreadable)?;
                take(Piece::whole(unit));
                rest = behind;
            }
            Ok(())
        }
        kind::FRAGMENT => {
            // Section 4.4.3: S, E, FuType. The header of the unit is not in the fragments; it is made of the payload's and FuType.
            let (&fragment, bytes) = rest.split_first().ok_or(Unreadable)?;
            let start = fragment & FRAGMENT_START != 0;
            let unit = [with_type(header[0], fragment & FRAGMENT_TYPE), header[1]];
            let header = if start { Header::two(unit) } else { Header::NONE };
            take(Piece { start, end: fragment & FRAGMENT_END != 0, header, bytes });
            Ok(())
        }
        // 51 to 63 are unspecified.
        _ => Err(Unreadable),
    }
}

/// Whether an access unit begins here, and whether a keyframe does.
pub(crate) fn marks(payload: &[u8]) -> (Option<bool>, Option<bool>) {
    let (mut first, mut keyframe) = (None, false);
    let read = pieces(payload, &mut |piece| {
        let begins = piece.start && {
            let mut bytes = piece.header.as_slice().iter().chain(piece.bytes);
            let (header, behind) = (bytes.next().copied().unwrap_or_default(), bytes.nth(1).copied());
            keyframe |= is_random_access(header);
            starts_access_unit(header, behind)
        };
        first.get_or_insert(begins);
    });
    match (read, first) {
        (Ok(()), Some(first)) => (Some(first), Some(keyframe)),
        _ => (None, None),
    }
}

/// Whether the unit shows that an access unit begins with it (ITU-T H.265 section 7.4.2.4.4): a slice whose
/// `first_slice_segment_in_pic_flag` is 1, or what may only be in front of the first slice.
fn starts_access_unit(header: u8, behind: Option<u8>) -> bool {
    match unit_type(header) {
        0..=kind::LAST_SLICE => behind.is_some_and(|byte| byte & 0x80 != 0),
        // VPS, SPS, PPS, AUD; prefix SEI; 41 to 44 and 48 to 55 are reserved for such.
        32..=35 | 39 | 41..=44 => true,
        _ => false,
    }
}

/// The parameter sets in `sprop-vps`, `sprop-sps` and `sprop-pps` of a format (section 7.1), as NAL units; what is no base64 is left out.
pub fn described_parameter_sets(format: &Format) -> Vec<Vec<u8>> {
    let values =
        ["sprop-vps", "sprop-sps", "sprop-pps"].into_iter().filter_map(|name| format.parameter(name));
    values.flat_map(h264::decoded_sets).collect()
}

/// A format that describes a stream with these parameter sets (section 7.1).
pub fn described_format(payload_type: u8, sets: &[&[u8]]) -> Format {
    let named = [("sprop-vps", kind::VPS), ("sprop-sps", kind::SPS), ("sprop-pps", kind::PPS)];
    let parameters = named.iter().filter_map(|(name, kind)| {
        let of_kind = |set: &&&[u8]| set.first().is_some_and(|first| unit_type(*first) == *kind);
        let sets: Vec<&[u8]> = sets.iter().filter(of_kind).copied().collect();
        (!sets.is_empty()).then(|| format!("{name}={}", h264::encoded_sets(&sets)))
    });
    Format {
        payload_type,
        name: "H265".to_owned(),
        clock_rate: CLOCK_RATE,
        parameters: parameters.collect::<Vec<_>>().join(";"),
        ..Format::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDR: [u8; 4] = [0x26, 0x01, 0xAF, 7];
    const TRAIL: [u8; 4] = [0x02, 0x01, 0xD0, 7];
    const VPS: [u8; 3] = [0x40, 0x01, 0x0C];

    fn read(payload: &[u8]) -> Vec<(bool, bool, Vec<u8>)> {
        let mut found = Vec::new();
        pieces(payload, &mut |piece| {
            found.push((piece.start, piece.end, [piece.header.as_slice(), piece.bytes].concat()));
        })
        .unwrap();
        found
    }

    #[test]
    fn payloads_of_every_kind_are_read() {
        assert_eq!(read(&IDR), [(true, true, IDR.to_vec())]);
        let aggregate = [&[0x60, 0x01, 0, 3][..], &VPS, &[0, 4], &IDR].concat();
        assert_eq!(read(&aggregate), [(true, true, VPS.to_vec()), (true, true, IDR.to_vec())]);
        // FU: the type of the unit is in its header.
        assert_eq!(read(&[0x62, 0x01, 0x93, 0xAF]), [(true, false, vec![0x26, 0x01, 0xAF])]);
        assert_eq!(read(&[0x62, 0x01, 0x13, 0xAF]), [(false, false, vec![0xAF])]);
        assert_eq!(read(&[0x62, 0x01, 0x53, 0xAF]), [(false, true, vec![0xAF])]);
        // PACI of an IDR picture, with an extension of three bytes.
        assert_eq!(read(&[0x64, 0x01, 0x26, 0x30, 9, 9, 9, 0xAF]), [(true, true, vec![0x26, 0x01, 0xAF])]);
    }

    #[test]
    fn what_is_cut_short_or_unknown_is_unreadable() {
        let nested = [0x64, 0x01, 0x64, 0x00, 0x01];
        for payload in [
            &[][..],
            &[0x26],
            &[0x62, 0x01],
            &[0x60, 0x01, 0],
            &[0x60, 1, 0, 9, 1],
            &[0x64, 1, 0x26],
            &nested,
            &[0x66, 1, 2],
        ] {
            assert_eq!(pieces(payload, &mut |_| {}), Err(Unreadable), "{payload:?}");
            assert_eq!(marks(payload), (None, None), "{payload:?}");
        }
    }

    #[test]
    fn beginnings_and_keyframes_are_seen_in_all_kinds_of_payload() {
        assert_eq!(marks(&IDR), (Some(true), Some(true)));
        assert_eq!(marks(&TRAIL), (Some(true), Some(false)));
        assert_eq!(marks(&VPS), (Some(true), Some(false)));
        assert_eq!(marks(&[0x62, 0x01, 0x93, 0xAF]), (Some(true), Some(true)));
        assert_eq!(marks(&[0x62, 0x01, 0x13, 0xAF]), (Some(false), Some(false)));
        // A later slice, and a CRA picture.
        assert_eq!(marks(&[0x26, 0x01, 0x2F]), (Some(false), Some(true)));
        assert_eq!(marks(&[0x2A, 0x01, 0xAF]), (Some(true), Some(true)));
        assert_eq!(marks(&[&[0x60, 0x01, 0, 3][..], &VPS, &[0, 4], &IDR].concat()), (Some(true), Some(true)));
    }

    #[test]
    fn parameter_sets_of_a_description_are_units() {
        let sets: [&[u8]; 3] = [&[0x40, 1, 0x0C], &[0x42, 1, 1], &[0x44, 1, 0xC0]];
        assert_eq!(described_parameter_sets(&described_format(96, &sets)), sets);
        assert_eq!(described_format(96, &[]).parameters, "");
        let parameters = "sprop-vps=QAEM; sprop-sps=QgEB,%%; sprop-pps=RAHA".to_owned();
        let format = Format { parameters, ..Format::default() };
        assert_eq!(described_parameter_sets(&format), [[0x40, 1, 0x0C], [0x42, 1, 1], [0x44, 1, 0xC0]]);
    }
}
