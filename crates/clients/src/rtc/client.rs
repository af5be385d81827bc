//! A client of WebRTC: the course of its session, the same for viewers and publishers. What it does once it has keys
//! is its role's, which sees no event.

use super::connection::{Connection, Keys, Milestone, Relayed};
use super::figures::{EARLY, STRANGE};
use crate::client_session::{ClientSession, End};
use crate::client_state::{ClientPhase, ClientState};
use crate::shard_recorder::ShardRecorder;
use std::net::SocketAddr;
use std::time::Duration;
use weir_metrics::common::{READS, RECEIVED};
use weir_metrics::{Failure, Moment};
use weir_rtc::Datagram;
use weir_shard::{Context, Datagrams, Edge, Incoming, Side};

/// Datagrams that come within this time are handled as one arrival: usually they are the packets of one picture.
const TOGETHER: Duration = Duration::from_millis(1);

/// Where a client stands, and its way to the server.
pub(super) struct Line {
    pub(super) state: ClientState,
    pub(super) connection: Connection,
}

/// What a client is there for. In each call, the time of the context is when it happened.
pub(super) trait Role {
    /// The keys are there.
    fn begin(
        &mut self,
        keys: &Keys,
        line: &mut Line,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End>;

    /// Whether that was so.
    fn has_begun(&self) -> bool;

    /// An RTP packet came from the server.
    fn rtp(&mut self, bytes: &mut [u8], line: &mut Line, context: &mut Context<'_, ShardRecorder>);

    /// A compound RTCP packet came from the server.
    fn rtcp(&mut self, bytes: &mut [u8], line: &mut Line, context: &mut Context<'_, ShardRecorder>);

    /// What has come, came together.
    fn settle(&mut self, _: &mut Line, _: &mut Context<'_, ShardRecorder>) {}

    /// Time has passed.
    fn handle_timeout(
        &mut self,
        line: &mut Line,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End>;

    /// A stretch that is judged begins or ends at this moment; what had come was read.
    fn edge(&mut self, _: Moment, _: &mut Line, _: &mut Context<'_, ShardRecorder>) {}

    /// When to call [`Self::handle_timeout`].
    fn poll_timeout(&self, line: &Line) -> Option<Moment>;

    /// The failure of a client that has keys and has waited too long for media.
    fn overdue(&self) -> Option<End> {
        None
    }

    /// Whether what has come lacks nothing but a keyframe, as far as can be told.
    fn lacks_only_a_keyframe(&self) -> bool {
        false
    }

    /// The session is lost, and another is sought: books what the end of one reveals, and begins as at first.
    fn begin_again(&mut self, line: &mut Line, context: &mut Context<'_, ShardRecorder>);

    /// The client is over: books what only the end reveals.
    fn depart(&mut self, failure: Option<Failure>, line: &mut Line, context: &mut Context<'_, ShardRecorder>);
}

/// One virtual client.
pub(super) struct Client<R> {
    line: Line,
    role: R,
}

impl<R: Role> Client<R> {
    pub(super) fn new(state: ClientState, connection: Connection, role: R) -> Self {
        Self { line: Line { state, connection }, role }
    }

    /// The connection has come further.
    fn arrive(
        &mut self,
        milestone: Option<Milestone>,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        match milestone {
            Some(Milestone::Consent) => {
                self.line.state.reach(ClientPhase::Waiting, context.now, context.world);
            }
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
    fn datagrams(
        &mut self,
        mut batch: Datagrams<'_>,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        let (mut received, read_at) = (0, context.now);
        let (mut began, mut outcome) = (None, Ok(()));
        while let Some(Incoming { arrived, source, bytes }) = batch.take_next().filter(|_| outcome.is_ok()) {
            if arrived.since(*began.get_or_insert(arrived)) > TOGETHER {
                self.role.settle(&mut self.line, context);
                began = Some(arrived);
            }
            context.now = arrived;
            received += bytes.len() as u64;
            if self.line.connection.comes_by_relay(source) {
                outcome = match self.line.connection.relayed_datagram(bytes, context) {
                    Ok(Relayed::Datagram(source, datagram)) => self.datagram(source, datagram, context),
                    Ok(Relayed::Nothing | Relayed::UsedUp) => Ok(()),
                    Err(end) => Err(end),
                };
            } else if !self.line.connection.is_relayed() {
                outcome = self.datagram(source, bytes, context);
            }
        }
        self.role.settle(&mut self.line, context);
        context.now = read_at;
        self.end_of_read(received, context);
        outcome
    }

    /// Bytes of a relay came.
    fn relayed(&mut self, mut bytes: &mut [u8], context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
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
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        let kind = Datagram::of(bytes);
        let is_media = matches!(kind, Datagram::Rtp | Datagram::Rtcp);
        if is_media && !self.line.connection.takes_media_of(source) {
            context.world.of(self.line.state.planned()).count(STRANGE, 1);
            return Ok(());
        }
        match kind {
            Datagram::Rtp if self.role.has_begun() => self.role.rtp(bytes, &mut self.line, context),
            Datagram::Rtcp if self.role.has_begun() => self.role.rtcp(bytes, &mut self.line, context),
            Datagram::Rtp | Datagram::Rtcp => context.world.of(self.line.state.planned()).count(EARLY, 1),
            Datagram::Stun | Datagram::Dtls => {
                // Media may stand right behind the end of the handshake.
                let milestone = self.line.connection.receive(source, bytes, context)?;
                self.arrive(milestone, context)?;
            }
            _ => context.world.of(self.line.state.planned()).count(STRANGE, 1),
        }
        Ok(())
    }

    /// What was read together has been looked at.
    fn end_of_read(&self, received: u64, context: &mut Context<'_, ShardRecorder>) {
        let recorder = context.world.of(self.line.state.planned());
        recorder.count(READS, 1);
        recorder.count(RECEIVED, received);
    }
}

impl<R: Role> ClientSession for Client<R> {
    fn state(&self) -> &ClientState {
        &self.line.state
    }

    fn state_mut(&mut self) -> &mut ClientState {
        &mut self.line.state
    }

    fn handle_connected(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        // HTTP has no handshake of its own.
        self.line.state.reach(ClientPhase::Requesting, context.now, context.world);
        self.line.connection.connected(context)
    }

    fn handle_input(&mut self, bytes: &[u8], context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let milestone = self.line.connection.read(bytes, context)?;
        self.arrive(milestone, context)
    }

    fn handle_datagrams(
        &mut self,
        datagrams: Datagrams<'_>,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        self.datagrams(datagrams, context)
    }

    fn handle_side(&mut self, event: Side<'_>, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        match event {
            Side::Bytes(bytes) => self.relayed(bytes, context),
            event => self.line.connection.side(&event, context),
        }
    }

    fn handle_timeout(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let milestone = self.line.connection.handle_timeout(context)?;
        self.arrive(milestone, context)?;
        self.role.handle_timeout(&mut self.line, context)
    }

    fn handle_edge(&mut self, edge: Edge, context: &mut Context<'_, ShardRecorder>) {
        self.role.edge(edge.at, &mut self.line, context);
    }

    fn handle_hunger(&mut self, context: &mut Context<'_, ShardRecorder>) {
        self.line.state.starve(context.now, context.world);
    }

    fn lacks_only_a_keyframe(&self) -> bool {
        self.role.lacks_only_a_keyframe()
    }

    fn overdue(&mut self, _: &mut Context<'_, ShardRecorder>) -> End {
        let Line { state, connection } = &self.line;
        let waits = matches!(state.phase(), ClientPhase::Waiting | ClientPhase::Opening);
        let known = waits.then(|| connection.overdue().or_else(|| self.role.overdue())).flatten();
        known.unwrap_or_else(|| {
            let (failure, words) = state.overdue();
            (failure, words.to_owned())
        })
    }

    fn handle_hung_up(
        &mut self,
        failure: Failure,
        words: &str,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        let milestone = self.line.connection.hung_up(failure, words, context)?;
        self.arrive(milestone, context)
    }

    fn handle_closed(
        &mut self,
        failure: Failure,
        words: &str,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        self.line.connection.hung_up(failure, words, context)?;
        // A session that could not be begun, or an answer that nothing can come of any more.
        Err((failure, words.to_owned()))
    }

    fn poll_timeout(&self, _: &Context<'_, ShardRecorder>) -> Option<Moment> {
        [self.line.connection.poll_timeout(), self.role.poll_timeout(&self.line)].into_iter().flatten().min()
    }

    fn begin_again(&mut self, context: &mut Context<'_, ShardRecorder>) {
        self.role.begin_again(&mut self.line, context);
        self.line.connection.begin_again(context);
    }

    fn leave(&mut self, failure: Option<Failure>, context: &mut Context<'_, ShardRecorder>) {
        self.role.depart(failure, &mut self.line, context);
        self.line.connection.depart(context);
    }

    fn lingers_until(&self) -> Option<Moment> {
        self.line.connection.leaving()
    }
}
