//! Streams that are published to the origin, as FLV files without an end.

use weir_metrics::Moment;
use weir_origin::{
    HttpConnection, HttpLink, HttpRefusal, LinkEnd, Responder, Server, Sessions, StreamMessage, StreamState,
    StreamViewer, Worker,
};
use weir_rtmp::flv::{write_header, write_tag};
use weir_shard::Context;
use weir_web::{Message, PRODUCT, Request, reason};

/// What listens.
pub(super) static SERVER: Server = Server {
    name: "http-flv",
    secure_name: Some("https-flv"),
    alpn: &[],
    sessions: Sessions::OnWorkers(|shard, listener, tls| {
        shard
            .listen(listener, tls, |worker, peer| Box::new(HttpConnection::<FlvResponder>::new(worker, peer)))
    }),
};

/// What answers a connection.
struct FlvResponder {
    link: HttpLink,
    viewer: Option<StreamViewer>,
}

impl FlvResponder {
    fn refuse(&mut self, status: u16, context: &mut Context<'_, Worker>) {
        self.say(status, words(status), context);
    }

    /// Answers as a fault wants it, or not at all.
    fn refuse_by(&mut self, refusal: Option<HttpRefusal>, context: &mut Context<'_, Worker>) {
        let Some(refusal) = refusal else { return self.link.fall_silent(context) };
        let status = refusal.status;
        let answer = match &refusal.words {
            Some(said) => Message::response_in(status, said).field("Server", PRODUCT),
            None => words(status),
        };
        self.say(status, refusal.complete(answer), context);
    }

    /// Answers for the last time.
    fn say(&mut self, status: u16, answer: Message, context: &mut Context<'_, Worker>) {
        context.send(&answer.keep_alive(false).body(format!("{}\n", reason(status))).end());
        context.answered();
        self.link.after_answer(false, context.now);
    }

    /// Sends a viewer what waits for it.
    fn pump(&mut self, context: &mut Context<'_, Worker>) {
        let Some(viewer) = &mut self.viewer else { return };
        match viewer.pump(context) {
            StreamState::Goes => {}
            StreamState::Ended | StreamState::Close => self.link.end(LinkEnd::Close),
            StreamState::Reset => self.link.end(LinkEnd::Reset),
        }
    }
}

impl Responder for FlvResponder {
    // Nothing here takes a body.
    const MOST_BODY: usize = 0;
    const ANSWERS_A_TURN: usize = 16;

    fn new(link: HttpLink) -> Self {
        Self { link, viewer: None }
    }

    fn link(&mut self) -> &mut HttpLink {
        &mut self.link
    }

    fn answer(&mut self, request: &Request, context: &mut Context<'_, Worker>) {
        if let Err(refusal) = self.link.admit(request, context) {
            return self.refuse_by(refusal, context);
        }
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
        let viewer = StreamViewer::join(name, &mut self.link, request, head.len() as u64, frame, context);
        match viewer {
            Ok(viewer) => self.viewer = Some(viewer),
            Err(refusal) => return self.refuse_by(refusal, context),
        }
        context.send(&head);
        context.established();
        self.link.take_over();
        self.pump(context);
    }

    fn answer_bad_request(&mut self, status: u16, context: &mut Context<'_, Worker>) {
        self.refuse(status, context);
    }

    fn handle_writable(&mut self, context: &mut Context<'_, Worker>) {
        self.pump(context);
    }

    fn handle_woken(&mut self, context: &mut Context<'_, Worker>) {
        if let Some(viewer) = &mut self.viewer {
            viewer.on_woken();
        }
        self.pump(context);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_, Worker>) {
        self.pump(context);
    }

    fn deadline(&mut self, context: &mut Context<'_, Worker>) -> Option<Moment> {
        self.viewer.as_mut()?.poll_timeout(context)
    }

    fn leave(&mut self, context: &mut Context<'_, Worker>) {
        if let Some(viewer) = self.viewer.take() {
            viewer.leave(context);
        }
    }
}

/// The head of an answer in the usual words of its status.
fn words(status: u16) -> Message {
    Message::response(status).field("Server", PRODUCT)
}

/// A message as a tag.
fn frame(message: &StreamMessage<'_>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(message.body.len() + 15);
    write_tag(message.kind, message.timestamp, message.body, &mut bytes);
    bytes
}
