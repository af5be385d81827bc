//! Streams that are published to the origin, as FLV files without an end.

use std::net::SocketAddr;
use std::time::Duration;
use weir_metrics::{Failure, Moment};
use weir_origin::{Server, Sessions, StreamMessage, StreamState, StreamViewer, Worker};
use weir_rtmp::flv::{write_header, write_tag};
use weir_shard::{Context, Session};
use weir_web::{Message, PRODUCT, Request, Requests, reason};

/// How long a peer may take to go when the kernel has taken the last answer.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// What listens.
pub(super) static SERVER: Server = Server {
    name: "http-flv",
    secure_name: Some("https-flv"),
    alpn: &[],
    sessions: Sessions::OnWorkers(|shard, listener, tls| {
        shard.listen(listener, tls, |worker, peer| {
            worker.accept();
            Box::new(FlvSession { peer, phase: HttpFlvPhase::Asking(Requests::new(0)) })
        })
    }),
};

/// A session of an HTTP connection.
struct FlvSession {
    peer: SocketAddr,
    phase: HttpFlvPhase,
}

enum HttpFlvPhase {
    /// Has not asked for a stream yet.
    Asking(Requests),
    Playing(StreamViewer),
    /// Was answered; is closed then.
    Leaving(Moment),
}

impl FlvSession {
    fn read(&mut self, mut bytes: &[u8], context: &mut Context<'_, Worker>) {
        // A viewer that plays or leaves sends nothing that matters.
        let HttpFlvPhase::Asking(requests) = &mut self.phase else { return };
        match requests.take(&mut bytes) {
            Ok(Some(request)) => self.answer(&request, context),
            Ok(None) => {}
            Err(bad) => self.refuse(bad.status(), context),
        }
    }

    fn answer(&mut self, request: &Request, context: &mut Context<'_, Worker>) {
        if request.method != "GET" {
            return self.refuse(405, context);
        }
        let path = request.segments().join("/");
        let Some(name) = path.strip_suffix(".flv").filter(|name| !name.is_empty()) else {
            return self.refuse(404, context);
        };
        let mut head = Message::response(200)
            .field("Server", PRODUCT)
            .field("Content-Type", "video/x-flv")
            .field("Connection", "close")
            .end();
        write_header(true, true, &mut head);
        match StreamViewer::join(name, self.peer, head.len() as u64, frame, context) {
            Some(viewer) => {
                context.send(&head);
                context.established();
                self.phase = HttpFlvPhase::Playing(viewer);
                self.pump(context);
            }
            None => self.refuse(404, context),
        }
    }

    fn refuse(&mut self, status: u16, context: &mut Context<'_, Worker>) {
        let answer = Message::response(status).field("Server", PRODUCT).keep_alive(false);
        context.send(&answer.body(format!("{}\n", reason(status))).end());
        context.answered();
        self.phase = HttpFlvPhase::Leaving(context.now + CLOSE_TIMEOUT);
    }

    /// Sends a viewer what waits for it.
    fn pump(&mut self, context: &mut Context<'_, Worker>) {
        let HttpFlvPhase::Playing(viewer) = &mut self.phase else { return };
        match viewer.pump(context) {
            StreamState::Goes => {}
            StreamState::Ended | StreamState::Close => self.end(context),
            StreamState::Reset => {
                self.leave(context);
                context.reset();
            }
        }
    }

    fn end(&mut self, context: &mut Context<'_, Worker>) {
        self.leave(context);
        context.close();
    }

    fn leave(&mut self, context: &mut Context<'_, Worker>) {
        if let HttpFlvPhase::Playing(viewer) =
            std::mem::replace(&mut self.phase, HttpFlvPhase::Leaving(context.now))
        {
            viewer.leave(context);
        }
    }
}

impl Session<Worker> for FlvSession {
    fn handle_input(&mut self, bytes: &[u8], context: &mut Context<'_, Worker>) {
        self.read(bytes, context);
    }

    fn handle_writable(&mut self, context: &mut Context<'_, Worker>) {
        self.pump(context);
    }

    fn handle_woken(&mut self, context: &mut Context<'_, Worker>) {
        if let HttpFlvPhase::Playing(viewer) = &mut self.phase {
            viewer.on_woken();
        }
        self.pump(context);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_, Worker>) {
        match &self.phase {
            HttpFlvPhase::Leaving(at) if *at <= context.now => context.close(),
            _ => self.pump(context),
        }
    }

    fn handle_stop(&mut self, context: &mut Context<'_, Worker>) {
        self.end(context);
    }

    fn handle_closed(&mut self, _: Failure, _: &str, context: &mut Context<'_, Worker>) {
        self.leave(context);
    }

    fn after_event(&mut self, context: &mut Context<'_, Worker>) {
        let next = match &mut self.phase {
            HttpFlvPhase::Playing(viewer) => viewer.poll_timeout(context),
            HttpFlvPhase::Leaving(at) => Some(*at),
            HttpFlvPhase::Asking(_) => None,
        };
        context.set_timer(next);
    }
}

/// A message as a tag.
fn frame(message: &StreamMessage<'_>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(message.body.len() + 15);
    write_tag(message.kind, message.timestamp, message.body, &mut bytes);
    bytes
}
