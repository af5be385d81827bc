//! The three qualities of service.

/// How surely a message is delivered (MQTT 5 section 4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Qos {
    /// 0: sent once, never acknowledged.
    #[default]
    AtMostOnce,
    /// 1: sent until acknowledged; may come twice.
    AtLeastOnce,
    /// 2: acknowledged in two steps; comes once.
    ExactlyOnce,
}

impl Qos {
    /// The two bits on the wire.
    pub const fn bits(self) -> u8 {
        self as u8
    }

    /// The quality of two bits; 3 stands for none.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        match bits {
            0 => Some(Self::AtMostOnce),
            1 => Some(Self::AtLeastOnce),
            2 => Some(Self::ExactlyOnce),
            _ => None,
        }
    }
}
