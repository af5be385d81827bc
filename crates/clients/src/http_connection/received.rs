//! What comes of an answer, by either version of HTTP.

use super::HttpConnection;
use crate::http_answer::{Answer, Piece};
use weir_metrics::Failure;
use weir_web::http2::{Http2Error, Http2Failure, Http2Part};
use weir_web::{Part, Response};

/// How often one request is sent again because servers did not begin with it, or went away: as often as Chromium does it.
const MOST_REPEATS: u32 = 2;

/// What has come of the answer under way.
pub(super) enum AnswerProgress<'a> {
    Head(Response),
    Piece(Piece<'a>),
    End,
    More,
    Failed(Answer<'a>),
}

impl HttpConnection {
    /// The next of the answer under way, on the link that it was asked for on.
    pub(super) fn receive<'a>(&mut self, place: usize, bytes: &mut &'a [u8]) -> AnswerProgress<'a> {
        let mut links = self.links.borrow_mut();
        let Some(http2) = &mut links[place].http2 else {
            self.is_answered |= !bytes.is_empty();
            return match self.responses.take(bytes) {
                Ok(Some(Part::Head(response))) => AnswerProgress::Head(response),
                Ok(Some(Part::Piece(piece))) => AnswerProgress::Piece(Piece::Borrowed(piece)),
                Ok(Some(Part::End)) => AnswerProgress::End,
                Ok(None) => AnswerProgress::More,
                Err(error) => {
                    AnswerProgress::Failed(Answer::Failed(Failure::MalformedInput, error.to_string()))
                }
            };
        };
        let part = http2.poll(self.place);
        self.is_answered |= matches!(part, Ok(Some(_)));
        drop(links);
        match part {
            Ok(Some(Http2Part::Head(response))) => AnswerProgress::Head(response),
            Ok(Some(Http2Part::Piece(piece))) => AnswerProgress::Piece(Piece::Shared(piece)),
            Ok(Some(Http2Part::End)) => AnswerProgress::End,
            Ok(None) => AnswerProgress::More,
            Err(error) => self.fail(&error),
        }
    }

    /// By HTTP/2 there is no answer, or no more of it.
    fn fail(&mut self, error: &Http2Error) -> AnswerProgress<'static> {
        let words = error.to_string();
        match error.kind {
            // RFC 9113, sections 6.8 and 8.7: a request that the server has not begun with may be sent again.
            Http2Failure::NotProcessed if self.repeats < MOST_REPEATS => {
                (self.sent, self.repeats) = (None, self.repeats + 1);
                AnswerProgress::More
            }
            Http2Failure::NotProcessed => {
                let times = MOST_REPEATS + 1;
                self.reset(format!("{words}, {times} times in a row before it began with the request"))
            }
            Http2Failure::Reset => self.reset(words),
            Http2Failure::Ended => AnswerProgress::Failed(Answer::Failed(Failure::ClosedByPeer, words)),
            Http2Failure::Malformed | Http2Failure::Request => {
                AnswerProgress::Failed(Answer::Failed(Failure::MalformedInput, words))
            }
        }
    }

    /// The answer to this request alone does not come.
    fn reset(&mut self, words: String) -> AnswerProgress<'static> {
        self.next = None;
        self.end();
        AnswerProgress::Failed(Answer::Reset(Failure::Reset, words))
    }
}
