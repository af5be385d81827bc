//! A transport stream, packet by packet: what is wrong with it, and what it is.

use crate::alignment::{Aligner, PacketSize};
use crate::clock::StreamTime;
use crate::counts::{Counts, PidCounts};
use crate::elementary::{ElementaryPiece, ElementaryStreams};
use crate::finding::Finding;
use crate::options::Options;
use crate::record::Mark;
use crate::report::Report;
use crate::scan::Scan;
use crate::stream_type::Codec;
use crate::units::UnitTimes;

/// Takes a transport stream in pieces of any size, and keeps account of it.
///
/// Whole packets are looked at where the caller has them. What is carried over from one piece to the next is the
/// packet that is cut, up to 1.3 kB where alignment is in doubt, and the last packet of each PID, against which a
/// repetition is compared. How the stream is cut makes no difference to any result.
///
/// ```
/// use weir_ts::{Analyser, Options};
///
/// let mut analyser = Analyser::new(Options::default());
/// let null_packet = [&[0x47, 0x1F, 0xFF, 0x10][..], &[0xFF; 184]].concat();
/// for _ in 0..10 {
///     analyser.feed(&null_packet);
/// }
/// analyser.finish();
/// assert_eq!(analyser.counts().null_packets, 10);
/// ```
#[derive(Debug)]
pub struct Analyser {
    aligner: Aligner,
    scan: Scan,
}

/// Positions in a piece have 32 bits.
const LONGEST_PIECE: usize = 1 << 30;

impl Analyser {
    /// An analyser at the beginning of a stream.
    pub fn new(options: Options) -> Self {
        Self { aligner: Aligner::new(options.packet_size), scan: Scan::new(&options) }
    }

    /// Takes the next bytes of the stream.
    ///
    /// A packet counts when the sync byte after it is in its place; where another byte is there, when alignment holds
    /// all the same or no new alignment begins inside the packet; and at the [end](Self::finish), if it is whole.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.scan.fed(bytes.len());
        for piece in bytes.chunks(LONGEST_PIECE) {
            self.aligner.feed(piece, &mut self.scan);
        }
    }

    /// The stream is over: what was in doubt is decided. What is fed after it is taken as a new search for packets.
    pub fn finish(&mut self) {
        self.aligner.finish(&mut self.scan);
    }

    /// What has been counted so far. Cheap; the difference of two readings is what came between.
    pub fn counts(&self) -> Counts {
        self.scan.counts()
    }

    /// [`Counts::lost_packets`] up to the last clock reference, without those by which counters of another stream that began in the place of the
    /// one before, and whose clock went back, do not go on from that one's.
    pub fn missing(&mut self) -> u64 {
        self.scan.missing().settled()
    }

    /// The same where no more clock references are waited for.
    pub fn settle_missing(&mut self) -> u64 {
        self.scan.missing().settle();
        self.missing()
    }

    /// What has been counted on one PID.
    pub fn pid_counts(&self, pid: u16) -> PidCounts {
        self.scan.pid_counts(pid)
    }

    /// What was found wrong, in the stream's order; the first of each kind. It only grows.
    pub fn findings(&self) -> &[Finding] {
        self.scan.findings()
    }

    /// Where decoding can begin: PAT and PMT are known, and a random access point of that program's video has come,
    /// or of its audio when it has no video. A scrambled picture does not count.
    pub fn decodable(&self) -> Option<Mark> {
        self.scan.decodable()
    }

    /// Begins to keep the bytes of elementary streams for [`Self::take_elementary`], or ends it. They cost a copy, and a second look
    /// at each of their packets.
    pub fn keep_elementary(&mut self, streams: Option<ElementaryStreams>) {
        self.scan.keep_elementary(streams);
    }

    /// Hands out what has been kept since the last call, in the order in which it came. What is fed between two calls is kept,
    /// whatever its size.
    pub fn take_elementary(&mut self, each: impl FnMut(ElementaryPiece<'_>)) {
        self.scan.take_elementary(each);
    }

    /// The stream's own time; `None` before its first clock reference.
    pub fn time(&self) -> Option<StreamTime> {
        self.scan.time()
    }

    /// How often that time has gone on by the packets that passed alone, because the clock had jumped, announced or not: how much time really
    /// passed there is unknown.
    pub fn time_bases(&self) -> u64 {
        self.scan.time_bases()
    }

    /// Whether that time goes on between two clock references: not before the second of them.
    pub fn keeps_time(&self) -> bool {
        self.scan.has_rate()
    }

    /// When units of pictures and of sound began, in this order.
    pub fn units(&self) -> [UnitTimes; 2] {
        self.scan.units()
    }

    /// When units began with which a decoder that has seen nothing before can begin: of each program's pictures, or of its sound
    /// if it has none. Pictures of H.264 and H.265 are those with parameter sets. What the first packet of a unit does not show
    /// is missed.
    pub fn beginnings(&self) -> UnitTimes {
        self.scan.beginnings()
    }

    /// The codec of the pictures and of the sound, and how the first unit of each begins at which decoding can: as much of it as its first
    /// packet has.
    pub fn first_units(&self) -> [Option<(Codec, &[u8])>; 2] {
        self.scan.first_units()
    }

    /// The size of its packets; `None` until some were found.
    pub fn packet_size(&self) -> Option<PacketSize> {
        self.aligner.size()
    }

    /// Everything that is known of the stream.
    pub fn report(&self) -> Report {
        Report::new(self.packet_size(), &self.scan)
    }

    /// How many bytes of memory it holds, about. Bounded: about 20 kB for one program, under 8 MB for a
    /// hostile stream that uses every PID.
    pub fn memory(&self) -> usize {
        self.aligner.carried() + self.scan.memory()
    }
}
