//! The dialogue of a login, and which mechanism it is by.

use super::access::{Access, password};
use super::connection::Connection;
use super::failed::{RequestFailure, one_line};
use crate::store::clear_text::{Exposure, refusal};
use aws_lc_rs::rand;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_kafka::{
    ErrorCode, Mechanism, SaslAuthenticate, SaslHandshake, Scram, ScramError, ScramHash, plain,
};

/// When a login is renewed at the earliest: hashing a password takes up to a second, and a broker that asks for it before every question
/// would have nothing else done.
const EARLIEST_RENEWAL: Duration = Duration::from_secs(1);

/// Mechanisms of a broker that are shown.
const SHOWN: usize = 8;

/// Why a login failed.
enum LoginError {
    /// The broker does not take user and password; in its own words.
    Refused(String),
    /// Something else.
    Failed(RequestFailure),
}

impl From<RequestFailure> for LoginError {
    fn from(failed: RequestFailure) -> Self {
        Self::Failed(failed)
    }
}

impl From<ScramError> for LoginError {
    fn from(error: ScramError) -> Self {
        match error {
            ScramError::Refused(words) => Self::Refused(one_line(&words)),
            error => Self::Failed(RequestFailure::Unfit(one_line(&error.to_string()))),
        }
    }
}

impl Connection {
    /// [Connects](Self::connect), and logs in: by the mechanism that other brokers of the cluster have
    /// taken, if there is one.
    pub(super) fn open(
        host: &str,
        port: u16,
        access: &Arc<Access>,
        known: Option<Mechanism>,
    ) -> Result<Self, RequestFailure> {
        if access.login.is_none() {
            return Self::connect(host, port, access);
        }
        Self::log_in_by_any(known, || Self::connect(host, port, access))
    }

    /// Logs in by the strongest mechanism that broker and user have, each try on a connection of its own: a broker closes one whose
    /// login it has refused. The password itself goes to a broker that proves whose it is, or to this machine; and where SCRAM was
    /// refused only to the former: an impostor, which does not know the password, can only refuse.
    fn log_in_by_any(
        known: Option<Mechanism>,
        connect: impl Fn() -> Result<Self, RequestFailure>,
    ) -> Result<Self, RequestFailure> {
        let mut left = Mechanism::ALL.to_vec();
        left.sort_by_key(|mechanism| Some(*mechanism) != known);
        let (mut offered, mut refused, mut is_exposed) = (Vec::new(), Vec::new(), false);
        while !left.is_empty() {
            let mechanism = left.remove(0);
            let mut connection = connect()?;
            let mechanisms = connection.ask_at_once(&SaslHandshake { mechanism })?;
            left.retain(|other| mechanisms.has(*other));
            match mechanisms.error {
                ErrorCode::NONE
                    if mechanism == Mechanism::Plain && !connection.may_send_plain(refused.is_empty()) =>
                {
                    is_exposed = true;
                }
                ErrorCode::NONE => match connection.log_in(mechanism) {
                    Ok(()) => {
                        connection.mechanism = Some(mechanism);
                        return Ok(connection);
                    }
                    Err(LoginError::Refused(words)) => {
                        refused.push(format!("{}: {words}", mechanism.name()));
                    }
                    Err(LoginError::Failed(failed)) => return Err(failed),
                },
                ErrorCode::UNSUPPORTED_SASL_MECHANISM => {}
                ErrorCode::ILLEGAL_SASL_STATE => {
                    return Err(RequestFailure::Unfit(
                        "this listener takes no login; leave the user out, or name a port of SASL".to_owned(),
                    ));
                }
                code => return Err(RequestFailure::Refused("login".to_owned(), code)),
            }
            offered = mechanisms.names;
        }
        Err(if !refused.is_empty() {
            let refused = refused.join("; ");
            let withheld = if is_exposed {
                "; PLAIN is left out, because nothing proves whose server it is (kafkas:// does, by a certificate)"
            } else {
                ""
            };
            RequestFailure::AccessDenied(format!(
                "it does not take user and password ({refused}); check both, and {}{withheld}",
                password()
            ))
        } else if is_exposed {
            RequestFailure::Unfit(refusal(
                "as it is (the broker takes no login but PLAIN)",
                "write kafkas:// and name a port of TLS, without {insecure}, or have it offer SCRAM-SHA-512",
            ))
        } else {
            let shown: Vec<_> = offered.iter().take(SHOWN).map(|name| one_line(name)).collect();
            RequestFailure::Unfit(format!(
                "it offers no login that weir has ({}); add one of SCRAM-SHA-512, SCRAM-SHA-256 and PLAIN to its \
                 sasl.enabled.mechanisms",
                one_line(&shown.join(", "))
            ))
        })
    }

    /// Logs in once more on the same connection, before the broker closes it (KIP-368).
    pub(super) fn log_in_again(&mut self) -> Result<(), RequestFailure> {
        let Some(mechanism) = self.mechanism else { return Ok(()) };
        let mechanisms = self.ask_at_once(&SaslHandshake { mechanism })?;
        if !mechanisms.error.is_none() {
            return Err(RequestFailure::Refused("another login".to_owned(), mechanisms.error));
        }
        self.log_in(mechanism).map_err(|error| match error {
            LoginError::Refused(words) => {
                RequestFailure::AccessDenied(format!("it refuses another login ({words})"))
            }
            LoginError::Failed(failed) => failed,
        })
    }

    /// Whether the password itself may go to this broker: to one that has proven whose it is, where the address allows clear text, and to
    /// this machine unless SCRAM was refused before.
    fn may_send_plain(&self, nothing_was_refused: bool) -> bool {
        let Access { is_verified, allows_clear_text, .. } = *self.access;
        let is_here = nothing_was_refused && self.link.is_local();
        Exposure::of(is_verified, allows_clear_text, is_here) == Exposure::Safe
    }

    fn log_in(&mut self, mechanism: Mechanism) -> Result<(), LoginError> {
        let access = self.access.clone();
        let Some((user, password)) = &access.login else { return Ok(()) };
        let hash = match mechanism {
            Mechanism::ScramSha512 => ScramHash::Sha512,
            Mechanism::ScramSha256 => ScramHash::Sha256,
            Mechanism::Plain => {
                self.authenticate(&plain(user, password))?;
                return Ok(());
            }
        };
        let nonce = nonce()?;
        let scram = Scram::new(hash, user, password, &nonce);
        let challenge = self.authenticate(scram.first_message().as_bytes())?;
        let (last, signature) = scram.last_message(&challenge)?;
        Ok(signature.check(&self.authenticate(last.as_bytes())?)?)
    }

    /// Sends a message of the mechanism, and returns the broker's.
    fn authenticate(&mut self, message: &[u8]) -> Result<Vec<u8>, LoginError> {
        let asked = Instant::now();
        let answer = self.ask_at_once(&SaslAuthenticate { message })?;
        match answer.error {
            ErrorCode::NONE => {}
            ErrorCode::SASL_AUTHENTICATION_FAILED => {
                let words = answer.words.unwrap_or_else(|| answer.error.to_string());
                return Err(LoginError::Refused(one_line(&words)));
            }
            code => return Err(RequestFailure::Refused("login".to_owned(), code).into()),
        }
        let lifetime = u64::try_from(answer.lifetime).ok().filter(|lifetime| *lifetime > 0);
        // As early as the Java client at its earliest (`SaslClientAuthenticator`): at 85 %. Where time ends, it is not
        // renewed.
        self.renewal = lifetime.and_then(|lifetime| {
            asked.checked_add(Duration::from_millis(lifetime - lifetime / 100 * 15).max(EARLIEST_RENEWAL))
        });
        Ok(answer.message)
    }
}

/// A text that no other login has had: 16 random bytes.
fn nonce() -> Result<String, RequestFailure> {
    let mut bytes = [0; 16];
    rand::fill(&mut bytes)
        .map_err(|_| RequestFailure::Away("the system gives no random numbers".to_owned()))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::super::scripted::{Answer, broker};
    use super::*;
    use weir_kafka::InitProducerId;

    fn open(port: u16, known: Option<Mechanism>) -> Result<Connection, RequestFailure> {
        let login = Some(("me".to_owned(), "s3cr3t".to_owned()));
        Connection::open(
            "127.0.0.1",
            port,
            &Arc::new(Access { tls: None, is_verified: false, allows_clear_text: false, login }),
            known,
        )
    }

    #[test]
    fn a_login_is_renewed_once_before_a_question_that_comes_when_it_ends() {
        let (port, asked) = broker(|key, _| match key {
            17 => Answer::mechanisms(ErrorCode::NONE, &["PLAIN"]),
            36 => Answer::authenticated("", 1),
            _ => Answer::default().number([0; 16]),
        });
        let opened = Instant::now();
        let mut connection = open(port, Some(Mechanism::Plain)).unwrap();
        assert!(connection.renewal.unwrap() >= opened + EARLIEST_RENEWAL);
        for _ in 0..2 {
            let renewal = connection.renewal.unwrap();
            std::thread::sleep(renewal.saturating_duration_since(Instant::now()));
            connection.ask(&InitProducerId).unwrap();
        }
        drop(connection);
        let asked: Vec<_> = asked.try_iter().collect();
        assert_eq!(asked, [&[18, 17, 36][..], &[17, 36, 22].repeat(2)].concat());
    }

    #[test]
    fn names_of_mechanisms_are_one_line_and_not_all_of_them() {
        let names = ["A\u{1b}[2J", "B", "C", "D", "E", "F", "G", "H\n", "I", "J"];
        let (port, _) = broker(move |_, _| Answer::mechanisms(ErrorCode::UNSUPPORTED_SASL_MECHANISM, &names));
        let Err(RequestFailure::Unfit(words)) = open(port, None) else { panic!() };
        assert!(words.contains("(A[2J, B, C, D, E, F, G, H); add one of SCRAM-SHA-512"), "{words}");
    }

    #[test]
    fn whoever_has_not_logged_one_in_sends_short_answers_only() {
        let (port, _) = broker(|_, _| Answer::default().number([0; 70_000]));
        let Err(RequestFailure::Away(words)) = open(port, None) else { panic!() };
        assert!(words.starts_with("an answer of 70004 bytes"), "{words}");
    }

    #[test]
    fn who_refuses_scram_is_not_sent_the_password_itself() {
        let (port, asked) = broker(|key, _| match key {
            17 => Answer::mechanisms(ErrorCode::NONE, &["SCRAM-SHA-512", "PLAIN"]),
            _ => Answer::default()
                .number(ErrorCode::SASL_AUTHENTICATION_FAILED.0.to_be_bytes())
                .text("no")
                .number([0; 12]),
        });
        let Err(RequestFailure::AccessDenied(words)) = open(port, None) else { panic!() };
        assert!(words.contains("(SCRAM-SHA-512: no)") && words.contains("PLAIN is left out"), "{words}");
        assert_eq!(asked.try_iter().collect::<Vec<_>>(), [18, 17, 36, 18, 17]);
    }

    #[test]
    fn a_broker_that_does_not_offer_what_another_took_is_logged_in_to_by_what_it_offers() {
        let (port, _) = broker(|key, body| match (key, body.ends_with(b"PLAIN")) {
            (17, true) => Answer::mechanisms(ErrorCode::NONE, &["PLAIN"]),
            (17, false) => Answer::mechanisms(ErrorCode::UNSUPPORTED_SASL_MECHANISM, &["PLAIN"]),
            _ => Answer::authenticated("", 0),
        });
        let connection = open(port, Some(Mechanism::ScramSha256)).unwrap_or_else(|_| panic!());
        assert_eq!(connection.mechanism, Some(Mechanism::Plain));
    }

    #[test]
    fn a_password_that_the_last_message_of_scram_refuses_is_said_to_be_wrong() {
        let (port, _) = broker(|key, body| match (key, String::from_utf8_lossy(body).split_once(",r=")) {
            (17, _) => Answer::mechanisms(ErrorCode::NONE, &["SCRAM-SHA-512"]),
            (_, Some((start, nonce))) if start.ends_with("n,,n=me") => {
                Answer::authenticated(&format!("r={nonce}+,s=AAAA,i=4096"), 0)
            }
            _ => Answer::authenticated("e=invalid-proof", 0),
        });
        let Err(RequestFailure::AccessDenied(words)) = open(port, None) else { panic!() };
        assert!(words.contains("(SCRAM-SHA-512: invalid-proof)"), "{words}");
    }

    #[test]
    fn a_server_that_does_not_know_the_password_is_not_logged_in_to() {
        let (port, asked) =
            broker(|key, body| match (key, String::from_utf8_lossy(body).split_once(",r=")) {
                (17, _) => Answer::mechanisms(ErrorCode::NONE, &["SCRAM-SHA-512", "PLAIN"]),
                (_, Some((start, nonce))) if start.ends_with("n,,n=me") => {
                    Answer::authenticated(&format!("r={nonce}+,s=AAAA,i=4096"), 0)
                }
                _ => Answer::authenticated("v=AAAA", 0),
            });
        let Err(RequestFailure::Unfit(words)) = open(port, None) else { panic!() };
        assert!(words.contains("may be another's server"), "{words}");
        // And is not sent it.
        assert_eq!(asked.try_iter().collect::<Vec<_>>(), [18, 17, 36, 36]);
    }
}
