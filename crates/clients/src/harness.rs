//! URLs, redirects and the services of a tuner server, read from bytes: what the fuzz target `targets` shares with its test.
//! Nothing here is part of a run.

use crate::target::{Placeholders, Scheme, Target, check_templates, expand};
use crate::ts::{self, mirakurun};
use crate::{bulk, mqtt, rtc, rtmp, rtsp};
use weir_web::uri::decoded;

/// What must never be shown.
const SECRET: &str = "s3cr3t-passw0rd";

/// Whether a text says it itself, in any way in which a parser of URLs may come to read it.
fn mentions_the_secret(text: &str) -> bool {
    let read = decoded(&decoded(text)).to_lowercase();
    let read: String = read.chars().filter(|c| !c.is_control() && !c.is_whitespace()).collect();
    read.contains(SECRET)
}

/// The schemes of every protocol.
const SCHEMES: [&[Scheme]; 9] = [
    rtmp::SCHEMES,
    rtsp::SCHEMES,
    ts::SCHEMES,
    mirakurun::SCHEMES,
    mqtt::SCHEMES,
    rtc::WHEP_SCHEMES,
    rtc::WHIP_SCHEMES,
    rtc::OVEN_SCHEMES,
    bulk::SCHEMES,
];

/// Reads a URL as targets of every protocol, and the same with a password in it, which must not be shown.
pub fn url(text: &str) {
    if mentions_the_secret(text) {
        // What is no password may be shown.
        return;
    }
    for placeholders in [Placeholders::STREAM, mqtt::PLACEHOLDERS] {
        let checked = check_templates(&[text.to_owned()], Some(3), |_| placeholders);
        let _ = checked.map_err(|error| error.to_string());
    }
    for url in expand(text, 3) {
        for schemes in SCHEMES {
            let target = Target::parse(&url, "play", schemes);
            if let Ok(target) = target {
                assert!(target.port > 0 && !target.host.is_empty(), "{target}");
            }
            for scheme in schemes {
                let secret = format!("{}://me:{SECRET}@{url}", scheme.name);
                let said = match Target::parse(&secret, "play", schemes) {
                    Ok(target) => format!("{target} {target:?} {}", target.base()),
                    Err(error) => format!("{error} {error:?}"),
                };
                assert!(!said.contains(SECRET), "{said}");
            }
        }
    }
}

/// Follows a redirect of a server that knows a password.
pub fn redirect(location: &str) {
    if mentions_the_secret(location) {
        return;
    }
    let base = format!("http://me:{SECRET}@127.0.0.1:8080/tv/1.ts?a=b");
    match crate::http_request::redirected(&base, location) {
        Ok((target, request)) => {
            let request = String::from_utf8_lossy(&request);
            let same = target.base() == "http://127.0.0.1:8080";
            let (head, rest) = request.split_once("\r\n\r\n").expect("a whole head");
            assert!(rest.is_empty() && head.starts_with("GET /"), "{request}");
            let names = |name: &str| head.lines().filter(|line| line.starts_with(name)).count();
            assert!(names("Host:") == 1 && names("Authorization:") <= 1, "{request}");
            // Credentials of its own may stand in the location.
            assert!(same || location.contains('@') || names("Authorization:") == 0, "{request}");
        }
        Err(said) => assert!(!said.contains(SECRET), "{said}"),
    }
}

/// Chooses services out of what a tuner server says that it has.
pub fn services(document: &[u8]) {
    mirakurun::services(document);
}

#[cfg(test)]
mod tests {
    #[test]
    fn seeds_are_read() {
        for text in ["rtmp://host/live/{i}", "[::1]:1935/live/a?token=x", "h:99999/a", "@/", "{i}"] {
            super::url(text);
        }
        for location in
            ["/y", "//other/z", "https://me:mine@127.0.0.1:8080/", "http:\\\\b/y", "a b\r\nX: y", "?"]
        {
            super::redirect(location);
        }
        let document = include_bytes!("../../../fuzz/corpus/targets/services");
        super::services(&document[1..]);
    }
}
