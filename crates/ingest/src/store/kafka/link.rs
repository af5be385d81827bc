//! The bytes of a connection, by TLS or without, all of which come and go by one moment.

use super::failed::{RequestFailure, one_line};
use crate::store::clear_text::is_here;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_setting::CACERT;
use weir_shard::tls::{ClientConfig, ClientConnection, Error as TlsError, ServerName, StreamOwned};

/// How long a connection may take, its TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What helps against a certificate that is not trusted.
fn trust() -> String {
    format!("name who signed its certificate ({}), and the host as the certificate does", CACERT.to("FILE"))
}

/// A socket whose reads and writes end by one moment: a peer that sends a byte at a time does not move it.
struct DeadlineSocket {
    socket: TcpStream,
    until: Instant,
}

impl DeadlineSocket {
    fn left(&self) -> io::Result<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

impl Read for DeadlineSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(Some(self.left()?))?;
        self.socket.read(buffer)
    }
}

impl Write for DeadlineSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(Some(self.left()?))?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

/// A link to a broker.
pub(super) struct Link(Transport);

enum Transport {
    Plain(DeadlineSocket),
    Tls(Box<StreamOwned<ClientConnection, DeadlineSocket>>),
}

impl Link {
    /// Connects, by TLS if there are settings for it.
    pub(super) fn open(
        host: &str,
        address: &SocketAddr,
        tls: Option<&Arc<ClientConfig>>,
    ) -> Result<Self, RequestFailure> {
        let until = Instant::now() + CONNECT_TIMEOUT;
        let socket = TcpStream::connect_timeout(address, CONNECT_TIMEOUT)?;
        socket.set_nodelay(true)?;
        let mut timed = DeadlineSocket { socket, until };
        let Some(config) = tls else { return Ok(Self(Transport::Plain(timed))) };
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| {
            RequestFailure::Unfit(format!("{} is not a name that a certificate can have", one_line(host)))
        })?;
        let connection = ClientConnection::new(config.clone(), name);
        let mut connection = connection.map_err(|error| RequestFailure::Unfit(error.to_string()))?;
        while connection.is_handshaking() {
            connection.complete_io(&mut timed).map_err(|error| of_handshake(&error))?;
        }
        Ok(Self(Transport::Tls(Box::new(StreamOwned::new(connection, timed)))))
    }

    fn timed(&self) -> &DeadlineSocket {
        match &self.0 {
            Transport::Plain(timed) => timed,
            Transport::Tls(stream) => &stream.sock,
        }
    }

    /// From here on all must be there within this time.
    pub(super) fn end_within(&mut self, time: Duration) {
        let timed = match &mut self.0 {
            Transport::Plain(timed) => timed,
            Transport::Tls(stream) => &mut stream.sock,
        };
        timed.until = Instant::now() + time;
    }

    /// Whether what is sent does not leave this machine.
    pub(super) fn is_local(&self) -> bool {
        self.timed().socket.peer_addr().is_ok_and(|address| is_here(address.ip()))
    }

    pub(super) fn is_tls(&self) -> bool {
        matches!(self.0, Transport::Tls(_))
    }
}

impl Read for Link {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Transport::Plain(timed) => timed.read(buffer),
            Transport::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Link {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Transport::Plain(timed) => timed.write(bytes),
            Transport::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Transport::Plain(timed) => timed.flush(),
            Transport::Tls(stream) => stream.flush(),
        }
    }
}

/// Why there is no TLS, with what helps.
fn of_handshake(error: &io::Error) -> RequestFailure {
    let of_tls = error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>());
    match (of_tls, error.kind()) {
        (Some(TlsError::InvalidCertificate(_)), _) => RequestFailure::Unfit(format!("{error}; {}", trust())),
        (Some(TlsError::InvalidMessage(_)), _) => RequestFailure::Unfit(format!(
            "it does not answer by TLS ({error}); write kafka:// for a listener without"
        )),
        (Some(_), _) => RequestFailure::Unfit(format!("TLS: {error}")),
        (None, ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {
            RequestFailure::Away(
                "it closes the connection when TLS begins; write kafka:// for a listener without TLS"
                    .to_owned(),
            )
        }
        (None, ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            RequestFailure::Away(format!("no TLS within {} s", CONNECT_TIMEOUT.as_secs()))
        }
        (None, _) => RequestFailure::Away(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_byte_at_a_time_does_not_move_the_end() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let drip = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            // Ends when the other side is gone.
            while peer.write_all(&[0]).is_ok() {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let mut link = Link::open("127.0.0.1", &address, None).unwrap();
        link.end_within(Duration::from_millis(200));
        let error = link.read_exact(&mut vec![0; 1 << 20]).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
        drop(link);
        drip.join().unwrap();
    }
}
