//! Sequence numbers of data packets: 31 bits that wrap.

const MASK: u32 = 0x7FFF_FFFF;

/// The number of a data packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SequenceNumber(u32);

impl SequenceNumber {
    /// The low 31 bits of `value`.
    pub const fn new(value: u32) -> Self {
        Self(value & MASK)
    }

    /// The number itself.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// The number `n` later.
    pub const fn plus(self, n: u32) -> Self {
        Self(self.0.wrapping_add(n) & MASK)
    }

    /// How much later than `earlier` it is; negative if it is before it. The two are less than 2³⁰ apart.
    pub const fn since(self, earlier: Self) -> i32 {
        // The sign is that of bit 30.
        ((self.0.wrapping_sub(earlier.0) << 1) as i32) >> 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_on_past_the_wrap() {
        let last = SequenceNumber::new(MASK);
        assert_eq!(last.plus(1), SequenceNumber::new(0));
        assert_eq!(last.plus(5).since(last), 5);
        assert_eq!(last.since(last.plus(5)), -5);
        assert_eq!(SequenceNumber::new(0x8000_0007).value(), 7);
    }
}
