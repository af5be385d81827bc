//! A link of TCP, or of TLS over TCP, non-blocking.

use crate::endpoint::{Endpoint, Transport};
use crate::link_error::{LinkError, State};
use crate::sys::{self, AcknowledgedBytes};
use mio::net::TcpStream;
use rustls::{ClientConnection, ServerConfig, ServerConnection};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;
use weir_address::networks;

pub(crate) struct Link {
    pub(crate) stream: TcpStream,
    tls: Option<Box<rustls::Connection>>,
    /// Plain bytes (TCP), or none (TLS keeps its own), that the kernel did not take.
    outbox: Vec<u8>,
    outbox_start: usize,
    pub(crate) state: State,
    /// Whether bytes were refused since the last [`crate::Event::Writable`].
    refused: bool,
    /// The error of a write. The kernel reports it once; the session gets it after what came before it was read.
    broken: Option<LinkError>,
    /// Whether the end will be a reset.
    resetting: bool,
}

/// What came of bytes that were decrypted.
#[derive(Debug)]
pub(crate) struct DecryptOutcome {
    /// Whether the link has just opened.
    pub(crate) opened: bool,
    /// Why the link ends behind them, if it does.
    pub(crate) end: Option<LinkError>,
}

/// Bytes that a link keeps for a peer before [`Link::write`] refuses: one TLS record's worth.
const TLS_BUFFER: usize = 64 * 1024;

impl Link {
    /// Begins to connect.
    pub(crate) fn open(endpoint: &Endpoint) -> Result<Self, LinkError> {
        let socket = connect(endpoint).map_err(|error| LinkError::io(&error, State::Connecting))?;
        let tls = match &endpoint.transport {
            Transport::Tls(config, name) => {
                let mut client =
                    ClientConnection::new(config.clone(), name.clone()).map_err(|e| LinkError::tls(&e))?;
                client.set_buffer_limit(Some(TLS_BUFFER));
                Some(Box::new(client.into()))
            }
            Transport::Tcp | Transport::Udp | Transport::BoundUdp | Transport::SharedUdp(_) => None,
        };
        let stream = TcpStream::from_std(socket.into());
        Ok(Self::new(stream, tls, State::Connecting))
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
        Self {
            stream,
            tls,
            outbox: Vec::new(),
            outbox_start: 0,
            state,
            refused: false,
            broken: None,
            resetting: false,
        }
    }

    /// Called when the socket is writable: ends the connecting, sends what waits.
    /// Says whether the link has just opened.
    pub(crate) fn writable(&mut self) -> Result<bool, LinkError> {
        let mut opened = false;
        if self.state == State::Connecting {
            let refused = |error: io::Error| LinkError::io(&error, State::Connecting);
            if let Some(error) = self.stream.take_error().map_err(refused)? {
                return Err(refused(error));
            }
            match self.stream.peer_addr() {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(false),
                Err(error) => return Err(refused(error)),
            }
            opened = self.tls.is_none();
            self.state = if opened { State::Open } else { State::Securing };
        }
        self.flush();
        Ok(opened)
    }

    /// Whether the link has refused bytes and takes them again; says so once.
    pub(crate) fn has_room_again(&mut self) -> bool {
        let again = self.refused && self.state == State::Open && self.is_settled();
        self.refused &= !again;
        again
    }

    /// Whether a write has failed, so that the next read meets the end.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// Reads once into `buffer`. `None`: nothing waits.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => return Err(self.broken.take().unwrap_or_else(LinkError::closed)),
                Ok(n) => return Ok(Some(n)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(LinkError::io(&error, self.state)),
            }
        }
    }

    /// Whether bytes that [`Self::read`] brings must go through [`Self::decrypt`].
    pub(crate) fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// The protocol that TLS has settled on.
    pub(crate) fn alpn(&self) -> Option<&[u8]> {
        self.tls.as_ref()?.alpn_protocol()
    }

    /// Puts what was read into the TLS machine and moves what it holds in clear to `plain`.
    pub(crate) fn decrypt(&mut self, mut cipher: &[u8], plain: &mut Vec<u8>) -> DecryptOutcome {
        let Some(tls) = &mut self.tls else { return DecryptOutcome { opened: false, end: None } };
        let mut end = None;
        while !cipher.is_empty() && end.is_none() {
            end = match tls.read_tls(&mut cipher) {
                // The peer has sent close_notify; what it sends after that is ignored.
                Ok(0) => Some(LinkError::closed()),
                Ok(_) => open_records(tls, &mut self.stream, plain),
                Err(error) => Some(LinkError::io(&error, self.state)),
            };
        }
        let opened = self.state == State::Securing && !tls.is_handshaking();
        if opened {
            self.state = State::Open;
        }
        self.flush();
        DecryptOutcome { opened, end }
    }

    /// Sends what waits, until the kernel takes no more.
    fn flush(&mut self) {
        if self.state == State::Connecting || self.broken.is_some() {
            return;
        }
        loop {
            if let Some(tls) = &mut self.tls
                && tls.wants_write()
            {
                match tls.write_tls(&mut self.stream) {
                    Ok(_) => continue,
                    Err(error) => return self.note(&error),
                }
            }
            if self.outbox_start == self.outbox.len() {
                self.outbox = Vec::new();
                self.outbox_start = 0;
                return;
            }
            let waiting = &self.outbox[self.outbox_start..];
            let result = match &mut self.tls {
                Some(tls) => tls.writer().write(waiting),
                None => self.stream.write(waiting),
            };
            match result {
                // TLS keeps no more until its handshake is over.
                Ok(0) => return,
                Ok(n) => self.outbox_start += n,
                Err(error) => return self.note(&error),
            }
        }
    }

    /// Offers bytes once, none of which wait yet. Says how many were taken.
    fn offer(&mut self, slices: &[IoSlice<'_>]) -> usize {
        let result = match &mut self.tls {
            Some(tls) => tls.writer().write_vectored(slices),
            None => self.stream.write_vectored(slices),
        };
        let taken = result.unwrap_or_else(|error| {
            self.note(&error);
            0
        });
        if self.tls.is_some() {
            self.flush();
        }
        taken
    }

    /// Offers all but the first `taken` bytes, again and again, and says how many are taken by then. TLS keeps
    /// a limited number of bytes, and a system call takes a limited number of slices: the kernel says that there is room
    /// only behind its own limit.
    #[cold]
    fn offer_rest(&mut self, slices: &[IoSlice<'_>], asked: usize, mut taken: usize) -> usize {
        let mut slices = slices.to_vec();
        let mut rest = &mut slices[..];
        IoSlice::advance_slices(&mut rest, taken);
        while taken < asked && self.is_settled() {
            let more = self.offer(rest);
            if more == 0 {
                break;
            }
            IoSlice::advance_slices(&mut rest, more);
            taken += more;
        }
        taken
    }

    /// Takes note of a failed write. A full buffer is no failure: the kernel reports when it has room.
    fn note(&mut self, error: &io::Error) {
        if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) {
            self.broken.get_or_insert_with(|| LinkError::io(error, self.state));
        }
    }

    /// Whether the kernel has taken all there was.
    fn is_settled(&self) -> bool {
        self.unsent() == 0 && self.tls.as_ref().is_none_or(|tls| !tls.wants_write())
    }

    /// Tries to send what waits, and then close_notify (RFC 8446, section 6.1) if all was sent.
    pub(crate) fn close(&mut self) {
        self.flush();
        if let Some(tls) = &mut self.tls
            && self.state == State::Open
            && self.outbox_start == self.outbox.len()
            && !self.resetting
        {
            tls.send_close_notify();
            self.flush();
        }
    }

    /// Makes the close that follows a reset (socket(7), SO_LINGER with zero seconds).
    pub(crate) fn reset(&mut self) {
        self.resetting = true;
        // Fails only on a socket that is already gone.
        let _ = socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
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

impl Link {
    pub(crate) fn write(&mut self, slices: &[IoSlice<'_>]) -> usize {
        let asked: usize = slices.iter().map(|slice| slice.len()).sum();
        let mut taken = 0;
        if self.state == State::Open && self.unsent() == 0 && self.broken.is_none() {
            taken = self.offer(slices);
            if 0 < taken && taken < asked {
                taken = self.offer_rest(slices, asked, taken);
            }
        }
        self.refused |= taken < asked;
        taken
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        if self.broken.is_some() {
            return;
        }
        let mut rest = bytes;
        if self.state == State::Open && self.tls.is_none() && self.unsent() == 0 {
            rest = &bytes[self.offer(&[IoSlice::new(bytes)])..];
        }
        if !rest.is_empty() {
            self.outbox.drain(..std::mem::take(&mut self.outbox_start));
            self.outbox.extend_from_slice(rest);
            self.flush();
            self.refused |= !self.is_settled();
        }
    }

    pub(crate) fn unsent(&self) -> usize {
        self.outbox.len() - self.outbox_start
    }

    pub(crate) fn unread(&self) -> usize {
        // A link that cannot be asked is read.
        rustix::io::ioctl_fionread(&self.stream).map_or(0, |bytes| bytes as usize)
    }

    /// How long ago its newest bytes came, read or unread, if it can be asked.
    pub(crate) fn received_ago(&self) -> Option<Duration> {
        sys::received_ago(self.stream.as_fd()).ok()
    }

    pub(crate) fn acknowledged(&self) -> AcknowledgedBytes {
        // A link that cannot be asked makes no progress.
        sys::acknowledged(self.stream.as_fd()).unwrap_or(AcknowledgedBytes { bytes: 0, ago: Duration::ZERO })
    }
}

/// Decrypts the records that TLS holds, and says why the link ends behind them, if it does.
fn open_records(
    tls: &mut rustls::Connection,
    stream: &mut TcpStream,
    plain: &mut Vec<u8>,
) -> Option<LinkError> {
    let outcome = tls.process_new_packets();
    // What stands before a malformed record is good.
    let said_goodbye = tls.reader().read_to_end(plain).is_ok();
    if let Err(error) = outcome {
        // The TLS state machine holds the alert with the reason; the link ends either way.
        let _ = tls.write_tls(stream);
        return Some(LinkError::tls(&error));
    }
    said_goodbye.then(LinkError::closed)
}

/// A non-blocking socket on its way to the peer.
fn connect(endpoint: &Endpoint) -> io::Result<Socket> {
    networks::check(endpoint.address.ip())?;
    let socket = Socket::new(
        Domain::for_address(endpoint.address),
        Type::STREAM.nonblocking().cloexec(),
        Some(Protocol::TCP),
    )?;
    socket.set_tcp_nodelay(true)?;
    if let Some(from) = endpoint.from {
        sys::bind_address_without_port(socket.as_fd())?;
        socket.bind(&SocketAddr::new(from, 0).into())?;
    }
    match socket.connect(&endpoint.address.into()) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(socket),
    }
}
