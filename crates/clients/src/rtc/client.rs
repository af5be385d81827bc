//! A client of WebRTC: the course of its session, the same for viewers and publishers. What it does once it has keys
//! is its role's, which sees no event.

use super::connection::{Connection, Keys, Milestone, Relayed};
use super::figures::{EARLY, STRANGE};
use super::refusal::End;
use crate::client_state::{ClientState, Phase};
use crate::ledger::Ledger;
use std::net::SocketAddr;
use std::time::Duration;
use weir_metrics::common::{READS, RECEIVED};
use weir_metrics::{Failure, Moment};
use weir_rtc::Datagram;
use weir_shard::{Context, Datagrams, Event, Incoming, Session, Side};

/// What comes within this time is one arrival: packets of one picture, as a rule.
const TOGETHER: Duration = Duration::from_millis(1);

/// Where a client stands, and its way to the server.
pub(super) struct Line {
    pub(super) life: ClientState,
    pub(super) connection: Connection,
}

/// What a client is there for. In each call, the time of the context is when it happened.
pub(super) trait Role {
    /// The keys are there.
    fn begin(&mut self, keys: &Keys, line: &mut Line, context: &mut Context<'_, Ledger>) -> Result<(), End>;

    /// Whether that was so.
    fn has_begun(&self) -> bool;

    /// An RTP packet came from the server.
    fn rtp(&mut self, bytes: &mut [u8], line: &mut Line, context: &mut Context<'_, Ledger>);

    /// A compound RTCP packet came from the server.
    fn rtcp(&mut self, bytes: &mut [u8], line: &mut Line, context: &mut Context<'_, Ledger>);

    /// What has come, came together.
    fn settle(&mut self, _: &mut Line, _: &mut Context<'_, Ledger>) {}

    /// Time has passed.
    fn pass(&mut self, line: &mut Line, context: &mut Context<'_, Ledger>) -> Result<(), End>;

    /// When to call [`Self::pass`].
    fn next(&self, line: &Line) -> Option<Moment>;

    /// What is said of a client that waits for too long, though it has keys.
    fn overdue(&self) -> Option<End> {
        None
    }

    /// The client is over: books what only the end reveals.
    fn depart(&mut self, failure: Option<Failure>, line: &mut Line, context: &mut Context<'_, Ledger>);
}

/// One virtual client.
pub(super) struct Client<R> {
    line: Line,
    role: R,
}

impl<R: Role> Client<R> {
    pub(super) fn new(life: ClientState, connection: Connection, role: R) -> Self {
        Self { line: Line { life, connection }, role }
    }

    /// The connection has come further.
    fn arrive(&mut self, milestone: Option<Milestone>, context: &mut Context<'_, Ledger>) -> Result<(), End> {
        match milestone {
            Some(Milestone::Consent) => self.line.life.reach(Phase::Waiting, context.now, context.world),
            Some(Milestone::Keys) => {
                if let Some(keys) = self.line.connection.take_keys() {
                    self.role.begin(&keys, &mut self.line, context)?;
                }
            }
            None => {}
        }
        Ok(())
    }

    /// Datagrams came.
    fn datagrams(&mut self, mut batch: Datagrams<'_>, context: &mut Context<'_, Ledger>) -> Result<(), End> {
        let (mut received, read_at) = (0, context.now);
        let (mut began, mut outcome) = (None, Ok(()));
        while let Some(Incoming { arrived, source, bytes }) = batch.take_next().filter(|_| outcome.is_ok()) {
            if arrived.since(*began.get_or_insert(arrived)) > TOGETHER {
                self.role.settle(&mut self.line, context);
                began = Some(arrived);
            }
            context.now = arrived;
            received += bytes.len() as u64;
            if !self.line.connection.is_relayed() {
                outcome = self.datagram(source, bytes, context);
            }
        }
        self.role.settle(&mut self.line, context);
        context.now = read_at;
        self.end_of_read(received, context);
        outcome
    }

    /// Bytes of a relay came.
    fn relayed(&mut self, mut bytes: &mut [u8], context: &mut Context<'_, Ledger>) -> Result<(), End> {
        let received = bytes.len() as u64;
        let mut frames = self.line.connection.take_frames();
        let mut outcome = Ok(());
        while outcome.is_ok() {
            outcome = match self.line.connection.next_relayed(&mut frames, &mut bytes, context) {
                Ok(Relayed::Datagram(source, datagram)) => self.datagram(source, datagram, context),
                Ok(Relayed::Nothing) => Ok(()),
                Ok(Relayed::UsedUp) => break,
                Err(end) => Err(end),
            };
        }
        self.line.connection.put_back(frames);
        self.role.settle(&mut self.line, context);
        self.end_of_read(received, context);
        outcome
    }

    /// One datagram came, by itself or by a relay.
    #[inline]
    fn datagram(
        &mut self,
        source: SocketAddr,
        bytes: &mut [u8],
        context: &mut Context<'_, Ledger>,
    ) -> Result<(), End> {
        let kind = Datagram::of(bytes);
        let is_media = matches!(kind, Datagram::Rtp | Datagram::Rtcp);
        if is_media && self.line.connection.path().is_some_and(|path| path != source) {
            context.world.of(self.line.life.slot()).count(STRANGE, 1);
            return Ok(());
        }
        match kind {
            Datagram::Rtp if self.role.has_begun() => self.role.rtp(bytes, &mut self.line, context),
            Datagram::Rtcp if self.role.has_begun() => self.role.rtcp(bytes, &mut self.line, context),
            Datagram::Rtp | Datagram::Rtcp => context.world.of(self.line.life.slot()).count(EARLY, 1),
            Datagram::Stun | Datagram::Dtls => {
                // Media may stand right behind the end of the handshake.
                let milestone = self.line.connection.receive(source, bytes, context)?;
                self.arrive(milestone, context)?;
            }
            _ => context.world.of(self.line.life.slot()).count(STRANGE, 1),
        }
        Ok(())
    }

    /// What was read together has been looked at.
    fn end_of_read(&self, received: u64, context: &mut Context<'_, Ledger>) {
        let recorder = context.world.of(self.line.life.slot());
        recorder.count(READS, 1);
        recorder.count(RECEIVED, received);
    }

    /// A deadline passed: one of many.
    fn time(&mut self, context: &mut Context<'_, Ledger>) -> Result<(), End> {
        if self.line.life.is_hungry(context.now) {
            self.line.life.starve(context.now, context.world);
        } else if self.line.life.deadline().is_some_and(|deadline| deadline <= context.now) {
            return Err(self.overdue());
        }
        let milestone = self.line.connection.pass(context)?;
        self.arrive(milestone, context)?;
        self.role.pass(&mut self.line, context)
    }

    /// What is said of a phase that lasted too long.
    fn overdue(&self) -> End {
        let Line { life, connection } = &self.line;
        let waits = matches!(life.phase(), Phase::Waiting | Phase::Opening);
        let known = waits.then(|| connection.overdue().or_else(|| self.role.overdue())).flatten();
        known.unwrap_or_else(|| {
            let (failure, words) = life.overdue();
            (failure, words.to_owned())
        })
    }

    /// The client is over: it says goodbye.
    fn depart(&mut self, failure: Option<Failure>, context: &mut Context<'_, Ledger>) {
        self.role.depart(failure, &mut self.line, context);
        self.line.connection.depart(context);
    }

    fn next(&self) -> Option<Moment> {
        let Line { life, connection } = &self.line;
        [life.deadline(), connection.next(), self.role.next(&self.line)].into_iter().flatten().min()
    }

    fn hear(&mut self, event: Event<'_>, context: &mut Context<'_, Ledger>) -> Result<(), End> {
        let is_over = self.line.connection.leaving().is_some();
        let milestone = match event {
            Event::Opening | Event::Writable | Event::Woken => None,
            Event::Connected => {
                if !is_over {
                    // HTTP has no handshake of its own.
                    self.line.life.reach(Phase::Requesting, context.now, context.world);
                }
                self.line.connection.connected(context)?;
                None
            }
            Event::Bytes(bytes) => self.line.connection.read(bytes, context)?,
            Event::Datagrams(_) | Event::Side(_) | Event::Timer | Event::Stop if is_over => None,
            Event::Datagrams(batch) => return self.datagrams(batch, context),
            Event::Side(Side::Bytes(bytes)) => return self.relayed(bytes, context),
            Event::Side(event) => return self.line.connection.side(&event, context),
            Event::Timer => return self.time(context),
            Event::Stop => {
                self.depart(None, context);
                self.line.life.finish(context.world);
                None
            }
            Event::HungUp { failure, words } => self.line.connection.hung_up(failure, words, context)?,
            Event::Closed { failure, words } => {
                self.line.connection.hung_up(failure, words, context)?;
                // A session that could not be begun, or an answer that nothing can come of any more.
                return Err((failure, words.to_owned()));
            }
        };
        self.arrive(milestone, context)
    }
}

impl<R: Role> Session<Ledger> for Client<R> {
    fn handle(&mut self, event: Event<'_>, context: &mut Context<'_, Ledger>) {
        if let Err((failure, words)) = self.hear(event, context)
            && self.line.connection.leaving().is_none()
        {
            self.depart(Some(failure), context);
            self.line.life.fail(failure, &words, context.now, context.world);
        }
        match self.line.connection.leaving() {
            Some(until) if until <= context.now => context.close(),
            Some(until) => context.set_timer(until),
            None => match self.next() {
                Some(next) => context.set_timer(next),
                None => context.clear_timer(),
            },
        }
    }
}
