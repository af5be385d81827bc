//! Groups of figures: what clients have to do so that they record them.

/// A group of figures. A protocol says of which groups its clients record nothing at all, and a threshold on a figure of one of these is
/// refused before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FigureGroup {
    /// Planned starts, links, and what became of clients.
    Connection,
    /// The server's consent to what a client asks for.
    Request,
    /// The first media of a client.
    FirstMedia,
    /// Links that were lost and made again.
    Reconnection,
    /// Bytes on links.
    Bytes,
    /// Media units and their payload.
    Media,
    /// What was to come, against what came: ratios alone.
    Expected,
    /// Pictures.
    Pictures,
    /// What a modelled player makes of the media time of each frame.
    Playout,
    /// How a modelled player stands still.
    Stalls,
    /// Viewers that play and get nothing more.
    Starvation,
    /// From capture to receipt, by clock stamps.
    Latency,
    /// Units that came with a number, and in which order.
    Numbering,
    /// Units that are missing or came twice.
    Loss,
    /// What decoders make of pictures and sound.
    Decoding,
    /// How a publisher keeps its schedule and its count.
    Sending,
    /// What only subscribers to messages record.
    Subscribing,
    /// What only publishers of messages record.
    Publishing,
    /// weir itself.
    Generator,
    /// What becomes of messages that are saved.
    Saving,
    /// What one protocol records of its own.
    Own,
}
