//! What a caller wants, by its stream ID.

use weir_srt::Rejection;
use weir_srt::stream_id::{AccessControl, Mode};

/// The stream of a caller that names none.
const UNNAMED: &str = "live/srt";

/// A stream, and whether the caller publishes it, if it says so.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) name: String,
    pub(super) publishes: Option<bool>,
}

impl Wish {
    pub(super) fn of(access: &AccessControl<'_>) -> Result<Self, Rejection> {
        let resource = access.resource.unwrap_or(UNNAMED);
        let by_mode = match access.mode() {
            Ok(Some(Mode::Publish)) => Some(true),
            Ok(Some(Mode::Request)) => Some(false),
            Ok(None) => None,
            Ok(Some(Mode::Bidirectional)) | Err(_) => return Err(Rejection::BAD_MODE),
        };
        // As MediaMTX has it: `publish:NAME` and `read:NAME`.
        let (name, by_name) = match resource.split_once(':') {
            Some(("publish", name)) => (name, Some(true)),
            Some(("read" | "play" | "request", name)) => (name, Some(false)),
            _ => (resource, None),
        };
        let name = name.trim_matches('/');
        let name = if name.is_empty() { UNNAMED } else { name };
        Ok(Self { name: name.to_owned(), publishes: by_mode.or(by_name) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_caller_wants_is_in_its_stream_id() {
        let wish = |text: &str| Wish::of(&AccessControl::parse(text)).map(|wish| (wish.name, wish.publishes));
        for (text, name, publishes) in [
            ("#!::r=live/a,m=publish", "live/a", Some(true)),
            ("#!::r=/live/a,m=request", "live/a", Some(false)),
            ("publish:live/a", "live/a", Some(true)),
            ("read:live/a", "live/a", Some(false)),
            ("live/a", "live/a", None),
            ("", UNNAMED, None),
        ] {
            assert_eq!(wish(text), Ok((name.to_owned(), publishes)), "{text}");
        }
        assert_eq!(wish("#!::r=a,m=bidirectional"), Err(Rejection::BAD_MODE));
    }
}
