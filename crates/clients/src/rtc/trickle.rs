//! What is sent after the offer, by PATCH, where a server of WHEP or WHIP takes that: candidates (RFC 9725 section 4.3.2), which other
//! servers get in the offer, and ICE restarts (section 4.3.3).

use super::request::Request;
use url::Url;
use weir_rtc::signalling::http::{PatchOutcome, Restarted, restarted};
use weir_rtc::transport::NewCredentials;
use weir_web::{Ending, Part, Response, Responses};

/// The candidates, and how far their transmission has come.
pub(super) struct Trickle {
    /// The tag of the session as the server last gave it.
    entity_tag: Option<String>,
    /// The link is for a patch now.
    is_asking: bool,
    /// There is more to tell once that is over.
    again: bool,
    /// A tag that was wrong has been replaced once.
    has_replaced_tag: bool,
    /// A restart is asked for with these credentials, now or by the next patch.
    restart: Option<Box<NewCredentials>>,
    responses: Responses,
    answer: Option<Response>,
    /// The body of the answer, as much of it as is of use.
    body: Vec<u8>,
}

/// The longest body of an answer to a restart: 32 candidates of 100 bytes are less.
const LONGEST_ANSWER: usize = 16 * 1024;

/// What is to be done with the link.
pub(super) enum Next {
    /// Wait.
    Wait,
    /// Connect again, for another patch.
    Again,
    /// It is of no more use, and ICE begins again with these credentials of ours and what the server has said.
    Restart(Box<NewCredentials>, Restarted),
    /// It is of no more use; nor is trickling, if the server does not take it.
    Over {
        /// Whether it takes patches.
        taken: bool,
    },
}

impl Trickle {
    pub(super) fn new(entity_tag: Option<String>) -> Self {
        Self {
            entity_tag,
            is_asking: false,
            again: false,
            has_replaced_tag: false,
            restart: None,
            responses: Responses::new(),
            answer: None,
            body: Vec::new(),
        }
    }

    /// There are candidates to send. Returns whether a link has to be opened for them.
    pub(super) fn request(&mut self) -> bool {
        self.again = self.is_asking;
        !std::mem::replace(&mut self.is_asking, true)
    }

    /// The path is lost: a restart is to be asked for. Returns whether a link has to be opened for that.
    pub(super) fn request_restart(&mut self) -> bool {
        self.restart = Some(Box::default());
        self.request()
    }

    /// The credentials of the restart that is asked for.
    pub(super) fn restart(&self) -> Option<&NewCredentials> {
        self.restart.as_deref()
    }

    /// Whether the link is for a patch.
    pub(super) fn is_asking(&self) -> bool {
        self.is_asking
    }

    /// The patch.
    pub(super) fn patch(&mut self, request: &Request, resource: &Url, fragment: &str) -> Vec<u8> {
        (self.responses, self.answer) = (Responses::asked(), None);
        self.body.clear();
        // "A WHIP client sending a PATCH request for performing an ICE restart MUST contain an If-Match header field with a field-value of *".
        let tag = if self.restart.is_some() { Some("*") } else { self.entity_tag.as_deref() };
        request.patch(resource, tag, fragment)
    }

    /// Bytes of the answer came.
    pub(super) fn read(&mut self, mut bytes: &[u8]) -> Next {
        loop {
            match self.responses.take(&mut bytes) {
                Ok(Some(Part::Head(response))) => self.answer = Some(response),
                Ok(Some(Part::Piece(piece))) => {
                    let room = LONGEST_ANSWER - self.body.len();
                    self.body.extend_from_slice(&piece[..piece.len().min(room)]);
                }
                Ok(Some(Part::End)) => return self.judge(),
                // What goes on to the end of the link is not waited for, unless it is of use.
                Ok(None) if self.responses.ending() == Ending::Whole && self.restart.is_none() => {
                    return self.judge();
                }
                Ok(None) => return Next::Wait,
                // Nothing depends on the answer: the session fails by its media or not at all.
                Err(_) => return self.over(false),
            }
        }
    }

    /// The link has ended.
    pub(super) fn end(&mut self) -> Next {
        if self.answer.is_some() { self.judge() } else { self.over(false) }
    }

    fn judge(&mut self) -> Next {
        let Some(answer) = self.answer.take() else { return Next::Wait };
        let tag = answer.fields.get("etag");
        let is_new = tag.is_some_and(|tag| self.entity_tag.as_deref() != Some(tag));
        if let Some(tag) = tag {
            self.entity_tag = Some(tag.to_owned());
        }
        // Whether this answer is that to the restart, or the restart waits for the link.
        if let Some(ours) = self.restart.take_if(|_| !self.again) {
            let answered = (answer.status == 200).then(|| restarted(&String::from_utf8_lossy(&self.body)));
            self.is_asking = false;
            return match answered.flatten() {
                Some(theirs) => Next::Restart(ours, theirs),
                // The session goes on without: it is lost with its path, or not at all.
                None => Next::Over { taken: true },
            };
        }
        match PatchOutcome::of(answer.status) {
            PatchOutcome::Taken if std::mem::take(&mut self.again) => Next::Again,
            PatchOutcome::Taken => self.over(true),
            PatchOutcome::WrongTag if is_new && !std::mem::replace(&mut self.has_replaced_tag, true) => {
                Next::Again
            }
            PatchOutcome::WrongTag | PatchOutcome::NotSupported | PatchOutcome::Failed(_) => self.over(false),
        }
    }

    fn over(&mut self, taken: bool) -> Next {
        (self.is_asking, self.again) = (false, false);
        Next::Over { taken }
    }
}
