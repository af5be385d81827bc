//! How a connection ends: too late, by the server, or by a goodbye.

use super::{Connection, Milestone};
use crate::client_session::End;
use crate::shard_recorder::ShardRecorder;
use std::sync::Arc;
use std::time::Duration;
use weir_metrics::{Failure, Moment};
use weir_rtc::transport::Output;
use weir_shard::Context;

/// How long the server may take to receive the end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

impl Connection {
    /// The failure of a client that has waited too long to receive or send media; `None` if its connection stands, so
    /// that something else is the cause.
    pub(in crate::rtc) fn overdue(&self) -> Option<End> {
        match (self.has_keys, self.path, &self.relay) {
            (true, _, _) => None,
            (false, None, Some(relay)) => Some(relay.overdue()),
            (false, None, None) => {
                let names = self.negotiation.as_ref().and_then(|it| it.names.words());
                let words = "no candidate of the server answered a connectivity check in time";
                let words = names.map_or(words.to_owned(), |names| format!("{words}; {names}"));
                Some((Failure::IceTimeout, words))
            }
            (false, Some(_), _) => {
                let alert = self.negotiation.as_ref().and_then(|it| it.transport.unproven_alert());
                Some(match alert {
                    None => (Failure::DtlsTimeout, "the DTLS handshake did not end in time".to_owned()),
                    Some((code, name)) => (
                        Failure::DtlsFailed,
                        format!(
                            "the DTLS handshake did not end in time; the server's address has sent the alert {code} \
                             ({name}), which nothing proves to be the server's. A server with an RSA certificate needs an ECDSA one"
                        ),
                    ),
                })
            }
        }
    }

    /// The link has ended; whether that is the end of the client.
    pub(in crate::rtc) fn hung_up(
        &mut self,
        failure: Failure,
        words: &str,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<Option<Milestone>, End> {
        if self.leaving.is_some() {
            self.leaving = Some(context.now);
            return Ok(None);
        }
        if let Some(trickle) = self.trickle.as_mut().filter(|trickle| trickle.is_asking()) {
            let next = trickle.end();
            self.on_trickle_answer(next, context)?;
            return Ok(None);
        }
        let Some(dialogue) = &mut self.dialogue else { return Ok(None) };
        match dialogue.end(&self.request) {
            Some(heard) => self.on_signalling(heard?, context),
            None => {
                let words =
                    if words.is_empty() { "the server closed the link of the signalling" } else { words };
                // A server whose publisher leaves says so by closing the WebSocket, the association or the link,
                // whichever it comes to first: one ending, not three.
                let has_ended = failure == Failure::ClosedByPeer && self.has_keys;
                Err((if has_ended { Failure::StreamEnded } else { failure }, words.to_owned()))
            }
        }
    }

    /// The session is lost: says what can be said of its end without a link, and begins another.
    pub(in crate::rtc) fn begin_again(&mut self, context: &mut Context<'_, ShardRecorder>) {
        let now = context.now;
        self.look(context);
        self.close_association(context);
        context.close_side();
        context.let_datagrams_wait(false);
        let (terms, request) = (Arc::clone(&self.terms), Arc::clone(&self.request));
        *self = Self::new(self.planned, terms, request, self.endpoint.clone(), now);
    }

    /// Closes what stands between the two ends, and gives back what a relay has.
    fn close_association(&mut self, context: &mut Context<'_, ShardRecorder>) {
        if let Some(negotiation) = &mut self.negotiation {
            negotiation.transport.close();
        }
        // What it still sends is close_notify; failures before it were reported.
        while let Some(output) = self.negotiation.as_mut().and_then(|it| it.transport.poll()) {
            if let Output::Send { destination, datagram } = output {
                self.deliver(destination, &datagram, context);
            }
        }
        if let Some(relay) = &mut self.relay {
            relay.end(context.now);
        }
        self.flush_relay(context);
    }

    /// Ends the session with the server. The client is over when the server has answered, or after [`CLOSE_TIMEOUT`].
    pub(in crate::rtc) fn depart(&mut self, context: &mut Context<'_, ShardRecorder>) {
        let now = context.now;
        self.look(context);
        self.close_association(context);
        let mut words = Vec::new();
        if let Some(mut dialogue) = self.dialogue.take() {
            dialogue.goodbye(&mut words);
        }
        self.send(&words, context);
        (self.transport_due, self.spare) = (None, None);
        let resource = self.resource.as_ref();
        match resource.and_then(|resource| self.request.endpoint_of(resource, &self.endpoint)) {
            Some(endpoint) => {
                self.leaving = Some(now + CLOSE_TIMEOUT);
                context.reopen(endpoint);
            }
            None => self.leaving = Some(now),
        }
    }

    /// The moment until which the server may answer the end of the session, once it was sent.
    pub(in crate::rtc) fn leaving(&self) -> Option<Moment> {
        self.leaving
    }
}
