//! What a protocol writes of a client, and the one driver that gives every client its phases, its timer and its end.

use crate::client_state::{ClientPhase, ClientState};
use crate::reconnect::{Attempt, Comeback};
use crate::shard_recorder::ShardRecorder;
use std::time::Duration;
use weir_metrics::{Failure, Moment};
use weir_shard::{Context, Datagrams, Edge, Event, Session, Side};

/// How a client fails, and what the server or the system said to it.
pub type End = (Failure, String);

/// One virtual client, as its protocol writes it: those methods whose events it cares about. What it returns as an error is
/// how it fails; the driver books that, and closes the link.
pub trait ClientSession {
    /// Its phase and deadlines.
    fn state(&self) -> &ClientState;

    /// The same, to be changed.
    fn state_mut(&mut self) -> &mut ClientState;

    /// The link is being established.
    fn handle_opening(&mut self, _: &mut Context<'_, ShardRecorder>) {}

    /// The link is there.
    fn handle_connected(&mut self, _: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        Ok(())
    }

    /// A read has brought this; nothing, if it was asked for and nothing waited.
    fn handle_input(&mut self, _: &[u8], _: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        Ok(())
    }

    /// Datagrams came.
    fn handle_datagrams(&mut self, _: Datagrams<'_>, _: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        Ok(())
    }

    /// Something happened on the link beside its own.
    fn handle_side(&mut self, _: Side<'_>, _: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        Ok(())
    }

    /// The link takes bytes again.
    fn handle_writable(&mut self, _: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        Ok(())
    }

    /// A moment of [`Self::poll_timeout`] has come. Those of its state are the driver's.
    fn handle_timeout(&mut self, _: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        Ok(())
    }

    /// A stretch that is judged begins or ends; what waited has been read.
    fn handle_edge(&mut self, _: Edge, _: &mut Context<'_, ShardRecorder>) {}

    /// A viewer has got no media for its timeout. Some may wait unread.
    fn handle_hunger(&mut self, context: &mut Context<'_, ShardRecorder>) {
        context.pull();
    }

    /// Whether what has come lacks nothing but a keyframe, as far as can be told.
    fn lacks_only_a_keyframe(&self) -> bool {
        false
    }

    /// How it fails when its phase has lasted too long.
    fn overdue(&mut self, _: &mut Context<'_, ShardRecorder>) -> End {
        let (failure, words) = self.state().overdue();
        (failure, words.to_owned())
    }

    /// The run wants it to end.
    fn handle_stop(&mut self, _: &mut Context<'_, ShardRecorder>) -> Result<Stop, End> {
        Ok(Stop::Now)
    }

    /// The link has ended, and datagrams or another link are left.
    fn handle_hung_up(&mut self, _: Failure, _: &str, _: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        Ok(())
    }

    /// The link has ended.
    fn handle_closed(
        &mut self,
        failure: Failure,
        words: &str,
        _: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        Err((failure, said(words)))
    }

    /// Called after every event that did not end it: what is to be done whatever has happened.
    fn after_event(&mut self, _: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        Ok(())
    }

    /// When to call [`Self::handle_timeout`], if not for its state.
    fn poll_timeout(&self, _: &Context<'_, ShardRecorder>) -> Option<Moment> {
        None
    }

    /// Its link is lost, and it is to come back ([`Workload::returning`](crate::Workload::returning)): forgets all that was said on
    /// it, as if it had just begun. What it has counted stays, and so does a player that goes on meanwhile:
    /// [`Self::handle_timeout`] is called without a link as well.
    fn begin_again(&mut self, _: &mut Context<'_, ShardRecorder>) {}

    /// The client is about to end, and to be recorded: sends what its protocol ends with, and records what only the end
    /// reveals.
    fn leave(&mut self, _: Option<Failure>, _: &mut Context<'_, ShardRecorder>) {}

    /// Until when it needs its links after its end, for a last request whose response is awaited.
    fn lingers_until(&self) -> Option<Moment> {
        None
    }

    /// Lets go of its links.
    fn close(&mut self, context: &mut Context<'_, ShardRecorder>) {
        context.close();
    }
}

/// What there is to say of the end of a link that ended with these words.
pub(crate) fn said(words: &str) -> String {
    if words.is_empty() { "the server closed the link".to_owned() } else { words.to_owned() }
}

/// When a client ends that is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// At once.
    Now,
    /// When what waits has been read: with the next [`ClientSession::handle_input`].
    WhenRead,
    /// When it says so itself, by [`ClientState::finish`].
    WhenDone,
}

/// A client on a shard.
#[derive(Debug)]
pub(crate) struct Driver<C> {
    client: C,
    /// Whether it ends with the next read.
    ends_when_read: bool,
    /// Whether it was asked to end.
    is_stopping: bool,
    /// How it comes back when its link is lost, if it does.
    comeback: Option<Box<Comeback>>,
}

impl<C: ClientSession> Driver<C> {
    pub(crate) fn new(client: C, comeback: Option<Box<Comeback>>) -> Self {
        Self { client, ends_when_read: false, is_stopping: false, comeback }
    }

    /// What there is to do of a client without a link: its player goes on, and its next attempt comes.
    fn wait(&mut self, event: &Event<'_>, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        match event {
            Event::Timer => {
                self.client.handle_timeout(context)?;
                let now = context.now;
                let Some(comeback) = &mut self.comeback else { return Ok(()) };
                // How long an attempt may take is the client's own to say: each of its phases has a deadline.
                if let Some(Attempt::Connect(endpoint)) = comeback.attempts.attempt(now, Duration::ZERO) {
                    self.client.state_mut().attempt(now);
                    self.client.handle_opening(context);
                    context.reopen(endpoint);
                }
                Ok(())
            }
            // What is still said of the link that is lost.
            _ => Ok(()),
        }
    }

    fn dispatch(&mut self, event: Event<'_>, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        if let Some(comeback) = self.comeback.as_ref().filter(|_| !self.client.state().is_over()) {
            if comeback.attempts.is_away() && matches!(event, Event::Stop) {
                // It leaves by plan before it is back.
                self.finish(context);
                return Ok(());
            }
            if comeback.attempts.waits() {
                return self.wait(&event, context);
            }
        }
        let client = &mut self.client;
        match event {
            Event::Connected => client.handle_connected(context),
            Event::Bytes(bytes) => {
                let outcome = client.handle_input(bytes, context);
                if outcome.is_ok() && self.ends_when_read {
                    self.finish(context);
                }
                outcome
            }
            Event::HungUp { failure, words } => client.handle_hung_up(failure, words, context),
            Event::Closed { failure, words } => client.handle_closed(failure, words, context),
            // The last request of a client may need its link; other events are of no use to one that is over.
            _ if client.state().is_over() => Ok(()),
            Event::Opening => {
                client.handle_opening(context);
                Ok(())
            }
            Event::Datagrams(datagrams) => client.handle_datagrams(datagrams, context),
            Event::Side(event) => client.handle_side(event, context),
            Event::Writable => client.handle_writable(context),
            Event::Timer => {
                client.handle_timeout(context)?;
                let (state, now) = (client.state(), context.now);
                if state.is_hungry(now) {
                    client.handle_hunger(context);
                } else if state.deadline().is_some_and(|deadline| deadline <= now) {
                    let may_wait = client.lacks_only_a_keyframe();
                    if !may_wait || !client.state_mut().waits_on(now, context.world) {
                        return Err(client.overdue(context));
                    }
                }
                Ok(())
            }
            Event::Edge(edge) => {
                client.handle_edge(edge, context);
                Ok(())
            }
            Event::Woken => Ok(()),
            Event::Stop => {
                // Asked again, it ends without what it waits for.
                let is_last = std::mem::replace(&mut self.is_stopping, true);
                match client.handle_stop(context)? {
                    _ if is_last => self.finish(context),
                    Stop::Now => self.finish(context),
                    Stop::WhenRead => {
                        self.ends_when_read = true;
                        context.pull();
                    }
                    Stop::WhenDone => {}
                }
                Ok(())
            }
        }
    }

    fn finish(&mut self, context: &mut Context<'_, ShardRecorder>) {
        if !self.client.state().is_over() {
            self.client.leave(None, context);
            self.client.state_mut().finish(context.now, context.world);
        }
    }

    fn fail(&mut self, (failure, words): &End, context: &mut Context<'_, ShardRecorder>) {
        if self.client.state().is_over() || self.comes_back(*failure, words, context) {
            return;
        }
        let (failure, words) = match &self.comeback {
            Some(comeback) => comeback.verdict(*failure, words),
            None => (*failure, words.clone()),
        };
        self.client.leave(Some(failure), context);
        self.client.state_mut().fail(failure, &words, context.now, context.world);
    }

    /// Whether a client that has lost its link, or not had it again, is to try again. One that has not played has nothing to
    /// come back to.
    fn comes_back(
        &mut self,
        failure: Failure,
        words: &str,
        context: &mut Context<'_, ShardRecorder>,
    ) -> bool {
        let Some(comeback) = &mut self.comeback else { return false };
        let has_played = self.client.state().has_begun();
        if self.ends_when_read || !has_played || !comeback.lost(failure, words, context.now) {
            return false;
        }
        self.client.begin_again(context);
        self.client.state_mut().begin_again(context.now, context.world);
        context.stand_by();
        true
    }
}

impl<C: ClientSession> Session<ShardRecorder> for Driver<C> {
    fn handle(&mut self, event: Event<'_>, context: &mut Context<'_, ShardRecorder>) {
        if let Err(end) = self.dispatch(event, context) {
            self.fail(&end, context);
        }
        if !self.client.state().is_over()
            && let Err(end) = self.client.after_event(context)
        {
            self.fail(&end, context);
        }
        if let Some(comeback) = &mut self.comeback
            && comeback.attempts.is_away()
            && self.client.state().phase() == ClientPhase::Playing
        {
            comeback.attempts.back(context.now);
        }
        let next = if self.client.state().is_over() {
            match self.client.lingers_until() {
                Some(until) if until > context.now => Some(until),
                _ => return self.client.close(context),
            }
        } else {
            let deadline = match self.comeback.as_ref().filter(|comeback| comeback.attempts.waits()) {
                Some(comeback) => comeback.attempts.deadline(),
                None => self.client.state().deadline(),
            };
            [deadline, self.client.poll_timeout(context)].into_iter().flatten().min()
        };
        context.set_timer(next);
    }
}
