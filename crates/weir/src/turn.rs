//! A TURN server as the command line names it.

use weir_origin::IceServer;

/// A TURN server, out of `turn:USER:PASSWORD@HOST[:PORT][?transport=udp]` or `turns:…`; over TCP if it does not say. What
/// is wrong is said without the text, which has a secret.
pub(crate) fn turn_server(text: &str) -> Result<IceServer, String> {
    let wrong =
        || "--turn wants turn:USER:PASSWORD@HOST[:PORT][?transport=udp], or turns: for TLS".to_owned();
    let (scheme, rest) = text.split_once(':').ok_or_else(wrong)?;
    let (user, place) = rest.trim_start_matches("//").rsplit_once('@').ok_or_else(wrong)?;
    let (username, credential) = user.split_once(':').ok_or_else(wrong)?;
    let (place, transport) = place.split_once("?transport=").unwrap_or((place, "tcp"));
    let is_known = matches!((scheme, transport), ("turn", "tcp" | "udp") | ("turns", "tcp"));
    if !is_known || username.is_empty() || !text.chars().all(|c| c.is_ascii_graphic()) {
        return Err(wrong());
    }
    Ok(IceServer {
        urls: vec![format!("{scheme}:{place}?transport={transport}")],
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
        for (text, uri) in [
            ("turn:me:s3cret@host", "turn:host?transport=tcp"),
            ("turn:me:s3cret@host?transport=tcp", "turn:host?transport=tcp"),
            ("turn:me:s3cret@host:7?transport=udp", "turn:host:7?transport=udp"),
            ("turns:me:s3cret@host", "turns:host?transport=tcp"),
        ] {
            assert_eq!(turn_server(text).unwrap().urls, [uri]);
        }
        for text in [
            "turn:me@host",
            "turn:host",
            "stun:me:s3cret@host",
            "turn::s3cret@host",
            "turn:me:s3 cret@host",
            "turn:me:s3cret@host?transport=s3cret",
            "turns:me:s3cret@host?transport=udp",
        ] {
            let said = turn_server(text).unwrap_err();
            assert!(!said.contains("cret"), "{said}");
        }
    }
}
