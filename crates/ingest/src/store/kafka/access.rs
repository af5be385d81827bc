//! How an ingester gets into a cluster: TLS, user and password; and the dialogue of a login.

use super::cluster::Cluster;
use super::connection::Connection;
use super::failed::{Failed, one_line};
use aws_lc_rs::rand;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_kafka::{
    ErrorCode, Mechanism, SaslAuthenticate, SaslHandshake, Scram, ScramError, ScramHash, plain,
};
use weir_shard::tls::{ClientConfig, ClientTls, client_config};

/// What gives a password.
const PASSWORD: &str = "give the password in the environment as KAFKA_PASSWORD, or in a file (--save-password-file, save_password_file)";

/// Mechanisms of a broker that are shown.
const SHOWN: usize = 8;

/// How to get into a cluster.
pub(super) struct Access {
    pub(super) tls: Option<Arc<ClientConfig>>,
    /// User and password.
    pub(super) login: Option<(String, String)>,
}

/// Why a login failed.
enum LoginError {
    /// The broker does not take user and password; in its own words.
    Refused(String),
    /// Something else.
    Failed(Failed),
}

impl From<Failed> for LoginError {
    fn from(failed: Failed) -> Self {
        Self::Failed(failed)
    }
}

impl From<ScramError> for LoginError {
    fn from(error: ScramError) -> Self {
        Self::Failed(Failed::Unfit(one_line(&error.to_string())))
    }
}

impl Access {
    /// What a URL, a password and certificates come to.
    pub(super) fn of(cluster: &Cluster) -> Result<Arc<Self>, Failed> {
        let trust = cluster.trust();
        let tls = trust.map(|trust| client_config(&ClientTls { trust, identity: None })).transpose();
        let tls = tls.map_err(|error| Failed::Unfit(error.to_string()))?;
        let login = match (cluster.user(), cluster.password()) {
            (None, _) => None,
            (Some(_), None) => return Err(Failed::Locked(format!("a user without a password; {PASSWORD}"))),
            (Some(user), Some(password)) => Some((user.to_owned(), password.to_owned())),
        };
        Ok(Arc::new(Self { tls, login }))
    }
}

impl Connection {
    /// Logs in by the strongest mechanism that broker and user have, each try on a connection of its own: a broker closes one whose
    /// login it has refused.
    pub(super) fn log_in_by_any(
        known: Option<Mechanism>,
        connect: impl Fn() -> Result<Self, Failed>,
    ) -> Result<Self, Failed> {
        let mut left = known.map_or(Mechanism::ALL.to_vec(), |known| vec![known]);
        let (mut offered, mut refused, mut is_exposed) = (Vec::new(), Vec::new(), false);
        while !left.is_empty() {
            let mechanism = left.remove(0);
            let mut connection = connect()?;
            let mechanisms = connection.ask_at_once(&SaslHandshake { mechanism })?;
            left.retain(|other| mechanisms.has(*other));
            match mechanisms.error {
                ErrorCode::NONE if mechanism == Mechanism::Plain && !connection.link.is_private() => {
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
                    return Err(Failed::Unfit(
                        "this listener takes no login; leave the user out, or name a port of SASL".to_owned(),
                    ));
                }
                code => return Err(Failed::Refused("login".to_owned(), code)),
            }
            offered = mechanisms.names;
        }
        Err(if !refused.is_empty() {
            let refused = refused.join("; ");
            Failed::Locked(format!(
                "it does not take user and password ({refused}); check both, and {PASSWORD}"
            ))
        } else if is_exposed {
            Failed::Unfit(
                "it takes the password in the clear only (PLAIN), and anyone on the way could read it; write kafkas:// and \
                 name a port of TLS, or have it offer SCRAM-SHA-512"
                    .to_owned(),
            )
        } else {
            let shown: Vec<_> = offered.iter().take(SHOWN).map(|name| one_line(name)).collect();
            Failed::Unfit(format!(
                "it offers no login that weir has ({}); add one of SCRAM-SHA-512, SCRAM-SHA-256 and PLAIN to its \
                 sasl.enabled.mechanisms",
                one_line(&shown.join(", "))
            ))
        })
    }

    /// Logs in once more on the same connection, before the broker closes it (KIP-368).
    pub(super) fn log_in_again(&mut self) -> Result<(), Failed> {
        let Some(mechanism) = self.mechanism else { return Ok(()) };
        let mechanisms = self.ask_at_once(&SaslHandshake { mechanism })?;
        if !mechanisms.error.is_none() {
            return Err(Failed::Refused("another login".to_owned(), mechanisms.error));
        }
        self.log_in(mechanism).map_err(|error| match error {
            LoginError::Refused(words) => Failed::Locked(format!("it refuses another login ({words})")),
            LoginError::Failed(failed) => failed,
        })
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
            code => return Err(Failed::Refused("login".to_owned(), code).into()),
        }
        let lifetime = u64::try_from(answer.lifetime).ok().filter(|lifetime| *lifetime > 0);
        // As early as the Java client at its earliest (`SaslClientAuthenticator`): at 85 %. Where time ends, it is not
        // renewed.
        self.renewal = lifetime
            .and_then(|lifetime| asked.checked_add(Duration::from_millis(lifetime - lifetime / 100 * 15)));
        Ok(answer.message)
    }
}

/// A text that no other login has had: 16 random bytes.
fn nonce() -> Result<String, Failed> {
    let mut bytes = [0; 16];
    rand::fill(&mut bytes).map_err(|_| Failed::Away("the system gives no random numbers".to_owned()))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::mpsc::{Receiver, channel};
    use weir_kafka::InitProducerId;

    /// The body of an answer.
    #[derive(Default)]
    struct Answer(Vec<u8>);

    impl Answer {
        fn number<const N: usize>(mut self, bytes: [u8; N]) -> Self {
            self.0.extend(bytes);
            self
        }

        fn text(self, text: &str) -> Self {
            let mut with_length = self.number((text.len() as i16).to_be_bytes());
            with_length.0.extend(text.bytes());
            with_length
        }

        fn mechanisms(code: ErrorCode, names: &[&str]) -> Self {
            let head =
                Self::default().number(code.0.to_be_bytes()).number((names.len() as i32).to_be_bytes());
            names.iter().fold(head, |answer, name| answer.text(name))
        }

        /// Of a login that goes on, or holds for this many milliseconds.
        fn authenticated(message: &str, lifetime: i64) -> Self {
            let head = Self::default().number([0; 2]).number((-1_i16).to_be_bytes()).number([0; 2]);
            head.text(message).number(lifetime.to_be_bytes())
        }

        /// Whatever is spoken here, in any version.
        fn versions() -> Self {
            let keys = [0_i16, 1, 2, 3, 17, 19, 21, 22, 32, 36];
            let head = Self::default().number([0; 2]).number((keys.len() as i32).to_be_bytes());
            keys.iter().fold(head, |answer, key| {
                answer.number(key.to_be_bytes()).number([0; 2]).number(20_i16.to_be_bytes())
            })
        }
    }

    /// A broker that answers what is asked on a number of connections, and the keys of what it was asked.
    fn broker(
        connections: usize,
        answer: impl Fn(i16, &str) -> Answer + Send + 'static,
    ) -> (u16, Receiver<i16>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            for link in listener.incoming().take(connections) {
                let mut link = link.unwrap();
                let mut length = [0; 4];
                while link.read_exact(&mut length).is_ok() {
                    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
                    link.read_exact(&mut frame).unwrap();
                    let key = i16::from_be_bytes([frame[0], frame[1]]);
                    let body = if key == 18 {
                        Answer::versions()
                    } else {
                        answer(key, &String::from_utf8_lossy(&frame[8..]))
                    };
                    let _ = sender.send(key);
                    link.write_all(&(body.0.len() as u32 + 4).to_be_bytes()).unwrap();
                    link.write_all(&frame[4..8]).unwrap();
                    link.write_all(&body.0).unwrap();
                }
            }
        });
        (port, receiver)
    }

    fn open(port: u16, known: Option<Mechanism>) -> Result<Connection, Failed> {
        let login = Some(("me".to_owned(), "s3cr3t".to_owned()));
        Connection::open("127.0.0.1", port, &Arc::new(Access { tls: None, login }), known)
    }

    #[test]
    fn a_login_is_renewed_once_before_a_question_that_comes_when_it_ends() {
        let (port, asked) = broker(1, |key, _| match key {
            17 => Answer::mechanisms(ErrorCode::NONE, &["PLAIN"]),
            36 => Answer::authenticated("", 1),
            _ => Answer::default().number([0; 16]),
        });
        let mut connection = open(port, Some(Mechanism::Plain)).unwrap();
        for _ in 0..3 {
            let renewal = connection.renewal.unwrap();
            while Instant::now() < renewal {
                std::hint::spin_loop();
            }
            connection.ask(&InitProducerId).unwrap();
        }
        drop(connection);
        let asked: Vec<_> = asked.try_iter().collect();
        assert_eq!(asked, [&[18, 17, 36][..], &[17, 36, 22].repeat(3)].concat());
    }

    #[test]
    fn names_of_mechanisms_are_one_line_and_not_all_of_them() {
        let names = ["A\u{1b}[2J", "B", "C", "D", "E", "F", "G", "H\n", "I", "J"];
        let (port, _) =
            broker(1, move |_, _| Answer::mechanisms(ErrorCode::UNSUPPORTED_SASL_MECHANISM, &names));
        let Err(Failed::Unfit(words)) = open(port, None) else { panic!() };
        assert!(words.contains("(A[2J, B, C, D, E, F, G, H); add one of SCRAM-SHA-512"), "{words}");
    }

    #[test]
    fn a_server_that_does_not_know_the_password_is_not_logged_in_to() {
        let (port, asked) = broker(1, |key, body| match (key, body.split_once(",r=")) {
            (17, _) => Answer::mechanisms(ErrorCode::NONE, &["SCRAM-SHA-512", "PLAIN"]),
            (_, Some((start, nonce))) if start.ends_with("n,,n=me") => {
                Answer::authenticated(&format!("r={nonce}+,s=AAAA,i=4096"), 0)
            }
            _ => Answer::authenticated("v=AAAA", 0),
        });
        let Err(Failed::Unfit(words)) = open(port, None) else { panic!() };
        assert!(words.contains("may be another's server"), "{words}");
        // And is not sent it.
        assert_eq!(asked.try_iter().collect::<Vec<_>>(), [18, 17, 36, 36]);
    }
}
