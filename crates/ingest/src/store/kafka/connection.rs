//! A connection to a broker: one question after the other, with a bound on how long an answer takes and how large it is.

use super::access::Access;
use super::failed::{CLOSED, RequestFailure, one_line};
use super::link::Link;
use std::io::{self, ErrorKind, Read, Write};
use std::net::ToSocketAddrs;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_address::networks;
use weir_kafka::{
    ApiVersions, CreateTopics, DeleteRecords, DescribeConfigs, Fetch, InitProducerId, ListOffsets, Mechanism,
    MetadataRequest, Produce, Request, SaslAuthenticate, SaslHandshake, answer, request,
};

/// How long a broker may take for a whole answer: longer than it is told to wait for replicas.
const ANSWER: Duration = Duration::from_secs(40);

/// What an alert of TLS begins with (RFC 8446 section 5.1): its type, and the major version.
const TLS_ALERT: [u8; 2] = [21, 3];

/// The oldest broker whose every request is spoken here.
const OLDEST: &str = "Kafka 2.4";

/// A connection.
pub(super) struct Connection {
    pub(super) link: Link,
    /// `host:port`
    pub(super) name: String,
    pub(super) access: Arc<Access>,
    /// How it has logged in.
    pub(super) mechanism: Option<Mechanism>,
    /// When it has to log in again.
    pub(super) renewal: Option<Instant>,
    correlation_id: i32,
    frame: Vec<u8>,
}

impl Connection {
    /// Connects, and asks whether the broker speaks what is spoken here.
    pub(super) fn connect(host: &str, port: u16, access: &Arc<Access>) -> Result<Self, RequestFailure> {
        let mut last = RequestFailure::Away("the name has no address".to_owned());
        for address in networks::permitted((host, port).to_socket_addrs()?).map_err(io::Error::from)? {
            match Link::open(host, &address, access.tls.as_ref()) {
                Ok(link) => {
                    let mut connection = Self {
                        link,
                        name: format!("{}:{port}", one_line(host)),
                        access: access.clone(),
                        mechanism: None,
                        renewal: None,
                        correlation_id: 0,
                        frame: Vec::new(),
                    };
                    connection.check_versions()?;
                    return Ok(connection);
                }
                Err(failed) => last = failed,
            }
        }
        Err(last)
    }

    fn check_versions(&mut self) -> Result<(), RequestFailure> {
        let versions = self.ask_at_once(&ApiVersions).map_err(|failed| match failed {
            RequestFailure::Closed if !self.link.is_tls() => RequestFailure::Away(format!(
                "{CLOSED}; is this a listener of Kafka without TLS? kafkas:// is for one with TLS"
            )),
            failed => failed,
        })?;
        let logs_in = self.access.login.is_none()
            || versions.has::<SaslHandshake>() && versions.has::<SaslAuthenticate<'_>>();
        let fits = logs_in
            && versions.has::<MetadataRequest<'_>>()
            && versions.has::<CreateTopics<'_>>()
            && versions.has::<DescribeConfigs<'_>>()
            && versions.has::<InitProducerId>()
            && versions.has::<ListOffsets<'_>>()
            && versions.has::<Fetch<'_>>()
            && versions.has::<Produce<'_>>()
            && versions.has::<DeleteRecords<'_>>();
        if fits { Ok(()) } else { Err(RequestFailure::Unfit(format!("it is older than {OLDEST}"))) }
    }

    /// Sends a request, after another login if the last one is about to end. Its answer is [received](Self::receive) before another
    /// is sent.
    pub(super) fn send<R: Request>(&mut self, question: &R) -> Result<(), RequestFailure> {
        if self.renewal.is_some_and(|renewal| Instant::now() >= renewal) {
            self.log_in_again()?;
        }
        self.send_at_once(question)
    }

    fn send_at_once<R: Request>(&mut self, question: &R) -> Result<(), RequestFailure> {
        self.correlation_id = self.correlation_id.wrapping_add(1);
        request(question, self.correlation_id, &mut self.frame);
        self.link.end_within(ANSWER);
        // TLS keeps what it has not sent yet.
        let sent = self.link.write_all(&self.frame).and_then(|()| self.link.flush());
        sent.map_err(|error| in_words(&error))
    }

    /// The answer to what was sent last.
    pub(super) fn receive<R: Request>(&mut self) -> Result<R::Response, RequestFailure> {
        self.link.end_within(ANSWER);
        let mut length = [0; 4];
        self.link.read_exact(&mut length).map_err(|error| self.of_silence(&error))?;
        if length.starts_with(&TLS_ALERT) {
            return Err(RequestFailure::Unfit("it speaks TLS; write kafkas://".to_owned()));
        }
        let length = i32::from_be_bytes(length);
        let Some(length) = usize::try_from(length).ok().filter(|length| *length <= R::LONGEST_ANSWER) else {
            return Err(RequestFailure::Away(format!(
                "an answer of {length} bytes; is this a listener of Kafka?"
            )));
        };
        // Grows with what comes, not with what is announced.
        self.frame.clear();
        let read = (&mut self.link).take(length as u64).read_to_end(&mut self.frame);
        let read = read.map_err(|error| in_words(&error))?;
        if read < length {
            return Err(in_words(&ErrorKind::UnexpectedEof.into()));
        }
        let (id, response) =
            answer::<R>(&self.frame).map_err(|error| RequestFailure::Away(error.to_string()))?;
        if id != self.correlation_id {
            return Err(RequestFailure::Away("an answer to another question".to_owned()));
        }
        Ok(response)
    }

    /// Sends a request and waits for its answer.
    pub(super) fn ask<R: Request>(&mut self, question: &R) -> Result<R::Response, RequestFailure> {
        self.send(question)?;
        self.receive::<R>()
    }

    /// The same without a look at when the login ends: what logs in is asked like this.
    pub(super) fn ask_at_once<R: Request>(&mut self, question: &R) -> Result<R::Response, RequestFailure> {
        self.send_at_once(question)?;
        self.receive::<R>()
    }

    /// Why no answer begins. A listener that wants a login answers `ApiVersions`, and closes the connection at any other question.
    fn of_silence(&self, error: &io::Error) -> RequestFailure {
        match in_words(error) {
            RequestFailure::Closed if self.correlation_id == 2 && self.access.login.is_none() => {
                RequestFailure::Away(format!(
                    "{CLOSED} at the first question; if it wants a login, name the user (kafka://user@host, or kafkas:// by TLS)"
                ))
            }
            failed => failed,
        }
    }
}

/// What a person reads for it.
fn in_words(error: &io::Error) -> RequestFailure {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            RequestFailure::Away(format!("no whole answer within {} s", ANSWER.as_secs()))
        }
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => RequestFailure::Closed,
        _ => RequestFailure::Away(one_line(&error.to_string())),
    }
}
