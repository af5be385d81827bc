//! A link: TCP, or TLS over TCP, non-blocking. (UDP links join here.)

use crate::session::Transmit;
use crate::{SessionId, sys};
use mio::net::TcpStream;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;
use weir_metrics::Failure;

/// Where a link leads and what it speaks.
#[derive(Clone, Debug)]
pub struct Door {
    /// The peer.
    pub address: SocketAddr,
    /// The local address to connect from, if not the system's choice.
    pub from: Option<IpAddr>,
    /// TLS settings and the name that the peer's certificate must carry.
    pub tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

pub(crate) struct Link {
    pub(crate) stream: TcpStream,
    tls: Option<Box<rustls::Connection>>,
    /// Plain bytes (TCP), or none (TLS keeps its own), that the kernel did not take.
    outbox: Vec<u8>,
    outbox_start: usize,
    pub(crate) state: State,
    /// Whether the peer refused bytes since the last [`crate::Event::Writable`].
    pub(crate) refused: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Connecting,
    Securing,
    Open,
}

/// Why a link ended.
#[derive(Debug)]
pub(crate) struct LinkError {
    pub(crate) failure: Failure,
    pub(crate) words: String,
}

impl LinkError {
    fn io(error: &io::Error) -> Self {
        let failure = match error.kind() {
            ErrorKind::ConnectionRefused => Failure::ConnectionRefused,
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => {
                Failure::Reset
            }
            ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => Failure::Unreachable,
            ErrorKind::TimedOut => Failure::ConnectTimeout,
            ErrorKind::AddrNotAvailable => Failure::OutOfPorts,
            _ if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
                Failure::OutOfDescriptors
            }
            _ => Failure::SocketError,
        };
        Self { failure, words: error.to_string() }
    }

    fn tls(error: &rustls::Error) -> Self {
        Self { failure: Failure::TlsFailed, words: error.to_string() }
    }

    fn closed() -> Self {
        Self { failure: Failure::ClosedByPeer, words: String::new() }
    }
}

/// Bytes that a link keeps for a peer before [`Transmit::write`] refuses: one TLS record's worth.
const TLS_BUFFER: usize = 64 * 1024;

impl Link {
    /// Begins to connect.
    pub(crate) fn open(door: &Door) -> Result<Self, LinkError> {
        let socket = connect(door).map_err(|error| LinkError::io(&error))?;
        let tls = match &door.tls {
            Some((config, name)) => {
                let mut client =
                    ClientConnection::new(config.clone(), name.clone()).map_err(|e| LinkError::tls(&e))?;
                client.set_buffer_limit(Some(TLS_BUFFER));
                Some(Box::new(client.into()))
            }
            None => None,
        };
        Ok(Self::new(TcpStream::from_std(socket.into()), tls, State::Connecting))
    }

    /// Takes an accepted connection.
    pub(crate) fn accepted(stream: TcpStream, tls: Option<&Arc<ServerConfig>>) -> Result<Self, LinkError> {
        // Fails only on a socket that is already gone, which the first read reports.
        let _ = stream.set_nodelay(true);
        let tls = match tls {
            Some(config) => {
                let mut server = ServerConnection::new(config.clone()).map_err(|e| LinkError::tls(&e))?;
                server.set_buffer_limit(Some(TLS_BUFFER));
                Some(Box::new(server.into()))
            }
            None => None,
        };
        let state = if tls.is_some() { State::Securing } else { State::Open };
        Ok(Self::new(stream, tls, state))
    }

    fn new(stream: TcpStream, tls: Option<Box<rustls::Connection>>, state: State) -> Self {
        Self { stream, tls, outbox: Vec::new(), outbox_start: 0, state, refused: false }
    }

    /// Called when the socket is writable: ends the connecting, sends what waits.
    /// Says whether the link has just opened.
    pub(crate) fn writable(&mut self) -> Result<bool, LinkError> {
        let mut opened = false;
        if self.state == State::Connecting {
            if let Some(error) = self.stream.take_error().map_err(|e| LinkError::io(&e))? {
                return Err(LinkError::io(&error));
            }
            match self.stream.peer_addr() {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(false),
                Err(error) => return Err(LinkError::io(&error)),
            }
            opened = self.tls.is_none();
            self.state = if opened { State::Open } else { State::Securing };
        }
        self.flush()?;
        Ok(opened)
    }

    /// Reads once into `buffer`. `None`: nothing waits.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => return Err(LinkError::closed()),
                Ok(n) => return Ok(Some(n)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(LinkError::io(&error)),
            }
        }
    }

    /// Whether bytes that [`Self::read`] brings must go through [`Self::decrypt`].
    pub(crate) fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Puts what was read into the TLS machine and moves what it holds in clear to `plain`.
    /// Says whether the link has just opened.
    pub(crate) fn decrypt(&mut self, mut cipher: &[u8], plain: &mut Vec<u8>) -> Result<bool, LinkError> {
        let Some(tls) = &mut self.tls else { return Ok(false) };
        let mut ended = false;
        while !cipher.is_empty() {
            tls.read_tls(&mut cipher).map_err(|error| LinkError::io(&error))?;
            let outcome = tls.process_new_packets();
            if let Err(error) = outcome {
                // The alert that tells the peer why is in the machine; the link ends either way.
                let _ = tls.write_tls(&mut self.stream);
                return Err(LinkError::tls(&error));
            }
            match tls.reader().read_to_end(plain) {
                Ok(_) => ended = true,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(LinkError::io(&error)),
            }
        }
        let opened = self.state == State::Securing && !tls.is_handshaking();
        if opened {
            self.state = State::Open;
        }
        self.flush()?;
        if ended && plain.is_empty() { Err(LinkError::closed()) } else { Ok(opened) }
    }

    /// Sends what waits, as far as the kernel takes it.
    pub(crate) fn flush(&mut self) -> Result<(), LinkError> {
        if self.state == State::Connecting {
            return Ok(());
        }
        loop {
            if let Some(tls) = &mut self.tls
                && tls.wants_write()
            {
                match tls.write_tls(&mut self.stream) {
                    Ok(_) => continue,
                    Err(error) => return self.after_write_error(&error),
                }
            }
            if self.outbox_start == self.outbox.len() {
                self.outbox = Vec::new();
                self.outbox_start = 0;
                return Ok(());
            }
            let waiting = &self.outbox[self.outbox_start..];
            let result = match &mut self.tls {
                Some(tls) => tls.writer().write(waiting),
                None => self.stream.write(waiting),
            };
            match result {
                Ok(n) => self.outbox_start += n,
                Err(error) => return self.after_write_error(&error),
            }
        }
    }

    fn after_write_error(&mut self, error: &io::Error) -> Result<(), LinkError> {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::Interrupted => {
                self.refused = true;
                Ok(())
            }
            _ => Err(LinkError::io(error)),
        }
    }

    /// Makes the close that follows a reset (socket(7), SO_LINGER with zero seconds).
    pub(crate) fn reset(&self) {
        // Fails only on a socket that is already gone.
        let _ = socket2::SockRef::from(&self.stream).set_linger(Some(std::time::Duration::ZERO));
    }

    /// Sets the low-water mark, and a receive buffer that holds several times as much.
    pub(crate) fn set_low_water(&self, bytes: usize) {
        // Both only tune: on refusal the link works, with more wake-ups.
        if bytes > 1 {
            let _ = socket2::SockRef::from(&self.stream).set_recv_buffer_size((bytes * 8).max(256 * 1024));
        }
        let _ = sys::set_receive_low_water(self.stream.as_fd(), bytes.max(1));
    }
}

impl Transmit for Link {
    fn write(&mut self, slices: &[IoSlice<'_>]) -> usize {
        if self.state != State::Open || self.unsent() > 0 {
            self.refused = true;
            return 0;
        }
        let asked: usize = slices.iter().map(|slice| slice.len()).sum();
        let result = match &mut self.tls {
            Some(tls) => tls.writer().write_vectored(slices),
            None => self.stream.write_vectored(slices),
        };
        // An error other than a full buffer is met again by the read that follows it.
        let taken = result.unwrap_or(0);
        self.refused |= taken < asked;
        if self.tls.is_some() {
            let _ = self.flush();
        }
        taken
    }

    fn send(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        if self.state == State::Open && self.tls.is_none() && self.unsent() == 0 {
            rest = &bytes[self.stream.write(bytes).unwrap_or(0)..];
        }
        if !rest.is_empty() {
            self.outbox.drain(..std::mem::take(&mut self.outbox_start));
            self.outbox.extend_from_slice(rest);
            self.refused = true;
            let _ = self.flush();
        }
    }

    fn unsent(&self) -> usize {
        self.outbox.len() - self.outbox_start
    }
}

/// A non-blocking socket on its way to the peer.
fn connect(door: &Door) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(door.address),
        Type::STREAM.nonblocking().cloexec(),
        Some(Protocol::TCP),
    )?;
    socket.set_tcp_nodelay(true)?;
    if let Some(from) = door.from {
        sys::bind_address_without_port(socket.as_fd())?;
        socket.bind(&SocketAddr::new(from, 0).into())?;
    }
    match socket.connect(&door.address.into()) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(socket),
    }
}

/// What a shard keeps for one session.
pub(crate) struct Entry<W> {
    pub(crate) id: SessionId,
    pub(crate) session: Box<dyn crate::Session<W>>,
    pub(crate) link: Link,
    pub(crate) deadline: crate::timer::Deadline,
    pub(crate) low_water: usize,
    pub(crate) paused: bool,
    /// Most bytes of one read.
    pub(crate) read_limit: usize,
}
