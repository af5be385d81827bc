//! A file of credentials as `nsc` writes them: a user's token (JWT), and the seed of the key that signs for it.
//!
//! `async-nats` reads such files as well, by a regular expression: its engine and tables are half a megabyte of the program.

use async_nats::{AuthError, ConnectOptions};
use nkeys::KeyPair;
use std::io;
use std::sync::Arc;

/// Authenticates with the credentials in this text.
pub(crate) fn authenticate(options: ConnectOptions, text: &str) -> io::Result<ConnectOptions> {
    let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let (token, seed) = parse(text).ok_or_else(|| invalid("no JWT with a seed behind it".to_owned()))?;
    let key = KeyPair::from_seed(seed).map_err(|error| invalid(error.to_string()))?;
    let key = Arc::new(key);
    Ok(options.jwt(token.to_owned(), move |nonce| {
        let key = Arc::clone(&key);
        async move { key.sign(&nonce).map_err(AuthError::new) }
    }))
}

/// The token and the seed. Each stands alone between two lines that begin and end with dashes.
fn parse(text: &str) -> Option<(&str, &str)> {
    let is_border = |line: &str| line.starts_with("---") && line.ends_with("---");
    let is_key = |line: &str| {
        !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.=".contains(&byte))
    };
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let mut keys = lines.windows(3).filter_map(|lines| match lines {
        [before, key, after] if is_border(before) && is_border(after) && is_key(key) => Some(*key),
        _ => None,
    });
    Some((keys.next()?, keys.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: &str = "SUANQDPB2RUOE4ETUA26CNX7FUKE5ZZKFCQIIW63OX225F2CO7UEXTM7ZY";

    fn file(token: &str, seed: &str) -> String {
        format!(
            "-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n\
             ************************* IMPORTANT *************************\n\
             NKEY Seed printed below can be used to sign and prove identity.\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        )
    }

    #[test]
    fn a_token_and_its_seed_are_found_whatever_the_ends_of_lines() {
        let text = file("eyJ0.eyJq_-.c2ln", SEED);
        assert_eq!(parse(&text), Some(("eyJ0.eyJq_-.c2ln", SEED)));
        assert_eq!(parse(&text.replace('\n', "\r\n")), Some(("eyJ0.eyJq_-.c2ln", SEED)));
        assert_eq!(parse(text.trim_end()), Some(("eyJ0.eyJq_-.c2ln", SEED)));
        assert!(authenticate(ConnectOptions::new(), &text).is_ok());
    }

    #[test]
    fn what_is_not_such_a_file_is_refused_with_its_reason_and_without_its_text() {
        for (text, reason) in [
            (String::new(), "no JWT with a seed behind it"),
            (SEED.to_owned(), "no JWT with a seed behind it"),
            (file("", SEED), "no JWT with a seed behind it"),
            (file("two words", SEED), "no JWT with a seed behind it"),
            (file("eyJ0", "SUANQ"), "Bad seed"),
            (file("eyJ0", &SEED.replace('7', "2")), "checksum"),
        ] {
            let error = authenticate(ConnectOptions::new(), &text).unwrap_err().to_string();
            assert!(error.to_lowercase().contains(&reason.to_lowercase()), "{error} of {text}");
            assert!(!error.contains("SUANQ"), "{error}");
        }
    }
}
