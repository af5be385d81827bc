//! The end of a link, and what it means for what a client has asked for there.

use super::HttpConnection;
use crate::http_links::LinkPhase;
use weir_metrics::Failure;
use weir_web::Ending;

/// What the end of a link means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEnd {
    /// Nothing is lost: the next request opens another. The session has to [stand by](weir_shard::Context::stand_by).
    Idle,
    /// The same, and it was the end of the answer under way.
    Whole,
    /// The request under way fails.
    Failed(Failure, String),
}

/// A link of a client that has ended.
#[derive(Clone, Copy, Debug)]
pub struct EndedLink {
    place: usize,
    phase: LinkPhase,
    is_used: bool,
    is_http2: bool,
}

impl HttpConnection {
    /// Its link has ended. What that means for each connection of the client, [`Self::on_closed`] says.
    pub fn end_link(&mut self) -> EndedLink {
        let link = &mut self.links.borrow_mut()[self.place];
        link.just_ended = true;
        let phase = std::mem::replace(&mut link.phase, LinkPhase::Down);
        EndedLink { place: self.place, phase, is_used: link.is_used, is_http2: link.http2.take().is_some() }
    }

    /// A link of the client has ended.
    pub fn on_closed(&mut self, ended: EndedLink, failure: Failure, words: &str) -> LinkEnd {
        if ended.phase == LinkPhase::Opening && ended.place == self.place {
            return LinkEnd::Failed(failure, words.to_owned());
        }
        if self.sent != Some(ended.place) {
            return LinkEnd::Idle;
        }
        let ending = match (ended.is_http2, self.is_answered) {
            (false, _) => Some(self.responses.ending()),
            (true, false) => Some(Ending::Unanswered),
            // Its stream has no last frame.
            (true, true) => None,
        };
        if self.next.is_some() {
            self.follow();
            return LinkEnd::Idle;
        }
        let is_peers = failure == Failure::ClosedByPeer;
        match ending {
            Some(Ending::Whole) if is_peers => {
                self.end();
                LinkEnd::Whole
            }
            // RFC 9112, section 9.3.1: a client may send a request again whose connection was closed before an answer.
            Some(Ending::Unanswered) if ended.is_used && self.repeats == 0 => {
                (self.sent, self.repeats) = (None, 1);
                LinkEnd::Idle
            }
            Some(ending @ (Ending::Unanswered | Ending::InHead)) if is_peers => {
                LinkEnd::Failed(failure, format!("the server closed the link {ending}"))
            }
            Some(ending) if is_peers => {
                let body = self.body;
                LinkEnd::Failed(failure, format!("the server closed the link after {body} bytes, {ending}"))
            }
            None if is_peers => {
                let body = self.body;
                let words =
                    format!("the server closed the link after {body} bytes, before the end of their stream");
                LinkEnd::Failed(failure, words)
            }
            _ => LinkEnd::Failed(failure, words.to_owned()),
        }
    }
}
