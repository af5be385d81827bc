//! What an origin has done by WebRTC.

/// What an origin has done by WebRTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sessions whose keys were agreed on.
    pub connected: u64,
    /// Receiver reports received.
    pub receiver_reports: u64,
    /// Packets that viewers asked for again, each time counted.
    pub nacks: u64,
    /// Packets that were sent again.
    pub repeated: u64,
    /// Keyframes that viewers asked for. A publisher by WebRTC is asked in turn; over RTMP none can be.
    pub picture_losses: u64,
    /// RTP and RTCP that does not open with its peer's keys.
    pub unauthentic: u64,
    /// Datagrams of strangers, and of no known protocol.
    pub strange: u64,
    /// What publishers have brought.
    pub intake: IntakeCounts,
}

impl Counts {
    pub(crate) fn add(&mut self, other: &Self) {
        let Self {
            connected,
            receiver_reports,
            nacks,
            repeated,
            picture_losses,
            unauthentic,
            strange,
            intake,
        } = other;
        self.connected += connected;
        self.receiver_reports += receiver_reports;
        self.nacks += nacks;
        self.repeated += repeated;
        self.picture_losses += picture_losses;
        self.unauthentic += unauthentic;
        self.strange += strange;
        self.intake.add(intake);
    }
}

/// What publishers by WebRTC have brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntakeCounts {
    /// Publishers whose offer was answered.
    pub publishers: u64,
    /// RTP packets of media, each once, those that came again included.
    pub packets: u64,
    /// Packets that are missing.
    pub lost: u64,
    /// Packets that came after they had been asked for again.
    pub recovered: u64,
    /// Packets that were asked for again, each time counted.
    pub asked: u64,
    /// Keyframes that were asked for.
    pub keyframes_asked: u64,
    /// Frames, of pictures and of sound, that were whole and passed on.
    pub frames: u64,
    /// Complete frames before the first keyframe: no decoder could begin with them.
    pub early: u64,
    /// Frames of which a packet was missing; they are not passed on.
    pub broken: u64,
    /// Sender reports received.
    pub sender_reports: u64,
}

impl IntakeCounts {
    pub(super) fn add(&mut self, other: &Self) {
        let Self {
            publishers,
            packets,
            lost,
            recovered,
            asked,
            keyframes_asked,
            frames,
            early,
            broken,
            sender_reports,
        } = other;
        self.publishers += publishers;
        self.packets += packets;
        self.lost += lost;
        self.recovered += recovered;
        self.asked += asked;
        self.keyframes_asked += keyframes_asked;
        self.frames += frames;
        self.early += early;
        self.broken += broken;
        self.sender_reports += sender_reports;
    }
}
