//! What a session of WebRTC goes by: its name, which is all that it takes to end it, and the sources of its media.

use weir_rtc::random_number;
use weir_rtc::sdp::{Description, MediaKind};

/// The unguessable name of a session: one does not lead to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    /// Stands in the `Location` of its answer (RFC 9725 section 4.2): a DELETE there ends the session.
    pub(super) session: u64,
    /// Our sources of pictures and of sound (RFC 3550 section 8: chosen at random).
    pub(super) sources: [u32; 2],
}

impl Identity {
    /// `None` where the system has no random numbers.
    pub(super) fn new() -> Option<Self> {
        let (session, sources) = (random_number()?, random_number()?);
        // An even and an odd one: the two are never the same, and neither is 0.
        let (pictures, sound) = ((sources >> 32) as u32 | 2, sources as u32 | 1);
        Some(Self { session, sources: [pictures & !1, sound] })
    }

    /// Writes the sources into what the origin says of itself.
    pub(super) fn name_sources(&self, description: &mut Description) {
        for media in description.media.iter_mut().filter(|media| !media.rejected) {
            match media.kind {
                MediaKind::Video => media.sources = vec![self.sources[0]],
                MediaKind::Audio => media.sources = vec![self.sources[1]],
                MediaKind::Other => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name that is computed from a number, a clock or another name has bits that stand still or go along.
    #[test]
    fn names_that_are_given_out_one_after_the_other_have_no_bit_in_common() {
        let names: Vec<u64> = (0..256).map(|_| Identity::new().unwrap().session).collect();
        let steps: Vec<u64> = names.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
        for numbers in [&names, &steps] {
            let (all, any) = numbers.iter().fold((u64::MAX, 0), |(all, any), it| (all & it, any | it));
            assert_eq!((all, any), (0, u64::MAX));
        }
    }

    #[test]
    fn sources_are_two_and_none_is_zero() {
        for _ in 0..256 {
            let [pictures, sound] = Identity::new().unwrap().sources;
            assert!(pictures != sound && pictures != 0 && sound != 0);
        }
    }
}
