//! A viewer of an FLV file over HTTP.

use super::SCHEMES;
use super::figures::{AUDIO_FRAMES, ENHANCED, FIGURES, SCRIPT_TAGS, SEQUENCE_HEADERS, UNREADABLE_TAGS};
use std::sync::Arc;
use weir_clients::{
    ClientPhase, ClientSession, ClientState, End, EndpointFinder, Endpoints, FlvBody, FlvFigures, FlvViewer,
    HostClock, HttpGet, HttpOptions, NewClient, PlayOptions, Redirects, Request, Scheme, ShardRecorder, Step,
    Stop, Target, TargetError, Workload, WorkloadError, ts,
};
use weir_metrics::common::{READS, RECEIVED};
use weir_metrics::{Failure, Moment, Schema};
use weir_rtmp::client::HEAD_LEN;
use weir_rtmp::flv::{Limits, Reader};
use weir_shard::{Context, Edge};

/// What the bodies of tags are counted as.
const COUNTED: FlvFigures = FlvFigures {
    audio_frames: AUDIO_FRAMES,
    sequence_headers: SEQUENCE_HEADERS,
    data: SCRIPT_TAGS,
    enhanced: ENHANCED,
    unreadable: UNREADABLE_TAGS,
    numbers_frames: true,
};

/// Its own schemes, and those of URLs whose path ends in `.flv` and of redirects.
const ALL_SCHEMES: &[Scheme] = &[SCHEMES[0], SCHEMES[1], ts::SCHEMES[0], ts::SCHEMES[1]];

/// Viewers of these URLs.
pub(super) fn play(
    urls: &[String],
    options: &PlayOptions,
    http: &HttpOptions,
) -> Result<Workload, WorkloadError> {
    let targets = urls.iter().map(|url| {
        let target = Target::parse(url, "play", ALL_SCHEMES)?;
        // Its own scheme, if the end of the path says the protocol.
        let own = SCHEMES.into_iter().find(|own| own.link == target.scheme.link);
        let scheme = own.unwrap_or(target.scheme);
        Ok(Target { scheme, ..target })
    });
    let targets = targets.collect::<Result<Vec<_>, TargetError>>()?;
    let mut finder = EndpointFinder::new(ALL_SCHEMES, &options.tls).resolving(options.resolve);
    let endpoints = Endpoints::of(targets, &mut finder, |target| request(&target, http))?;
    let redirects = Redirects::new(finder);
    let (options, returns, clock) = (options.clone(), options.returns, Arc::new(HostClock::read()));
    let (schema, decoders) = (Schema::new(FIGURES), options.decoders.clone());
    let new = move |client: NewClient<'_, Request>, shard: &mut ShardRecorder| {
        let NewClient { planned, request, now, .. } = client;
        let playing = (options.timeouts, options.playout(), Arc::clone(&clock));
        Player {
            get: HttpGet::new(planned.number(), request, redirects.clone()),
            reader: Reader::new(Limits::default()),
            flv: FlvViewer::of(planned, playing, &COUNTED, &options, now, shard),
        }
    };
    let mut workload = Workload::new(schema, endpoints, new).returning(returns).decoded_by(decoders);
    workload.sends_secret |= http.sends_secret();
    Ok(workload)
}

/// What is asked for at a target: the same by HTTP.
fn request(target: &Target, options: &HttpOptions) -> Result<Request, TargetError> {
    let host = if target.host.contains(':') { format!("[{}]", target.host) } else { target.host.clone() };
    let scheme = ts::http_scheme(target.scheme.link).name;
    let mut http =
        Target::parse(&format!("{scheme}://{host}:{}{}", target.port, target.path), "play", ts::SCHEMES)?;
    http.credentials.clone_from(&target.credentials);
    Ok(Request::new(http, options))
}

/// One virtual viewer.
struct Player {
    get: HttpGet,
    reader: Reader,
    flv: FlvViewer,
}

impl Player {
    /// Takes what a read brought: head, tags, or both.
    fn take(&mut self, mut bytes: &[u8], now: Moment, shard: &mut ShardRecorder) -> Result<(), End> {
        loop {
            match self.get.take(&mut bytes) {
                Step::Accepted => self.flv.state.reach(ClientPhase::Waiting, now, shard),
                Step::Piece(mut piece) => loop {
                    let tag = self.reader.next(&mut piece);
                    let tag = tag.map_err(|error| (Failure::MalformedInput, error.to_string()))?;
                    let Some(tag) = tag else { break };
                    let kept = if self.flv.is_decoded() { usize::MAX } else { HEAD_LEN };
                    let head = &tag.body[..tag.body.len().min(kept)];
                    let (length, timestamp) = (tag.body.len() as u32, tag.timestamp);
                    self.flv.take(&FlvBody { kind: tag.kind, timestamp, length, head }, now, shard);
                },
                Step::End => {
                    let words = format!("the answer ended after {} bytes, as announced", self.get.body());
                    return Err((Failure::StreamEnded, words));
                }
                Step::Failed(failure, words) => return Err((failure, words)),
                Step::More => return Ok(()),
            }
        }
    }
}

impl ClientSession for Player {
    fn state(&self) -> &ClientState {
        &self.flv.state
    }

    fn state_mut(&mut self) -> &mut ClientState {
        &mut self.flv.state
    }

    fn handle_connected(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        self.get.send(&mut self.flv.state, context);
        Ok(())
    }

    fn handle_input(&mut self, bytes: &[u8], context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let (now, shard) = (context.now, &mut *context.world);
        let mut outcome = Ok(());
        if !bytes.is_empty() {
            let recorder = shard.of(self.flv.state.planned());
            recorder.count(READS, 1);
            recorder.count(RECEIVED, bytes.len() as u64);
            outcome = self.take(bytes, now, shard);
            self.flv.book(now, shard);
        }
        self.flv.end_of_read(bytes.is_empty(), now, shard);
        outcome
    }

    fn handle_timeout(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        self.flv.handle_timeout(context);
        Ok(())
    }

    fn handle_edge(&mut self, edge: Edge, context: &mut Context<'_, ShardRecorder>) {
        self.flv.edge(edge, context.world);
    }

    fn lacks_only_a_keyframe(&self) -> bool {
        self.flv.lacks_only_a_keyframe()
    }

    fn overdue(&mut self, _: &mut Context<'_, ShardRecorder>) -> End {
        self.flv.overdue()
    }

    fn handle_stop(&mut self, _: &mut Context<'_, ShardRecorder>) -> Result<Stop, End> {
        Ok(Stop::WhenRead)
    }

    fn handle_closed(
        &mut self,
        failure: Failure,
        words: &str,
        _: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        // The end of the link is the end of the file only in good order.
        Err(match self.get.closed() {
            _ if failure != Failure::ClosedByPeer => (failure, words.to_owned()),
            Ok(words) => (Failure::StreamEnded, words),
            Err(words) => (failure, words),
        })
    }

    fn after_event(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        self.get.go_on(context)?;
        context.set_low_water(self.flv.batch());
        Ok(())
    }

    fn poll_timeout(&self, context: &Context<'_, ShardRecorder>) -> Option<Moment> {
        [self.flv.poll_timeout(), self.get.poll_timeout(context.now)].into_iter().flatten().min()
    }

    fn begin_again(&mut self, context: &mut Context<'_, ShardRecorder>) {
        self.get.begin_again();
        self.reader = Reader::new(Limits::default());
        self.flv.begin_again(context.world);
    }

    fn leave(&mut self, _: Option<Failure>, context: &mut Context<'_, ShardRecorder>) {
        self.flv.leave(context.now, context.world);
    }
}
