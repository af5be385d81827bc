//! What WebRTC's clients do, out of flags or of a scenario; and the token, which is in neither.

use weir_clients::RtcOptions;
use weir_engine::peering::{Feedback, RtcSpec};
use weir_origin::IceServer;

/// The variable with the token; it is in no list of processes, as arguments are.
const TOKEN: &str = "WEIR_RTC_TOKEN";

/// Whether URLs are of WebRTC.
pub(crate) fn speaks(urls: &[String]) -> bool {
    let schemes = ["whep+http", "whep+https", "whip+http", "whip+https", "ws", "wss"];
    urls.iter().any(|url| {
        let scheme = url.split("://").next().unwrap_or_default();
        schemes.iter().any(|known| known.eq_ignore_ascii_case(scheme))
    })
}

/// The options of a workload's clients.
pub(crate) fn options(spec: &RtcSpec) -> Result<RtcOptions, String> {
    let says = |what| !spec.off.contains(&what);
    Ok(RtcOptions {
        token: token(spec)?,
        nack: says(Feedback::Nack),
        pli: says(Feedback::Pli),
        reports: says(Feedback::Reports),
        bandwidth: says(Feedback::Bandwidth),
    })
}

/// A flag's value.
pub(crate) fn feedback(text: &str) -> Result<Feedback, String> {
    Ok(match text {
        "nack" => Feedback::Nack,
        "pli" => Feedback::Pli,
        "reports" => Feedback::Reports,
        "bandwidth" => Feedback::Bandwidth,
        _ => {
            return Err(format!(
                "'{text}' is nothing that a viewer says; known: nack, pli, reports, bandwidth"
            ));
        }
    })
}

/// A TURN server, out of `turn:USER:PASSWORD@HOST[:PORT]`. What is wrong is said without the text, which has a secret.
pub(crate) fn turn_server(text: &str) -> Result<IceServer, String> {
    let wrong = || "--turn wants turn:USER:PASSWORD@HOST[:PORT]".to_owned();
    let rest = text.strip_prefix("turn:").ok_or_else(wrong)?;
    let (user, place) = rest.trim_start_matches("//").rsplit_once('@').ok_or_else(wrong)?;
    let (username, credential) = user.split_once(':').ok_or_else(wrong)?;
    let place = place.split_once('?').map_or(place, |(place, _)| place);
    if username.is_empty() || !text.chars().all(|c| c.is_ascii_graphic()) {
        return Err(wrong());
    }
    Ok(IceServer {
        urls: vec![format!("turn:{place}?transport=tcp")],
        username: username.to_owned(),
        credential: credential.to_owned(),
    })
}

fn token(spec: &RtcSpec) -> Result<Option<String>, String> {
    let token = match &spec.token_file {
        Some(path) => {
            let text =
                std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            text.lines().next().unwrap_or_default().trim().to_owned()
        }
        None => std::env::var(TOKEN).unwrap_or_default(),
    };
    match token {
        token if token.is_empty() => Ok(None),
        // Anything else would end the line of the request.
        token if token.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(Some(token)),
        _ => Err("a bearer token has only visible ASCII characters in it".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_off_is_not_said() {
        let spec = RtcSpec { off: vec![Feedback::Nack, Feedback::Reports], ..RtcSpec::default() };
        let made = options(&spec).unwrap();
        assert_eq!((made.nack, made.pli, made.reports, made.bandwidth), (false, true, false, true));
    }

    #[test]
    fn a_token_is_the_first_line_of_its_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let read = |text: &str| {
            std::fs::write(file.path(), text).unwrap();
            options(&RtcSpec { token_file: Some(file.path().to_owned()), ..RtcSpec::default() })
                .map(|options| options.token)
        };
        assert_eq!(read("abc.def\nmore").unwrap().as_deref(), Some("abc.def"));
        assert!(read("a b").unwrap_err().contains("visible ASCII"));
    }

    #[test]
    fn a_turn_server_is_named_with_its_secret_which_is_not_shown() {
        let server = turn_server("turn:me:s3cret:@[::1]:3478").unwrap();
        assert_eq!(server.urls, ["turn:[::1]:3478?transport=tcp"]);
        assert_eq!((&*server.username, &*server.credential), ("me", "s3cret:"));
        assert!(!format!("{server:?}").contains("s3cret"));
        for text in
            ["turn:me@host", "turn:host", "stun:me:s3cret@host", "turn::s3cret@host", "turn:me:s3 cret@host"]
        {
            let said = turn_server(text).unwrap_err();
            assert!(!said.contains("cret"), "{said}");
        }
    }

    #[test]
    fn urls_of_webrtc_are_told_from_others() {
        assert!(speaks(&["WHEP+http://h/a".to_owned()]) && speaks(&["ws://h/a/b".to_owned()]));
        assert!(!speaks(&["http://h/a".to_owned()]));
    }
}
