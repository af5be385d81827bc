//! What a fault has a request answered with.

use crate::fault::{ScriptedAnswer, Why};
use weir_web::Message;

/// What credentials are asked for by, where a server takes those of HTTP alone.
pub(crate) const BASIC: &str = "Basic realm=\"weir\"";
/// The status that names another place.
pub(crate) const FOUND: u16 = 302;

/// A refusal as HTTP has it.
#[derive(Debug)]
pub struct HttpRefusal {
    /// Its status.
    pub status: u16,
    /// Instead of the usual words of the status.
    pub words: Option<String>,
    field: Option<(&'static str, String)>,
}

impl HttpRefusal {
    /// With this status, in its usual words.
    pub(crate) fn with(status: u16) -> Self {
        Self { status, words: None, field: None }
    }

    /// The refusal in a scripted answer, where credentials would be asked for by `challenge` and another place is named by the status
    /// `moved`; `None` if nothing is to be answered.
    pub(crate) fn of(answer: ScriptedAnswer, challenge: &str, moved: u16) -> Option<Self> {
        let ScriptedAnswer::Refusal { why, code, words } = answer else { return None };
        let (usual, field) = match why {
            Why::Unauthorized { .. } => (401, Some(("WWW-Authenticate", challenge.to_owned()))),
            Why::Rejected => (503, None),
            Why::Moved { to } => (moved, Some(("Location", to))),
        };
        let status = code.and_then(|code| code.parse().ok()).unwrap_or(usual);
        Some(Self { status, words, field })
    }

    /// The same answer with the field that goes with the refusal, if there is one: `WWW-Authenticate`, `Location`.
    pub fn complete(self, answer: Message) -> Message {
        match self.field {
            Some((name, value)) => answer.field(name, value),
            None => answer,
        }
    }
}
