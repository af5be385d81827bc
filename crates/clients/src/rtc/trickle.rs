//! Candidates that are sent after the offer, by PATCH, where a server of WHEP or WHIP takes them (RFC 9725 section
//! 4.3.1). Other servers get them in the offer.

use super::request::Request;
use url::Url;
use weir_rtc::signalling::http::Patched;
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
    responses: Responses,
    answer: Option<Response>,
}

/// What is to be done with the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Wait.
    Wait,
    /// Connect again, for another patch.
    Again,
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
            responses: Responses::new(),
            answer: None,
        }
    }

    /// There are candidates to send. Returns whether a link has to be opened for them.
    pub(super) fn request(&mut self) -> bool {
        self.again = self.is_asking;
        !std::mem::replace(&mut self.is_asking, true)
    }

    /// Whether the link is for a patch.
    pub(super) fn is_asking(&self) -> bool {
        self.is_asking
    }

    /// The patch.
    pub(super) fn patch(&mut self, request: &Request, resource: &Url, fragment: &str) -> Vec<u8> {
        (self.responses, self.answer) = (Responses::asked(), None);
        request.patch(resource, self.entity_tag.as_deref(), fragment)
    }

    /// Bytes of the answer came.
    pub(super) fn read(&mut self, mut bytes: &[u8]) -> Next {
        loop {
            match self.responses.take(&mut bytes) {
                Ok(Some(Part::Head(response))) => self.answer = Some(response),
                Ok(Some(Part::Piece(_))) => {}
                Ok(Some(Part::End)) => return self.judge(),
                // What goes on to the end of the link is not waited for.
                Ok(None) if self.responses.ending() == Ending::Whole => return self.judge(),
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
        match Patched::of(answer.status) {
            Patched::Taken if std::mem::take(&mut self.again) => Next::Again,
            Patched::Taken => self.over(true),
            Patched::WrongTag if is_new && !std::mem::replace(&mut self.has_replaced_tag, true) => {
                Next::Again
            }
            Patched::WrongTag | Patched::NotSupported | Patched::Failed(_) => self.over(false),
        }
    }

    fn over(&mut self, taken: bool) -> Next {
        (self.is_asking, self.again) = (false, false);
        Next::Over { taken }
    }
}
