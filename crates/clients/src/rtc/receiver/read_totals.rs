//! The sums of one read of a session's datagrams, which are booked together.

/// What a batch of datagrams brought.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::rtc) struct ReadTotals {
    pub(in crate::rtc) packets: u64,
    /// Bytes of payload, by what the headers say.
    pub(in crate::rtc) media: u64,
    /// The first packet of a keyframe came.
    pub(in crate::rtc) keyframe_begun: bool,
    /// A keyframe that was not seen before has come, to its end or to what is left of it; where nothing is decrypted, one has begun.
    pub(in crate::rtc) keyframe: bool,
    /// A picture that a decoder can begin with is whole, and its packets are authentic.
    pub(in crate::rtc) start_whole: bool,
    /// A packet of sound came.
    pub(in crate::rtc) sound: bool,
    /// The last packet of a frame came.
    pub(in crate::rtc) frame_ended: bool,
}
