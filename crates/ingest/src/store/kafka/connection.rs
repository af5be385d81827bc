//! A connection to a broker: one question after the other, with a bound on how long an answer takes and how large it is.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;
use weir_kafka::{
    ApiVersions, CreateTopics, DeleteRecords, DescribeConfigs, Fetch, InitProducerId, ListOffsets,
    MetadataRequest, Produce, Request, answer, request,
};

/// How long a connection may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a broker may take to answer: longer than it is told to wait for replicas.
const ANSWER: Duration = Duration::from_secs(40);

/// The largest answer: what is fetched at once, and one batch of records, which may be as large as a message.
const LARGEST: usize = 128 << 20;

/// A connection.
pub(super) struct Connection {
    link: TcpStream,
    /// `host:port`
    pub(super) name: String,
    correlation_id: i32,
    frame: Vec<u8>,
}

/// The oldest broker whose every request is spoken here.
pub(super) const OLDEST: &str = "Kafka 2.4";

impl Connection {
    /// Connects, and asks whether the broker speaks what is spoken here; `false` if it does not.
    pub(super) fn open(host: &str, port: u16) -> io::Result<(Self, bool)> {
        let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
        for address in (host, port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(link) => {
                    link.set_nodelay(true)?;
                    link.set_read_timeout(Some(ANSWER))?;
                    link.set_write_timeout(Some(ANSWER))?;
                    let name = format!("{host}:{port}");
                    let mut connection = Self { link, name, correlation_id: 0, frame: Vec::new() };
                    let fits = connection.fits()?;
                    return Ok((connection, fits));
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn fits(&mut self) -> io::Result<bool> {
        let versions = self.ask(&ApiVersions).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => io::Error::new(
                error.kind(),
                "it closes the connection; is this a listener of Kafka without TLS (PLAINTEXT)?",
            ),
            _ => error,
        })?;
        Ok(versions.has::<MetadataRequest<'_>>()
            && versions.has::<CreateTopics<'_>>()
            && versions.has::<DescribeConfigs<'_>>()
            && versions.has::<InitProducerId>()
            && versions.has::<ListOffsets<'_>>()
            && versions.has::<Fetch<'_>>()
            && versions.has::<Produce<'_>>()
            && versions.has::<DeleteRecords<'_>>())
    }

    /// Sends a request. Its answer is [received](Self::receive) before another is sent.
    pub(super) fn send<R: Request>(&mut self, question: &R) -> io::Result<()> {
        self.correlation_id = self.correlation_id.wrapping_add(1);
        request(question, self.correlation_id, &mut self.frame);
        self.link.write_all(&self.frame).map_err(in_words)
    }

    /// The answer to what was sent last.
    pub(super) fn receive<R: Request>(&mut self) -> io::Result<R::Response> {
        let invalid = |words: String| io::Error::new(ErrorKind::InvalidData, words);
        let mut length = [0; 4];
        self.link.read_exact(&mut length).map_err(in_words)?;
        let length = i32::from_be_bytes(length);
        let Some(length) = usize::try_from(length).ok().filter(|length| *length <= LARGEST) else {
            return Err(invalid(format!("an answer of {length} bytes; is this a listener of Kafka?")));
        };
        // Grows with what comes, not with what is announced.
        self.frame.clear();
        let read = (&mut self.link).take(length as u64).read_to_end(&mut self.frame).map_err(in_words)?;
        if read < length {
            return Err(in_words(ErrorKind::UnexpectedEof.into()));
        }
        let (id, response) = answer::<R>(&self.frame).map_err(|error| invalid(error.to_string()))?;
        if id != self.correlation_id {
            return Err(invalid("an answer to another question".to_owned()));
        }
        Ok(response)
    }

    /// Sends a request and waits for its answer.
    pub(super) fn ask<R: Request>(&mut self, question: &R) -> io::Result<R::Response> {
        self.send(question)?;
        self.receive::<R>()
    }
}

/// What a person reads for it.
fn in_words(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            io::Error::new(error.kind(), format!("no answer within {} s", ANSWER.as_secs()))
        }
        ErrorKind::UnexpectedEof => io::Error::new(error.kind(), "it has closed the connection"),
        _ => error,
    }
}
