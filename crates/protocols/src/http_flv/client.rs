//! A viewer of an FLV file over HTTP.

use super::SCHEMES;
use super::figures::{AUDIO_FRAMES, ENHANCED, FIGURES, SCRIPT_TAGS, SEQUENCE_HEADERS, UNREADABLE_TAGS};
use weir_clients::{
    EndpointFinder, Endpoints, FlvBody, FlvFigures, FlvViewer, HostClock, HttpGet, HttpOptions, Ledger,
    NewClient, Phase, PlayOptions, Redirects, Request, Scheme, Step, Target, TargetError, Workload,
    WorkloadError, ts,
};
use weir_metrics::common::{READS, RECEIVED, SENT};
use weir_metrics::{Failure, Moment, Schema};
use weir_rtmp::client::HEAD_LEN;
use weir_rtmp::flv::{Limits, Reader};
use weir_shard::{Context, Event, Session};

/// What the bodies of tags are counted as.
const COUNTED: FlvFigures = FlvFigures {
    audio_frames: AUDIO_FRAMES,
    sequence_headers: SEQUENCE_HEADERS,
    data: SCRIPT_TAGS,
    enhanced: ENHANCED,
    unreadable: UNREADABLE_TAGS,
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
        let mut target = Target::parse(url, "play", ALL_SCHEMES)?;
        if !target.scheme.ends_with("+flv") {
            target.scheme.push_str("+flv");
        }
        Ok(target)
    });
    let targets = targets.collect::<Result<Vec<_>, TargetError>>()?;
    let mut endpoints = EndpointFinder::new(ALL_SCHEMES, &options.tls);
    let places = Endpoints::of(targets, &mut endpoints, |target| request(&target, http))?;
    let redirects = Redirects::new(endpoints);
    let (options, clock) = (options.clone(), HostClock::read());
    let schema = Schema::new(FIGURES);
    Ok(Workload::new(schema, places, move |client: NewClient<'_, Request>, ledger: &mut Ledger| {
        let NewClient { slot, request, now, .. } = client;
        let playing = (options.timeouts, options.playout(), clock);
        Box::new(Player {
            get: HttpGet::new(request, redirects.clone()),
            reader: Reader::new(Limits::default()),
            flv: FlvViewer::new(slot, playing, &COUNTED, options.reading(slot.client), now, ledger),
            stopping: false,
        })
    }))
}

/// What is asked for at a target: the same by HTTP.
fn request(target: &Target, options: &HttpOptions) -> Result<Request, TargetError> {
    let host = if target.host.contains(':') { format!("[{}]", target.host) } else { target.host.clone() };
    let scheme = target.scheme.trim_end_matches("+flv");
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
    stopping: bool,
}

impl Player {
    fn read(&mut self, bytes: &[u8], now: Moment, ledger: &mut Ledger) {
        if !bytes.is_empty() && self.flv.life.phase() < Phase::Over {
            let recorder = ledger.of(self.flv.life.slot());
            recorder.count(READS, 1);
            recorder.count(RECEIVED, bytes.len() as u64);
            let outcome = self.take(bytes, now, ledger);
            self.flv.book(now, ledger);
            if let Err((failure, words)) = outcome {
                self.fail(failure, &words, now, ledger);
            }
        }
        self.flv.end_of_read(bytes.is_empty(), now, ledger);
        if self.stopping {
            self.flv.leave(now, ledger);
            self.flv.life.finish(ledger);
        }
    }

    /// Takes what a read brought: head, tags, or both.
    fn take(&mut self, mut bytes: &[u8], now: Moment, ledger: &mut Ledger) -> Result<(), (Failure, String)> {
        loop {
            match self.get.take(&mut bytes) {
                Step::Accepted => self.flv.life.reach(Phase::Waiting, now, ledger),
                Step::Piece(mut piece) => loop {
                    let tag = self.reader.next(&mut piece);
                    let tag = tag.map_err(|error| (Failure::MalformedInput, error.to_string()))?;
                    let Some(tag) = tag else { break };
                    let head = &tag.body[..tag.body.len().min(HEAD_LEN)];
                    let (length, timestamp) = (tag.body.len() as u32, tag.timestamp);
                    self.flv.take(&FlvBody { kind: tag.kind, timestamp, length, head }, now, ledger);
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

    fn close(&mut self, failure: Failure, words: &str, now: Moment, ledger: &mut Ledger) {
        // The end of the link is the end of the file only in good order.
        let (failure, words) = match self.get.closed() {
            _ if failure != Failure::ClosedByPeer => (failure, words.to_owned()),
            Ok(words) => (Failure::StreamEnded, words),
            Err(words) => (failure, words),
        };
        self.fail(failure, &words, now, ledger);
    }

    fn fail(&mut self, failure: Failure, words: &str, now: Moment, ledger: &mut Ledger) {
        self.flv.leave(now, ledger);
        self.flv.life.fail(failure, words, now, ledger);
    }
}

impl Session<Ledger> for Player {
    fn handle(&mut self, event: Event<'_>, context: &mut Context<'_, Ledger>) {
        let now = context.now;
        match event {
            Event::Connected => {
                // HTTP has no handshake of its own.
                self.flv.life.reach(Phase::Requesting, now, context.world);
                let bytes = self.get.bytes();
                context.send(bytes);
                context.world.of(self.flv.life.slot()).count(SENT, bytes.len() as u64);
            }
            Event::Bytes(bytes) => self.read(bytes, now, context.world),
            Event::Timer => {
                if let Some((failure, words)) = self.flv.handle_timeout(context) {
                    self.fail(failure, words, now, context.world);
                }
            }
            Event::Stop => {
                self.stopping = true;
                context.pull();
                return;
            }
            Event::Closed { failure, words } => self.close(failure, words, now, context.world),
            _ => {}
        }
        if self.flv.life.phase() < Phase::Over
            && let Err((failure, words)) = self.get.go_on(context)
        {
            self.fail(failure, &words, now, context.world);
        }
        if self.flv.life.phase() == Phase::Over {
            return context.close();
        }
        context.set_low_water(self.flv.batch());
        match [self.flv.poll_timeout(), self.get.poll_timeout(now)].into_iter().flatten().min() {
            Some(next) => context.set_timer(next),
            None => context.clear_timer(),
        }
    }
}
