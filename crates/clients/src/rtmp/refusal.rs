//! What a server's status means for a client.

use weir_metrics::Failure;
use weir_rtmp::message::Status;

/// What follows from a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatusMeaning {
    /// Nothing.
    Fine,
    /// The stream is over, unless it goes on.
    Ended,
    /// The client has failed.
    Failed(Failure),
}

/// Words, in lower case, by which servers ask for credentials or do not take them: SRS, Wowza, Adobe's
/// authmod, nginx-rtmp's on_play with 401, mediamtx.
const UNAUTHORIZED: &[&str] = &[
    "401",
    "403",
    "authmod",
    "unauthorized",
    "unauthorised",
    "authentication",
    "access denied",
    "accessdenied",
    "authfailed",
    "auth failed",
    "forbidden",
];

/// Words by which servers do not know the stream.
const NOT_FOUND: &[&str] =
    &["streamnotfound", "filenotfound", "not found", "no such stream", "no one is publishing"];

/// Codes that end a stream in good order.
const ENDED: &[&str] = &[
    "NetStream.Play.UnpublishNotify",
    "NetStream.Play.Stop",
    "NetStream.Play.Complete",
    "NetStream.Unpublish.Success",
];

/// Reads a status.
pub(super) fn verdict(status: &Status<'_>) -> StatusMeaning {
    if ENDED.contains(&&*status.code) {
        return StatusMeaning::Ended;
    }
    let closed = status.code == "NetConnection.Connect.Closed";
    if !status.is_error() && !closed && !is_refusal(&status.code) {
        return StatusMeaning::Fine;
    }
    let words = status.to_string().to_ascii_lowercase();
    let says = |list: &[&str]| list.iter().any(|word| words.contains(word));
    StatusMeaning::Failed(if says(UNAUTHORIZED) {
        Failure::Unauthorized
    } else if says(NOT_FOUND) {
        Failure::StreamNotFound
    } else {
        Failure::Rejected
    })
}

/// Codes that are refusals even from servers that forget to say `error`.
fn is_refusal(code: &str) -> bool {
    matches!(
        code,
        "NetConnection.Connect.Rejected"
            | "NetConnection.Connect.Failed"
            | "NetConnection.Connect.InvalidApp"
            | "NetStream.Play.StreamNotFound"
            | "NetStream.Play.Failed"
            | "NetStream.Publish.BadName"
            | "NetStream.Publish.Denied"
            | "NetStream.Failed"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_words_are_understood() {
        use Failure::{Rejected, StreamNotFound, Unauthorized};
        for (status, expected) in [
            (Status::new("NetStream.Play.Start", "Start live"), StatusMeaning::Fine),
            (Status::new("NetStream.Play.Reset", ""), StatusMeaning::Fine),
            (Status::new("NetStream.Play.PublishNotify", "Start publishing"), StatusMeaning::Fine),
            (Status::new("NetStream.Play.UnpublishNotify", "Stop publishing"), StatusMeaning::Ended),
            (Status::new("NetStream.Play.Stop", ""), StatusMeaning::Ended),
            (
                Status::error("NetStream.Play.StreamNotFound", "No such stream"),
                StatusMeaning::Failed(StreamNotFound),
            ),
            (Status::new("NetStream.Play.StreamNotFound", ""), StatusMeaning::Failed(StreamNotFound)),
            (
                Status::error(
                    "NetConnection.Connect.Rejected",
                    "[ AccessManager.Reject ] : [ authmod=adobe ]",
                ),
                StatusMeaning::Failed(Unauthorized),
            ),
            (Status::error("NetConnection.Connect.Rejected", "401 no"), StatusMeaning::Failed(Unauthorized)),
            (Status::error("NetStream.Play.Failed", "Unauthorized"), StatusMeaning::Failed(Unauthorized)),
            (
                Status::error("NetConnection.Connect.Rejected", "vhost not here"),
                StatusMeaning::Failed(Rejected),
            ),
            (
                Status::error("NetStream.Publish.BadName", "Already publishing"),
                StatusMeaning::Failed(Rejected),
            ),
            (Status::error("", ""), StatusMeaning::Failed(Rejected)),
        ] {
            assert_eq!(verdict(&status), expected, "{status}");
        }
    }
}
