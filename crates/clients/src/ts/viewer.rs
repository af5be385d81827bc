//! A viewer of a transport stream, whatever brings it: what the analyser counts, the modelled player, and when a decoder can begin.

use super::beginning::Beginnings;
use super::container::StreamPrefix;
use super::decoded::DecodedStreams;
use super::figures;
use crate::client_session::End;
use crate::client_state::{ClientPhase, ClientState, undecodable};
use crate::options::PlayOptions;
use crate::playback_model::{Continuation, PlaybackModel, Reading, SourceFrames, TrackEnd};
use crate::shard_recorder::{ClientRecord, Gap, PlannedStart, ShardRecorder};
use crate::timeline::{Timeline, Track};
use crate::track_format::TrackFormat;
use weir_media::{Framing, PictureCodec, adts_format, units};
use weir_metrics::common::{AHEAD, MEDIA, TIMESTAMP_JUMP, TIMESTAMP_JUMPS, UNITS, WAITED_MEDIA, WITNESSES};
use weir_metrics::{Failure, Moment};
use weir_shard::Edge;
use weir_ts::{Analyser, Codec, Counts, ElementaryStreams, FindingKind, Options, UnitTimes};

/// Media time is read once in this many bytes; two viewers of the same bytes may differ by as much. At 4 Mbit/s it is
/// 33 ms of the stream.
const STRIDE: usize = 16 * 1_024;
/// Findings of a kind that an analyser keeps: of them come the sizes of jumps and the places of gaps.
const FINDINGS: u32 = 512;

/// One virtual viewer of a transport stream.
pub struct TsViewer {
    /// Its phase and deadlines.
    pub state: ClientState,
    is_witness: bool,
    reading: Reading,
    playback: PlaybackModel,
    analyser: Box<Analyser>,
    /// Where decoding can begin; until it has begun.
    beginnings: Option<Box<Beginnings>>,
    /// How many units have come at which decoding can begin.
    beginnings_seen: u64,
    /// What a decoder is given, if this viewer is decoded.
    decoded: Option<Box<DecodedStreams>>,
    /// Whether it is told what pictures and sound are.
    told: [bool; 2],
    /// What of the analyser's totals is in the shard's recorder.
    booked: Counts,
    /// Bytes of streams that are over, and what was in them.
    earlier: (u64, Counts),
    /// Bytes of the stream under way.
    taken: u64,
    /// The newest media time, in microseconds, and how far the clock of the stream under way is behind it.
    media: i64,
    base: i64,
    /// How often its clock has jumped.
    time_bases: u64,
    /// How many of its findings have been looked at.
    findings: usize,
    /// How the stream begins, to name what is no transport stream.
    front: StreamPrefix,
    /// Position of what it reads among the workload's targets.
    target: u32,
    /// Since when it has read.
    since: Option<Moment>,
    /// Bytes of the stream so far, until media time is counted.
    before: Option<u64>,
}

impl TsViewer {
    /// A viewer of the target at this position, whose link is being opened.
    pub fn new(
        planned: PlannedStart,
        target: u32,
        reading: Reading,
        options: &PlayOptions,
        now: Moment,
        shard: &mut ShardRecorder,
    ) -> Self {
        let state = ClientState::begin(planned, options.timeouts, now, shard).waiting_for_keyframes();
        let is_witness = options.is_witness(planned.client);
        shard.of(planned).shift(WITNESSES, i64::from(is_witness));
        // The timeline is for streams that come frame by frame; here the analyser keeps the clock.
        let timeline = Timeline::new(90_000, 33);
        let decoded = options.decoded(planned.client);
        let analyser = Box::new(analyser(decoded.is_some()));
        Self {
            state,
            is_witness,
            reading,
            playback: PlaybackModel::new(reading, planned.client, timeline, options.playout(), now),
            analyser,
            beginnings: Some(Box::default()),
            beginnings_seen: 0,
            decoded: decoded.map(|witness| Box::new(DecodedStreams::new(witness))),
            told: [false; 2],
            booked: Counts::default(),
            earlier: (0, Counts::default()),
            taken: 0,
            media: 0,
            base: 0,
            time_bases: 0,
            findings: 0,
            front: StreamPrefix::default(),
            target,
            since: None,
            before: Some(0),
        }
    }

    /// Bytes of the stream under way.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Whether packets were found in it.
    pub fn is_stream(&self) -> bool {
        self.analyser.packet_size().is_some()
    }

    /// The names of what is counted are those of the analyser.
    pub fn counts(&self) -> Counts {
        self.analyser.counts()
    }

    /// A piece of the stream came.
    pub fn take(&mut self, piece: &[u8], now: Moment, shard: &mut ShardRecorder) {
        self.state.reach(ClientPhase::Opening, now, shard);
        self.front.take(piece);
        self.taken += piece.len() as u64;
        self.since.get_or_insert(now);
        for stride in piece.chunks(STRIDE) {
            self.analyser.feed(stride);
            if self.elementary(now) && self.state.phase() == ClientPhase::Opening {
                self.state.reach(ClientPhase::Playing, now, shard);
            }
            self.note_keyframes(now, shard);
            // References may be seconds apart: before the second of them time stands still.
            if self.state.phase() == ClientPhase::Playing
                && self.analyser.keeps_time()
                && let Some(time) = self.analyser.time()
            {
                let (time, recorder) = ((time.0 / 27) as i64, shard.of(self.state.planned()));
                if let Some(before) = self.before.take() {
                    recorder.count(AHEAD, before + stride.len() as u64);
                    self.time_bases = self.analyser.time_bases();
                    // Another stream goes on where the one before has stopped.
                    if self.earlier.0 > 0 {
                        self.base = self.media - time;
                        self.playback.come_back(now);
                    }
                }
                self.media = time + self.base;
                let bases = self.analyser.time_bases();
                if std::mem::replace(&mut self.time_bases, bases) != bases {
                    self.playback.jumped();
                }
                if self.reading == Reading::Witness {
                    let (analyser, booked) = (&self.analyser, &self.booked);
                    // Counts are copied, and asked for behind a silence only.
                    let continuation = || {
                        let counts = analyser.counts();
                        let has_points = counts.random_access_indicators > 0;
                        let new = counts - *booked;
                        Continuation {
                            jumps: new.pcr_discontinuities + new.discontinuity_indicators > 0,
                            begins: new.random_access_indicators > 0 || !has_points,
                        }
                    };
                    self.playback.came(now, continuation, recorder);
                }
                self.playback.progress(
                    now,
                    self.media,
                    stride.len() as u32,
                    SourceFrames::default(),
                    recorder,
                );
                let ends = self.analyser.units().map(|units| track_end(units, self.base));
                self.playback.set_tracks(now, ends, recorder);
            } else if let Some(before) = &mut self.before {
                *before += stride.len() as u64;
            }
        }
    }

    /// What came together has been taken: `media` bytes of it.
    pub fn took(&mut self, media: u64, now: Moment, shard: &mut ShardRecorder) {
        let recorder = shard.of(self.state.planned());
        recorder.count(MEDIA, media);
        recorder.count(WAITED_MEDIA, if self.state.is_excused() { media } else { 0 });
        if media > 0 {
            self.state.fed(now, shard);
        }
        self.book(now, shard);
    }

    /// A read has ended; `empty` if nothing waited.
    pub fn end_of_read(&mut self, empty: bool, now: Moment, shard: &mut ShardRecorder) {
        if self.state.phase() == ClientPhase::Playing {
            let ended = self.playback.end_of_read(now, empty, shard.of(self.state.planned()));
            shard.track_ended(self.state.planned(), ended);
            self.state.end_of_read(empty, now, shard);
        }
    }

    /// Whether the model wants to know how many bytes wait unread.
    pub fn asks(&self, now: Moment) -> bool {
        self.playback.asks(now)
    }

    /// A deadline has passed. Whether to read now.
    pub fn handle_timeout(&mut self, now: Moment, unread: usize, shard: &mut ShardRecorder) -> bool {
        let recorder = shard.of(self.state.planned());
        if !self.state.has_begun()
            || self.playback.poll_timeout().is_none_or(|next| next > now)
            || !self.playback.handle_timeout(now, unread, recorder)
        {
            return false;
        }
        if self.state.is_away() {
            self.playback.end_of_read(now, true, recorder);
        }
        !self.state.is_away()
    }

    /// When to call [`Self::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Moment> {
        if self.state.has_begun() { self.playback.poll_timeout() } else { None }
    }

    /// A stretch that is judged begins or ends.
    pub fn edge(&mut self, edge: Edge, shard: &mut ShardRecorder) {
        if self.state.phase() == ClientPhase::Playing {
            self.playback.edge(edge.at, edge.arrived, shard.of(self.state.planned()));
        }
    }

    /// Bytes that may wait before they are read.
    pub fn batch(&self) -> usize {
        if self.state.phase() == ClientPhase::Playing { self.playback.batch() } else { 1 }
    }

    /// Whether a stream comes in clear, of which more may come.
    pub fn lacks_only_a_keyframe(&self) -> bool {
        let counts = self.analyser.counts();
        let is_clear = counts.scrambled_packets + counts.reserved_scrambling_packets == 0;
        let missing = self.beginnings.as_ref().and_then(|beginnings| beginnings.missing());
        self.is_stream() && is_clear && missing.is_none()
    }

    /// How it fails that has waited too long.
    pub fn overdue(&self) -> End {
        let (failure, words) = self.state.overdue();
        if self.state.phase() != ClientPhase::Opening {
            return (failure, words.to_owned());
        }
        let counts = self.analyser.counts();
        if !self.is_stream() {
            return self.no_stream();
        }
        if let Some(missing) = self.beginnings.as_ref().and_then(|beginnings| beginnings.missing()) {
            return (failure, undecodable(&missing));
        }
        let words = format!(
            "no PAT, PMT and random access point in clear in time; {} packets came, {} of them scrambled",
            counts.packets,
            counts.scrambled_packets + counts.reserved_scrambling_packets
        );
        (failure, words)
    }

    /// How it fails when what came is no transport stream.
    pub fn no_stream(&self) -> End {
        let words = match self.front.name() {
            Some(name) => format!("no transport stream: {name}"),
            None => {
                format!(
                    "no transport stream: the first {} bytes hold no packets of 188, 192 or 204 bytes",
                    self.taken
                )
            }
        };
        (Failure::MalformedInput, words)
    }

    /// Learns how far apart those units are at which decoding can begin. Sound in LATM is waited for as well, and how often its
    /// configuration comes is not known.
    fn note_keyframes(&mut self, now: Moment, shard: &mut ShardRecorder) {
        let units = self.analyser.beginnings();
        if self.state.phase() != ClientPhase::Playing || units.units == self.beginnings_seen {
            return;
        }
        self.beginnings_seen = units.units;
        let [_, sound] = self.analyser.first_units();
        if sound.is_none_or(|(codec, _)| codec != Codec::AacLatm) {
            self.state.note_keyframe(now, (units.last.0 / 27_000) as u32, shard);
        }
    }

    /// Looks at the elementary streams: whether a decoder can begin with what has just come. That it has begun is said once.
    fn elementary(&mut self, now: Moment) -> bool {
        let (beginnings, decoded) = (&mut self.beginnings, &mut self.decoded);
        if beginnings.is_none() && decoded.is_none() {
            return false;
        }
        self.analyser.take_elementary(|piece| {
            if let Some(beginnings) = beginnings {
                beginnings.take(&piece);
            }
            if let Some(decoded) = decoded {
                decoded.take(&piece, now);
            }
        });
        let can_begin = self.beginnings.take_if(|beginnings| beginnings.has_begun()).is_some();
        if can_begin && self.decoded.is_none() {
            self.analyser.keep_elementary(None);
        }
        can_begin
    }

    /// Books what the analyser has counted since the last call.
    fn book(&mut self, now: Moment, shard: &mut ShardRecorder) {
        let planned = self.state.planned();
        let recorder = shard.of(planned);
        let counts = Counts { lost_packets: self.analyser.missing(), ..self.analyser.counts() };
        let interval = counts - std::mem::replace(&mut self.booked, counts);
        recorder.count(UNITS, interval.packets);
        recorder.count(TIMESTAMP_JUMPS, interval.pcr_discontinuities);
        figures::book(&interval, recorder);
        let findings = self.analyser.findings();
        for finding in &findings[self.findings..] {
            match finding.kind {
                FindingKind::PcrJump { by } => shard.of(planned).record_signed(TIMESTAMP_JUMP, by / 27),
                FindingKind::Gap { expected, found, .. } => {
                    if let (Some(pid), Some(pcr)) = (finding.pid, finding.pcr) {
                        let mark = u32::from(pid) << 8 | u32::from(expected) << 4 | u32::from(found);
                        shard.gap(Gap {
                            at: now,
                            planned,
                            target: self.target,
                            mark,
                            place: pcr.ticks() / 27,
                        });
                    }
                }
                _ => {}
            }
        }
        self.findings = findings.len();
        for (told, first) in self.told.iter_mut().zip(self.analyser.first_units()) {
            if let Some((codec, bytes)) = first.filter(|_| !*told) {
                shard.track(planned, track_format(codec, bytes));
                *told = true;
            }
        }
    }

    /// Nothing more will come: what the analyser still held is decided.
    pub fn finish_stream(&mut self, now: Moment, shard: &mut ShardRecorder) {
        self.analyser.finish();
        self.analyser.settle_missing();
        self.book(now, shard);
    }

    /// The stream is over, and another is to follow.
    pub fn begin_again(&mut self, now: Moment, shard: &mut ShardRecorder) {
        self.finish_stream(now, shard);
        self.earlier = (
            self.earlier.0 + std::mem::take(&mut self.taken),
            self.earlier.1 + std::mem::take(&mut self.booked),
        );
        let analyser = analyser(self.decoded.is_some());
        (*self.analyser, self.findings, self.front) = (analyser, 0, StreamPrefix::default());

        self.beginnings = Some(Box::default());
        (self.before, self.told, self.beginnings_seen) = (Some(0), [false; 2], 0);
    }

    /// The viewer is about to end.
    pub fn leave(&mut self, failure: Option<Failure>, now: Moment, shard: &mut ShardRecorder) {
        self.decoded = None;
        self.analyser.settle_missing();
        self.book(now, shard);
        let recorder = shard.of(self.state.planned());
        if self.state.has_begun() {
            self.playback.leave(now, recorder);
        }
        recorder.shift(WITNESSES, -i64::from(self.is_witness));
        let (bytes, counts) = (self.earlier.0 + self.taken, self.earlier.1 + self.booked);
        let numbers = figures::columns(bytes, &counts).into_iter().map(|it| Some(it as f64)).collect();
        let (planned, target, since) = (self.state.planned(), self.target, self.since);
        shard.record_client(ClientRecord { at: now, planned, target, since, failure, numbers });
    }
}

/// What a track is by its program map and the first bytes of it.
fn track_format(codec: Codec, bytes: &[u8]) -> TrackFormat {
    let pictures = match codec {
        Codec::H264 => PictureCodec::H264,
        Codec::H265 => PictureCodec::H265,
        Codec::Aac => return TrackFormat::new(Track::Audio, codec).with_sound(adts_format(bytes)),
        _ => {
            return TrackFormat::new(if codec.is_video() { Track::Video } else { Track::Audio }, codec);
        }
    };
    TrackFormat::new(Track::Video, codec).with_units(pictures, units(bytes, Framing::AnnexB))
}

/// One that keeps what a decoder is given, or only where decoding can begin.
fn analyser(is_decoded: bool) -> Analyser {
    let mut analyser = Analyser::new(Options { findings_per_kind: FINDINGS, ..Options::default() });
    let kept = if is_decoded { ElementaryStreams::All } else { ElementaryStreams::Beginnings };
    analyser.keep_elementary(Some(kept));
    analyser
}

/// Where a kind of elementary stream stands on the stream's clock, in microseconds, if that is as far behind the player's.
fn track_end(units: UnitTimes, base: i64) -> TrackEnd {
    TrackEnd {
        at: (units.last.0 / 27) as i64 + base,
        longest: (units.longest / 27) as i64,
        longest_from: (units.longest_from.0 / 27) as i64 + base,
        frames: units.units,
    }
}
