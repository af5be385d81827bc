//! What a connection has counted.

use crate::outbox::Content;

/// Counts of a connection since it began. In brackets the name that libsrt's statistics have for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Data packets that came, repeated ones included (`pktRecv`).
    pub received: u64,
    /// Packets that were missing when a later one came (`pktRcvLoss`). Those that had only been overtaken are among them.
    pub missing: u64,
    /// Those of them that came by themselves: they were overtaken, not lost.
    pub reordered: u64,
    /// Those of them that were sent again and came in time.
    pub recovered: u64,
    /// Those of them that had not come when their time was over: they are missing in the stream (`pktRcvDrop`).
    pub dropped: u64,
    /// Packets that came after they had been given up (`pktRcvBelated`).
    pub belated: u64,
    /// Packets that came once more.
    pub duplicates: u64,
    /// Packets that were sent again, as they say of themselves (`pktRcvRetrans`).
    pub retransmissions_received: u64,
    /// Packets that could not be decrypted (`pktRcvUndecrypt`).
    pub undecrypted: u64,
    /// Packets for which there was no room, or whose number is nowhere near.
    pub discarded: u64,
    /// Datagrams that are not SRT, or not of this connection.
    pub malformed: u64,
    /// Loss reports sent (`pktSentNAK`).
    pub loss_reports_sent: u64,
    /// Full acknowledgements sent (`pktSentACK`).
    pub acknowledgements_sent: u64,
    /// Full acknowledgements that were due and kept back.
    pub acknowledgements_withheld: u64,
    /// Data packets of which a copy has left, each once (`pktSentUnique`). What this side's socket refuses has not left.
    pub sent: u64,
    /// Copies that have left of packets that had before (`pktRetrans`).
    pub retransmitted: u64,
    /// Packets that the peer reported missing (`pktSndLoss`); one that is reported twice counts twice.
    pub reported_missing: u64,
    /// Packets that were given up before the peer had acknowledged them (`pktSndDrop`).
    pub send_dropped: u64,
    /// Those that were given up for a reason of this side, and are not in `send_dropped`: they had not left, because this side's socket had
    /// refused them or held them still, or because they had not come to be sent though the peer had room; they had left only after half of
    /// the time for which they are kept; there was no key; or the peer could not acknowledge them for lack of one before them that had not
    /// left.
    pub send_discarded: u64,
    /// Loss reports that came (`pktRecvNAK`).
    pub loss_reports_received: u64,
    /// Acknowledgements that came (`pktRecvACK`).
    pub acknowledgements_received: u64,
    /// Keys that took the place of earlier ones, in both directions.
    pub key_refreshes: u64,
}

impl Statistics {
    /// A data packet has left.
    pub(crate) fn count_packet(&mut self, content: Content) {
        match content {
            Content::Original(_) => self.sent += 1,
            Content::Copy(_) => self.retransmitted += 1,
            Content::LossReport | Content::FullAcknowledgement | Content::Other => {}
        }
    }
}
