//! The index of a packet, guessed from its sequence number, and whether it came before (RFC 3711 sections 3.3.1 and
//! 3.3.2, appendix A).

use super::SrtpError;

const WORDS: usize = 16;
/// How many packets behind the newest are remembered; the standard wants 64 at the least. Retransmissions come late. The
/// newest packet's word is one more: its other bits are of packets to come.
const WINDOW: u64 = (WORDS as u64 - 1) * 64;

/// The indices of one stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    /// One above the highest index; 0 before the first.
    end: u64,
    bits: [u64; WORDS],
}

impl Window {
    /// The index nearest to the highest so far that ends with this sequence number. The roll-over counter begins at 0.
    pub(super) fn index(&self, sequence_number: u16) -> Result<u64, SrtpError> {
        let Some(highest) = self.end.checked_sub(1) else { return Ok(sequence_number.into()) };
        let step = sequence_number.wrapping_sub(highest as u16) as i16;
        highest.checked_add_signed(step.into()).ok_or(SrtpError::TooOld)
    }

    /// Whether a packet of this index is new.
    pub(super) fn check(&self, index: u64) -> Result<(), SrtpError> {
        if index >= self.end {
            return Ok(());
        }
        if index + WINDOW < self.end {
            return Err(SrtpError::TooOld);
        }
        match self.bits[(index / 64) as usize % WORDS] >> (index % 64) & 1 {
            0 => Ok(()),
            _ => Err(SrtpError::Replayed),
        }
    }

    /// A packet of this index, which [`Self::check`] said is new, is authentic.
    pub(super) fn accept(&mut self, index: u64) {
        if index >= self.end {
            // Words between the highest and this one are of packets that have not come.
            let (first, last) = (self.end.div_ceil(64), index / 64);
            for word in first.max(last.saturating_sub(WORDS as u64 - 1))..=last {
                self.bits[word as usize % WORDS] = 0;
            }
            self.end = index + 1;
        }
        self.bits[(index / 64) as usize % WORDS] |= 1 << (index % 64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_packet_is_taken_once_over_all_wraps(
            start: u16, steps in prop::collection::vec(prop_oneof![8 => -70i64..80, 1 => -1200i64..30_000], 1..300),
        ) {
            let (mut window, mut came) = (Window::default(), BTreeSet::new());
            let mut index = u64::from(start);
            let mut highest = index;
            for step in std::iter::once(0).chain(steps) {
                index = highest.saturating_add_signed(step);
                // The window's edge is rounded to nothing: what it does not remember is too old.
                let expected = if came.contains(&index) && index + WINDOW > highest {
                    Err(SrtpError::Replayed)
                } else if index + WINDOW <= highest {
                    Err(SrtpError::TooOld)
                } else {
                    Ok(())
                };
                prop_assert_eq!(window.index(index as u16), Ok(index));
                prop_assert_eq!(window.check(index), expected);
                if expected.is_ok() {
                    window.accept(index);
                    came.insert(index);
                    highest = highest.max(index);
                }
            }
        }
    }

    #[test]
    fn the_oldest_that_is_remembered_is_no_other_packet() {
        for highest in 2_000..2_200 {
            let mut window = Window::default();
            let missing = highest + 1 - WINDOW;
            (0..=highest).filter(|index| *index != missing).for_each(|index| window.accept(index));
            assert_eq!(window.check(missing), Ok(()));
            assert_eq!(window.check(missing + 1), Err(SrtpError::Replayed));
            assert_eq!(window.check(missing - 1), Err(SrtpError::TooOld));
        }
    }

    #[test]
    fn what_would_be_before_the_first_roll_over_is_too_old() {
        let mut window = Window::default();
        window.accept(3);
        assert_eq!(window.index(0xFFFF), Err(SrtpError::TooOld));
        assert_eq!(window.index(2), Ok(2));
    }
}
