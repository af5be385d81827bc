//! A TURN server as the command line names it.

use weir_origin::IceServer;

/// A TURN server, out of `turn:USER:PASSWORD@HOST[:PORT]`. The error does not repeat the text, which holds a secret.
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
