//! A login: Basic (RFC 7617), and Digest with MD5 and SHA-256 (RFC 7616). No secret is ever shown.

use md5::Md5;
use sha2::{Digest as _, Sha256};
use std::fmt::{self, Write as _};
use weir_web::credentials;

/// A user and a password, as they are: not percent-encoded.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The user.
    pub user: String,
    /// The password.
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login")
    }
}

/// What a server asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    scheme: Scheme,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Scheme {
    Basic,
    Digest(Digest),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Digest {
    realm: String,
    nonce: String,
    opaque: Option<String>,
    algorithm: Algorithm,
    /// The server named the algorithm, and wants it named.
    names_algorithm: bool,
    /// Whether `qop=auth` is offered.
    quality: bool,
    /// The nonce is used up: the password may be right.
    is_stale: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Md5,
    Sha256,
}

impl Algorithm {
    fn of(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "md5" => Some(Self::Md5),
            "sha-256" => Some(Self::Sha256),
            _ => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Md5 => "MD5",
            Self::Sha256 => "SHA-256",
        }
    }

    fn hash(self, text: &str) -> String {
        let bytes = match self {
            Self::Md5 => Md5::digest(text).to_vec(),
            Self::Sha256 => Sha256::digest(text).to_vec(),
        };
        bytes.iter().fold(String::new(), |mut hex, byte| {
            // A string takes all.
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }
}

impl Challenge {
    /// The strongest of what the values of `WWW-Authenticate` ask for that is known here.
    ///
    /// RFC 7616 section 3.7 leaves the order to the server; cameras list Basic first, and a password that need not be shown is not.
    pub fn strongest<'a>(values: impl Iterator<Item = &'a str>) -> Option<Self> {
        values.filter_map(Self::parse).max_by_key(|challenge| match &challenge.scheme {
            Scheme::Basic => 0,
            Scheme::Digest(Digest { algorithm: Algorithm::Md5, .. }) => 1,
            Scheme::Digest(Digest { algorithm: Algorithm::Sha256, .. }) => 2,
        })
    }

    fn parse(value: &str) -> Option<Self> {
        let (scheme, rest) = value.trim().split_once(' ').unwrap_or((value.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self { scheme: Scheme::Basic });
        }
        if !scheme.eq_ignore_ascii_case("digest") {
            return None;
        }
        let parameters = parameters(rest);
        let get =
            |name: &str| parameters.iter().find(|(this, _)| this == name).map(|(_, value)| value.clone());
        let algorithm = get("algorithm");
        let quality = get("qop").unwrap_or_default();
        let digest = Digest {
            realm: get("realm")?,
            nonce: get("nonce")?,
            opaque: get("opaque"),
            names_algorithm: algorithm.is_some(),
            algorithm: Algorithm::of(algorithm.as_deref().unwrap_or("MD5"))?,
            quality: quality.split(',').any(|it| it.trim().eq_ignore_ascii_case("auth")),
            is_stale: get("stale").is_some_and(|stale| stale.eq_ignore_ascii_case("true")),
        };
        Some(Self { scheme: Scheme::Digest(digest) })
    }

    /// Whether a login may be tried again: its nonce was used up.
    pub fn is_stale(&self) -> bool {
        matches!(&self.scheme, Scheme::Digest(digest) if digest.is_stale)
    }

    /// The value of `Authorization` for a request, the `count`-th with this challenge. `random` is the client's own nonce.
    pub fn answer(&self, login: &Login, method: &str, uri: &str, count: u32, random: u64) -> String {
        let Login { user, password } = login;
        let Scheme::Digest(digest) = &self.scheme else {
            let escaped = |text: &str| text.replace('%', "%25");
            return credentials::basic(&escaped(user), &escaped(password));
        };
        let Digest { realm, nonce, opaque, algorithm, names_algorithm, quality, .. } = digest;
        // RFC 7616 section 3.4.2: "A1 = unq(username) ":" unq(realm) ":" passwd"; section 3.4.3: "A2 = Method ":" request-uri".
        let one = algorithm.hash(&format!("{user}:{realm}:{password}"));
        let two = algorithm.hash(&format!("{method}:{uri}"));
        let mut answer = format!(
            "Digest username={}, realm={}, nonce={}, uri={}",
            quoted(user),
            quoted(realm),
            quoted(nonce),
            quoted(uri)
        );
        // A string takes all.
        if *quality {
            let (count, random) = (format!("{count:08x}"), format!("{random:016x}"));
            let response = algorithm.hash(&format!("{one}:{nonce}:{count}:{random}:auth:{two}"));
            let _ = write!(answer, ", response=\"{response}\", qop=auth, nc={count}, cnonce=\"{random}\"");
        } else {
            // RFC 2069, which most cameras still speak.
            let response = algorithm.hash(&format!("{one}:{nonce}:{two}"));
            let _ = write!(answer, ", response=\"{response}\"");
        }
        if *names_algorithm {
            let _ = write!(answer, ", algorithm={}", algorithm.name());
        }
        if let Some(opaque) = opaque {
            let _ = write!(answer, ", opaque={}", quoted(opaque));
        }
        answer
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// `name=value` and `name="value"`, separated by commas, names in small letters.
fn parameters(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some((name, behind)) = rest.split_once('=') {
        let name = name.trim_matches([' ', '\t', ',']).to_ascii_lowercase();
        let behind = behind.trim_start();
        let mut value = String::new();
        let mut signs = behind.char_indices();
        let end = if behind.starts_with('"') {
            signs.next();
            let mut end = behind.len();
            while let Some((at, sign)) = signs.next() {
                match sign {
                    '"' => {
                        end = at + 1;
                        break;
                    }
                    '\\' => value.extend(signs.next().map(|(_, sign)| sign)),
                    _ => value.push(sign),
                }
            }
            end
        } else {
            let end = behind.find(',').unwrap_or(behind.len());
            behind[..end].trim().clone_into(&mut value);
            end
        };
        found.push((name, value));
        rest = &behind[end..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(user: &str, password: &str) -> Login {
        Login { user: user.to_owned(), password: password.to_owned() }
    }

    #[test]
    fn digests_are_those_of_the_standards_example() {
        // RFC 7616 section 3.9.1, with its client nonce in place of a number: the hashes are checked by the formula.
        let value = "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm=SHA-256, \
            nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\"";
        let challenge = Challenge::parse(value).unwrap();
        let answer = challenge.answer(&login("Mufasa", "Circle of Life"), "GET", "/dir/index.html", 1, 1);
        let (one, two) = (
            Algorithm::Sha256.hash("Mufasa:http-auth@example.org:Circle of Life"),
            Algorithm::Sha256.hash("GET:/dir/index.html"),
        );
        let nonce = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v";
        // The example's own response, with its client nonce.
        let example =
            format!("{one}:{nonce}:00000001:f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ:auth:{two}");
        assert_eq!(
            Algorithm::Sha256.hash(&example),
            "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"
        );
        let response = Algorithm::Sha256.hash(&format!("{one}:{nonce}:00000001:0000000000000001:auth:{two}"));
        assert!(answer.contains(&format!("response=\"{response}\", qop=auth, nc=00000001")), "{answer}");
        assert!(answer.contains("algorithm=SHA-256, opaque=\"FQhe"), "{answer}");
    }

    #[test]
    fn a_cameras_digest_is_the_old_one() {
        let challenge = Challenge::parse("Digest realm=\"cam\",nonce=\"ab\"").unwrap();
        let answer = challenge.answer(&login("u", "p"), "DESCRIBE", "rtsp://h/a", 9, 9);
        let expected = Algorithm::Md5.hash(&format!(
            "{}:ab:{}",
            Algorithm::Md5.hash("u:cam:p"),
            Algorithm::Md5.hash("DESCRIBE:rtsp://h/a")
        ));
        assert!(answer.ends_with(&format!("uri=\"rtsp://h/a\", response=\"{expected}\"")), "{answer}");
    }

    #[test]
    fn the_strongest_is_chosen_and_what_is_unknown_passed_over() {
        let values = [
            "Basic realm=\"x\"",
            "Digest realm=\"a, \\\"b\\\"\", nonce=\"n\"",
            "Bearer",
            "Digest realm=\"r\", nonce=\"n\", algorithm=SHA-512",
        ];
        let Some(Challenge { scheme: Scheme::Digest(digest) }) = Challenge::strongest(values.into_iter())
        else {
            panic!("no digest")
        };
        assert_eq!((&*digest.realm, digest.algorithm), ("a, \"b\"", Algorithm::Md5));
        assert!(Challenge::strongest(["Bearer", "Digest realm=\"r\""].into_iter()).is_none());
        let basic = Challenge::strongest(["basic"].into_iter()).unwrap();
        assert_eq!(basic.answer(&login("100%", "%41"), "GET", "/", 1, 1), "Basic MTAwJTolNDE=");
        assert!(Challenge::parse("Digest realm=r, nonce=n, stale=TRUE").unwrap().is_stale());
    }
}
