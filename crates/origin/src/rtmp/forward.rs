//! A stream of ours, published again on another RTMP server.

use super::framing::{CHUNK_SIZE, rewriter};
use crate::forward::{Forwarding, Route};
use crate::viewer::{Standing, Viewer, Watcher};
use crate::worker::Worker;
use std::time::Duration;
use weir_metrics::{Failure, Moment};
use weir_rtmp::{Client, ClientEvent, ClientOptions};
use weir_shard::{Context, Endpoint, Session, Shard};

/// From the connection to the other server's consent.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The session of one connection to another server.
pub(super) struct ForwardSession {
    forwarding: Forwarding,
    client: Client,
    deadline: Moment,
    viewer: Option<Viewer>,
    since: Option<Moment>,
}

/// Begins what is due of what the sessions asked for; says when the next is.
pub(crate) fn begin_due(shard: &mut Shard<Worker>, now: Moment) -> Option<Moment> {
    if shard.world.forwardings.is_empty() {
        return None;
    }
    let world = &mut shard.world;
    let forwardings = std::mem::take(&mut world.forwardings);
    let (due, later): (Vec<_>, Vec<_>) = forwardings
        .into_iter()
        .filter(|forwarding| world.is_under_way(forwarding.publication))
        .partition(|forwarding| forwarding.not_before <= now);
    world.forwardings = later;
    for forwarding in due {
        let settings = shard.world.settings().clone();
        let route = &settings.routes[forwarding.route];
        let address = route.addresses[forwarding.tries as usize % route.addresses.len()];
        let endpoint = Endpoint::tcp(address);
        let session = ForwardSession::new(forwarding, route, now);
        // A session that got no link knows, and has asked for the next try.
        let _ = shard.open(&endpoint, Box::new(session));
    }
    shard.world.forwardings.iter().map(|forwarding| forwarding.not_before).min()
}

impl ForwardSession {
    fn new(forwarding: Forwarding, route: &Route, now: Moment) -> Self {
        let (app, stream) = route.destination(&forwarding.name);
        let url = format!("{}/{app}", route.server);
        let options = ClientOptions { chunk_size: CHUNK_SIZE, ..ClientOptions::publish(url, app, stream) };
        let seed = now.as_nanos();
        let client = Client::new(options, seed);
        Self { forwarding, client, deadline: now + CONNECT_TIMEOUT, viewer: None, since: None }
    }

    fn read(&mut self, bytes: &[u8], context: &mut Context<'_, Worker>) {
        let (mut begins, mut refused) = (false, None);
        let outcome = self.client.input(bytes, &mut |event| match event {
            ClientEvent::Publishing => begins = true,
            ClientEvent::Status(status) if status.is_error() => {
                refused = Some(format!("{} {}", status.code, status.description));
            }
            _ => {}
        });
        if let Some(words) = refused {
            return self.end(words.trim(), context);
        }
        if outcome.is_err() {
            return self.end("it does not speak RTMP", context);
        }
        self.send_output(context);
        if begins && self.viewer.is_none() {
            self.begin(context);
        }
    }

    fn begin(&mut self, context: &mut Context<'_, Worker>) {
        let Some(framing) = self.client.framing() else { return };
        if !context.world.is_under_way(self.forwarding.publication) {
            return self.end("", context);
        }
        self.since = Some(context.now);
        let rewrite = || rewriter(framing, true);
        let viewer =
            Viewer::join(&Watcher::Forward, &self.forwarding.name, Some(rewrite()), rewrite, context);
        self.viewer = Some(viewer);
        self.pump(context);
    }

    fn pump(&mut self, context: &mut Context<'_, Worker>) {
        let Some(viewer) = &mut self.viewer else { return };
        if viewer.pump(context) != Standing::Same {
            self.client.close();
            self.send_output(context);
            self.end("", context);
        }
    }

    fn send_output(&mut self, context: &mut Context<'_, Worker>) {
        let words = std::mem::take(self.client.output());
        match &mut self.viewer {
            _ if words.is_empty() => {}
            Some(viewer) => viewer.send(&words, context),
            None => context.send(&words),
        }
    }

    /// Ends this connection; asks for another one if the publication goes on, and says why.
    fn end(&mut self, words: &str, context: &mut Context<'_, Worker>) {
        if let Some(viewer) = self.viewer.take() {
            viewer.leave(context);
        }
        context.close();
        if context.world.is_under_way(self.forwarding.publication) {
            let settings = context.world.settings().clone();
            let route = &settings.routes[self.forwarding.route];
            if let Some(trouble) = self.forwarding.trouble(route, self.since.is_some(), words) {
                settings.report_trouble(trouble);
            }
            let again = self.forwarding.again(self.since, context.now);
            context.world.forwardings.push(again);
        }
    }
}

impl Session<Worker> for ForwardSession {
    fn handle_connected(&mut self, context: &mut Context<'_, Worker>) {
        self.send_output(context);
    }

    fn handle_input(&mut self, bytes: &[u8], context: &mut Context<'_, Worker>) {
        self.read(bytes, context);
    }

    fn handle_writable(&mut self, context: &mut Context<'_, Worker>) {
        self.pump(context);
    }

    fn handle_woken(&mut self, context: &mut Context<'_, Worker>) {
        if let Some(viewer) = &mut self.viewer {
            viewer.woken();
        }
        self.pump(context);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_, Worker>) {
        if self.viewer.is_none() {
            self.end("it did not answer within 10 s", context);
        } else {
            self.pump(context);
        }
    }

    fn handle_stop(&mut self, context: &mut Context<'_, Worker>) {
        self.end("", context);
    }

    fn handle_closed(&mut self, _: Failure, words: &str, context: &mut Context<'_, Worker>) {
        self.end(if words.is_empty() { "it closed the connection" } else { words }, context);
    }

    fn after_event(&mut self, context: &mut Context<'_, Worker>) {
        let deadline = match &mut self.viewer {
            Some(viewer) => viewer.deadline(context.world, context.now),
            None => Some(self.deadline),
        };
        context.set_timer(deadline);
    }
}
