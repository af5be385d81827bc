//! Sound of G.711 in a stream: tags of samples of a byte, which metadata names, since it has no decoder settings of its own.

use std::time::Duration;
use weir_rtmp::amf0::Object;
use weir_rtmp::flv::AudioCodec;
use weir_rtmp::message::data;

/// Samples a second (RFC 3551 section 4.5.14).
pub(crate) const RATE: u32 = 8_000;

/// SoundFormat (FLV 10.1 section E.4.2.1).
const A_LAW: u8 = 7;
const MU_LAW: u8 = 8;

/// Whether a tag's sound is G.711, and whether of A-law.
pub(crate) fn is_a_law(codec: AudioCodec) -> Option<bool> {
    match codec {
        AudioCodec::Legacy(A_LAW) => Some(true),
        AudioCodec::Legacy(MU_LAW) => Some(false),
        _ => None,
    }
}

/// The payload of metadata that says so (FLV 10.1 section E.5, `audiocodecid`).
pub(crate) fn metadata(is_a_law: bool) -> Vec<u8> {
    let properties = Object::new()
        .with("audiocodecid", f64::from(if is_a_law { A_LAW } else { MU_LAW }))
        .with("audiosamplerate", f64::from(RATE))
        .with("audiosamplesize", 16.0)
        .with("stereo", false);
    let mut payload = Vec::new();
    data::append_metadata(properties, &mut payload);
    payload
}

/// Whether metadata says that sound is G.711, and whether of A-law.
pub(crate) fn is_a_law_by(metadata: &[u8]) -> Option<bool> {
    let properties = data::metadata(metadata).ok()??;
    let number = properties.get("audiocodecid")?.as_number()?;
    [A_LAW, MU_LAW].into_iter().find(|it| f64::from(*it) == number).map(|it| it == A_LAW)
}

/// Samples in pieces of up to `limit` bytes, each with the time since the first: a packet may end behind any sample.
pub(crate) fn pieces(samples: &[u8], limit: usize) -> impl Iterator<Item = (Duration, &[u8])> {
    let span = move |at: usize| Duration::from_micros((at * limit) as u64 * 1_000_000 / u64::from(RATE));
    samples.chunks(limit).enumerate().map(move |(at, piece)| (span(at), piece))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_says_of_which_law_sound_is() {
        for law in [true, false] {
            assert_eq!(is_a_law_by(&metadata(law)), Some(law));
        }
        assert_eq!((is_a_law_by(&[]), is_a_law_by(b"\x02\x00\x0aonMetaData\x05")), (None, None));
    }

    #[test]
    fn pieces_begin_where_the_one_before_ends() {
        let pieces: Vec<_> = pieces(&[1; 900], 400).map(|(since, piece)| (since, piece.len())).collect();
        let milliseconds = Duration::from_millis;
        assert_eq!(pieces, [(milliseconds(0), 400), (milliseconds(50), 400), (milliseconds(100), 100)]);
    }
}
