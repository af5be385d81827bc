//! A viewer of a transport stream over HTTP.

use super::beginning::Beginnings;
use super::container::StreamPrefix;
use super::decoded::DecodedStreams;
use super::figures;
use crate::client_session::{ClientSession, End, Stop};
use crate::client_state::{ClientPhase, ClientState, Timeouts, undecodable};
use crate::decoding::DecodedWitness;
use crate::http_get::{HttpGet, Step};
use crate::http_request::Request;
use crate::playback_model::{Continuation, PlaybackModel, Reading, TrackEnd};
use crate::playout::Playout;
use crate::redirect::Redirects;
use crate::shard_recorder::{ClientRecord, Gap, PlannedStart, ShardRecorder};
use crate::timeline::{Timeline, Track};
use crate::track_format::TrackFormat;
use std::sync::Arc;
use weir_media::{Framing, PictureCodec, adts_format, units};
use weir_metrics::common::{
    AHEAD, MEDIA, READS, RECEIVED, TIMESTAMP_JUMP, TIMESTAMP_JUMPS, UNITS, WITNESSES,
};
use weir_metrics::{Failure, Moment};
use weir_shard::{Context, Edge};
use weir_ts::{Analyser, Codec, Counts, ElementaryStreams, FindingKind, Options, UnitTimes};

/// A body in which this many bytes have no packet is not a transport stream: over 5,000 packets might be in them.
const LONGEST_SEARCH: u64 = 1 << 20;
/// Media time is read once in this many bytes; two viewers of the same bytes may differ by as much. At 4 Mbit/s it is
/// 33 ms of the stream.
const STRIDE: usize = 16 * 1_024;
/// Findings of a kind that an analyser keeps: of them come the sizes of jumps and the places of gaps.
const FINDINGS: u32 = 512;

/// What all viewers of a workload share.
pub(super) struct SharedOptions {
    pub(super) timeouts: Timeouts,
    pub(super) playout: Playout,
    /// Where redirects lead.
    pub(super) redirects: Redirects,
    /// Whether a server has just listed what is asked for.
    pub(super) listed: bool,
}

/// One virtual viewer.
pub(super) struct Player {
    state: ClientState,
    reading: Reading,
    playback: PlaybackModel,
    options: Arc<SharedOptions>,
    get: HttpGet,
    analyser: Box<Analyser>,
    /// Where decoding can begin; until it has begun.
    beginnings: Option<Box<Beginnings>>,
    /// What a decoder is given, if this viewer is decoded.
    decoded: Option<Box<DecodedStreams>>,
    /// Whether it is told what pictures and sound are.
    told: [bool; 2],
    /// What of the analyser's totals is in the shard's recorder.
    booked: Counts,
    /// Bytes of answers that are over, and what was in them.
    earlier: (u64, Counts),
    /// The newest media time, in microseconds, and how far the clock of the answer under way is behind it.
    media: i64,
    base: i64,
    /// How many of its findings have been looked at.
    findings: usize,
    /// How the answer begins, to name what is no transport stream.
    front: StreamPrefix,
    /// Position of what it reads among the workload's targets.
    target: u32,
    /// Since when it has read.
    since: Option<Moment>,
    /// Bytes of the stream so far, until media time is counted.
    before: Option<u64>,
}

impl Player {
    pub(super) fn new(
        planned: PlannedStart,
        target: u32,
        request: Arc<Request>,
        options: Arc<SharedOptions>,
        (reading, decoded): (Reading, Option<DecodedWitness>),
        now: Moment,
        shard: &mut ShardRecorder,
    ) -> Self {
        let state = ClientState::begin(planned, options.timeouts, now, shard);
        if reading == Reading::Witness {
            shard.of(planned).shift(WITNESSES, 1);
        }
        // The timeline is for streams that come frame by frame; here the analyser keeps the clock.
        let timeline = Timeline::new(90_000, 33);
        let analyser = Box::new(analyser(decoded.is_some()));
        Self {
            state,
            reading,
            playback: PlaybackModel::new(reading, planned.client, timeline, options.playout, now),
            get: HttpGet::new(planned.number(), request, options.redirects.clone()),
            options,
            analyser,
            beginnings: Some(Box::default()),
            decoded: decoded.map(|witness| Box::new(DecodedStreams::new(witness))),
            told: [false; 2],
            booked: Counts::default(),
            earlier: (0, Counts::default()),
            media: 0,
            base: 0,
            findings: 0,
            front: StreamPrefix::default(),
            target,
            since: None,
            before: Some(0),
        }
    }

    /// Takes what a read brought: head, body, or both.
    fn take(&mut self, mut bytes: &[u8], now: Moment, shard: &mut ShardRecorder) -> Result<(), End> {
        let before = self.get.body();
        let last = loop {
            match self.get.take(&mut bytes) {
                Step::Piece(piece) => {
                    self.front.take(piece);
                    self.media(piece, now, shard);
                }
                Step::Accepted => self.state.reach(ClientPhase::Waiting, now, shard),
                last => break last,
            }
        };
        let media = self.get.body() - before;
        shard.of(self.state.planned()).count(MEDIA, media);
        if media > 0 {
            self.state.fed(now, shard);
        }
        self.book(now, shard);
        match last {
            // mirakc answers so when its tuners are taken.
            Step::Failed(Failure::StreamNotFound, said) if self.options.listed => Err((
                Failure::Unavailable,
                format!("{said}; the server has just listed it: no free tuner, or gone"),
            )),
            Step::Failed(failure, words) => Err((failure, words)),
            Step::End => {
                let words = format!("the answer ended after {} bytes, as announced", self.get.body());
                Err(self.ended(words, now, shard))
            }
            _ if self.get.body() >= LONGEST_SEARCH && self.analyser.packet_size().is_none() => {
                Err((Failure::MalformedInput, self.no_stream()))
            }
            Step::Accepted | Step::Piece(_) | Step::More => Ok(()),
        }
    }

    /// A piece of the stream came.
    fn media(&mut self, piece: &[u8], now: Moment, shard: &mut ShardRecorder) {
        self.state.reach(ClientPhase::Opening, now, shard);
        self.since.get_or_insert(now);
        for stride in piece.chunks(STRIDE) {
            self.analyser.feed(stride);
            if self.elementary(now) && self.state.phase() == ClientPhase::Opening {
                self.state.reach(ClientPhase::Playing, now, shard);
            }
            // References may be seconds apart: before the second of them time stands still.
            if self.state.phase() == ClientPhase::Playing
                && self.analyser.keeps_time()
                && let Some(time) = self.analyser.time()
            {
                let (time, recorder) = ((time.0 / 27) as i64, shard.of(self.state.planned()));
                if let Some(before) = self.before.take() {
                    recorder.count(AHEAD, before + stride.len() as u64);
                    // Another answer goes on where the one before has stopped.
                    if self.earlier.0 > 0 {
                        self.base = self.media - time;
                        self.playback.come_back(now);
                    }
                }
                self.media = time + self.base;
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
                self.playback.progress(now, self.media, stride.len() as u32, 0, recorder);
                let ends = self.analyser.units().map(|units| track_end(units, self.base));
                self.playback.set_tracks(now, ends, recorder);
            } else if let Some(before) = &mut self.before {
                *before += stride.len() as u64;
            }
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
        let counts = self.analyser.counts();
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

    /// The body has ended where it should.
    fn ended(&mut self, words: String, now: Moment, shard: &mut ShardRecorder) -> End {
        self.finish_stream(now, shard);
        if self.get.body() > 0 && self.analyser.packet_size().is_none() {
            (Failure::MalformedInput, self.no_stream())
        } else {
            (Failure::StreamEnded, words)
        }
    }

    /// Nothing more will come: what the analyser still held is decided.
    fn finish_stream(&mut self, now: Moment, shard: &mut ShardRecorder) {
        self.analyser.finish();
        self.book(now, shard);
    }

    fn no_stream(&self) -> String {
        match self.front.name() {
            Some(name) => format!("no transport stream: {name}"),
            None => {
                format!(
                    "no transport stream: the first {} bytes hold no packets of 188, 192 or 204 bytes",
                    self.get.body()
                )
            }
        }
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

impl ClientSession for Player {
    fn state(&self) -> &ClientState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut ClientState {
        &mut self.state
    }

    fn handle_connected(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        self.get.send(&mut self.state, context);
        Ok(())
    }

    fn handle_input(&mut self, bytes: &[u8], context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let (now, shard) = (context.now, &mut *context.world);
        let mut outcome = Ok(());
        if !bytes.is_empty() {
            let recorder = shard.of(self.state.planned());
            recorder.count(READS, 1);
            recorder.count(RECEIVED, bytes.len() as u64);
            outcome = self.take(bytes, now, shard);
        }
        if self.state.phase() == ClientPhase::Playing {
            let ended = self.playback.end_of_read(now, bytes.is_empty(), shard.of(self.state.planned()));
            shard.track_ended(self.state.planned(), ended);
            self.state.end_of_read(bytes.is_empty(), now, shard);
        }
        outcome
    }

    fn handle_timeout(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let unread = if self.playback.asks(context.now) { context.unread() } else { 0 };
        let (now, recorder) = (context.now, context.world.of(self.state.planned()));
        if self.state.has_begun()
            && self.playback.poll_timeout().is_some_and(|next| next <= now)
            && self.playback.handle_timeout(now, unread, recorder)
        {
            if self.state.is_away() {
                self.playback.end_of_read(now, true, recorder);
            } else {
                context.pull();
            }
        }
        Ok(())
    }

    fn handle_edge(&mut self, edge: Edge, context: &mut Context<'_, ShardRecorder>) {
        if self.state.phase() == ClientPhase::Playing {
            let recorder = context.world.of(self.state.planned());
            self.playback.edge(edge.at, edge.arrived, recorder);
        }
    }

    fn overdue(&mut self, _: &mut Context<'_, ShardRecorder>) -> End {
        let (failure, words) = self.state.overdue();
        if self.state.phase() != ClientPhase::Opening {
            return (failure, words.to_owned());
        }
        let counts = self.analyser.counts();
        if self.analyser.packet_size().is_none() {
            return (Failure::MalformedInput, self.no_stream());
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

    fn handle_stop(&mut self, _: &mut Context<'_, ShardRecorder>) -> Result<Stop, End> {
        Ok(Stop::WhenRead)
    }

    fn handle_closed(
        &mut self,
        failure: Failure,
        words: &str,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        // The end of the link is the end of the body only where nothing else is, and only in good order.
        if failure != Failure::ClosedByPeer {
            return Err((failure, words.to_owned()));
        }
        Err(match self.get.closed() {
            Ok(words) => self.ended(words, context.now, context.world),
            Err(words) => {
                self.finish_stream(context.now, context.world);
                (failure, words)
            }
        })
    }

    fn after_event(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        self.get.go_on(context)?;
        context.set_low_water(if self.state.phase() == ClientPhase::Playing {
            self.playback.batch()
        } else {
            1
        });
        Ok(())
    }

    fn poll_timeout(&self, context: &Context<'_, ShardRecorder>) -> Option<Moment> {
        let playback = if self.state.has_begun() { self.playback.poll_timeout() } else { None };
        [playback, self.get.poll_timeout(context.now)].into_iter().flatten().min()
    }

    fn begin_again(&mut self, context: &mut Context<'_, ShardRecorder>) {
        self.finish_stream(context.now, context.world);
        self.earlier = (self.earlier.0 + self.get.body(), self.earlier.1 + std::mem::take(&mut self.booked));
        self.get.begin_again();
        let analyser = analyser(self.decoded.is_some());
        (*self.analyser, self.findings, self.front) = (analyser, 0, StreamPrefix::default());
        self.beginnings = Some(Box::default());
        (self.before, self.told) = (Some(0), [false; 2]);
    }

    fn leave(&mut self, failure: Option<Failure>, context: &mut Context<'_, ShardRecorder>) {
        self.decoded = None;
        let (now, shard) = (context.now, &mut *context.world);
        let recorder = shard.of(self.state.planned());
        if self.state.has_begun() {
            self.playback.leave(now, recorder);
        }
        if self.reading == Reading::Witness {
            recorder.shift(WITNESSES, -1);
        }
        let (bytes, counts) = (self.earlier.0 + self.get.body(), self.earlier.1 + self.booked);
        let numbers = figures::columns(bytes, &counts).into_iter().map(|it| Some(it as f64)).collect();
        let (planned, target, since) = (self.state.planned(), self.target, self.since);
        shard.record_client(ClientRecord { at: now, planned, target, since, failure, numbers });
    }
}
