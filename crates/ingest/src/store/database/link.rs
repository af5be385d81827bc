//! The link to a PostgreSQL server: TLS as its URL asks for it, a bound on what each message of the server may hold, which the client
//! library gathers whole, whatever its length, a deadline, and which logins may be answered. It knows no database and no rows.

use super::deadline::{Alarm, Deadline};
use crate::store::clear_text::Exposure;
use postgres::Socket;
use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Bytes of one message of a server: weir asks for rows of a few numbers, and a table's definition is a few kilobytes.
const MOST_MESSAGE: u32 = 64 << 20;
/// Bytes of a message's head: its kind, and a length that counts itself and what follows (PostgreSQL 17, 53.7 "Message Formats").
const HEAD: usize = 5;
/// SSLRequest: a length of 8, and the code 80877103 (53.7).
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xD2, 0x16, 0x2F];

/// Authentication requests that are answered with the password as it is, and with an MD5 of it, which is as good as it to whoever hears
/// both (53.2.1 "Start-up", `AuthenticationCleartextPassword` and `AuthenticationMD5Password`).
const CLEAR_TEXT: [u8; 4] = 3_u32.to_be_bytes();
const MD5: [u8; 4] = 5_u32.to_be_bytes();
/// The kind of all authentication requests.
const AUTHENTICATION: u8 = b'R';

/// Whether a link over TCP is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TlsMode {
    /// It is not.
    Plain,
    /// If the server can.
    IfItCan,
    /// Or there is none.
    Always,
}

/// Makes links. For the client library it is a maker of TLS that is spoken from the first byte on, since this is the one place where the
/// library hands over its socket; the request for TLS is made here (53.2.10 "SSL Session Encryption").
#[derive(Clone)]
pub(super) struct LinkMaker {
    pub(super) wanted: TlsMode,
    pub(super) tls: MakeRustlsConnect,
    /// How long TLS may take, and after it the login.
    pub(super) patience: Duration,
    /// By when the server must have answered. It is set here for the login, and then by whoever asks.
    pub(super) deadline: Deadline,
    /// Whether a password may go over a link that is not encrypted.
    pub(super) exposure: Exposure,
}

type RustlsConnect = <MakeRustlsConnect as MakeTlsConnect<Socket>>::TlsConnect;
type RustlsStream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

impl MakeTlsConnect<Socket> for LinkMaker {
    type Stream = BoundedLink<Link>;
    type TlsConnect = LinkConnect;
    type Error = Infallible;

    fn make_tls_connect(&mut self, host: &str) -> Result<LinkConnect, Infallible> {
        let tls = <MakeRustlsConnect as MakeTlsConnect<Socket>>::make_tls_connect(&mut self.tls, host)?;
        let Self { wanted, patience, deadline, exposure, .. } = self.clone();
        Ok(LinkConnect { wanted, tls, patience, deadline, exposure })
    }
}

/// One link that is about to be made.
pub(super) struct LinkConnect {
    wanted: TlsMode,
    tls: RustlsConnect,
    patience: Duration,
    deadline: Deadline,
    exposure: Exposure,
}

impl TlsConnect<Socket> for LinkConnect {
    type Stream = BoundedLink<Link>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<BoundedLink<Link>>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let Self { wanted, tls, patience, deadline, exposure } = self;
            let seconds = patience.as_secs_f64();
            let secured = tokio::time::timeout(patience, secure(wanted, tls, socket)).await;
            let link = secured.map_err(|_| {
                let words = format!("it took the connection, and there was no TLS within {seconds} s");
                io::Error::new(io::ErrorKind::TimedOut, words)
            })??;
            let words = format!("it took the connection, and the login was not over within {seconds} s");
            deadline.allow(patience, words);
            let exposure = if matches!(link, Link::Plain(_)) { exposure } else { Exposure::Safe };
            Ok(BoundedLink {
                link,
                messages: Messages { exposure, ..Messages::default() },
                alarm: Alarm::new(deadline),
            })
        })
    }
}

/// Asks for TLS if it is wanted, and begins it.
async fn secure(wanted: TlsMode, tls: RustlsConnect, mut socket: Socket) -> io::Result<Link> {
    if wanted == TlsMode::Plain {
        return Ok(Link::Plain(socket));
    }
    socket.write_all(&SSL_REQUEST).await?;
    let mut answer = [0];
    socket.read_exact(&mut answer).await?;
    match (answer, wanted) {
        ([b'S'], _) => Ok(Link::Encrypted(Box::new(tls.connect(socket).await?))),
        (_, TlsMode::Always) => Err(io::Error::other("server does not support TLS")),
        _ => Ok(Link::Plain(socket)),
    }
}

/// A link, encrypted or not.
pub(super) enum Link {
    Plain(Socket),
    Encrypted(Box<RustlsStream>),
}

/// A link that ends with the first message that is longer than any may be, with a request for a password that it may not carry, and when
/// the server is no longer waited for.
pub(super) struct BoundedLink<L> {
    link: L,
    messages: Messages,
    alarm: Alarm,
}

/// Where in the messages of a server what has been read ends.
#[derive(Debug, Default)]
struct Messages {
    head: [u8; HEAD],
    /// Bytes of the head that are there.
    known: usize,
    /// Bytes of the message that are to come.
    left: usize,
    /// Of an authentication request, its first bytes, which say what it asks for.
    request: Vec<u8>,
    exposure: Exposure,
}

impl Messages {
    fn take(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.left > 0 {
                let skipped = self.left.min(bytes.len());
                if self.head[0] == AUTHENTICATION && self.request.len() < CLEAR_TEXT.len() {
                    let missing = CLEAR_TEXT.len() - self.request.len();
                    self.request.extend_from_slice(&bytes[..skipped.min(missing)]);
                    self.check_request()?;
                }
                self.left -= skipped;
                bytes = &bytes[skipped..];
                continue;
            }
            let added = (HEAD - self.known).min(bytes.len());
            self.head[self.known..][..added].copy_from_slice(&bytes[..added]);
            self.known += added;
            bytes = &bytes[added..];
            if self.known == HEAD {
                let [_, length @ ..] = self.head;
                let length = u32::from_be_bytes(length);
                if length > MOST_MESSAGE {
                    let words = format!(
                        "the server announces a message of {length} bytes, and {} MiB are the most: is PostgreSQL there?",
                        MOST_MESSAGE >> 20
                    );
                    return Err(io::Error::new(io::ErrorKind::InvalidData, words));
                }
                // A length that does not count itself is for the library to refuse.
                (self.known, self.left) = (0, (length as usize).saturating_sub(size_of::<u32>()));
                self.request.clear();
            }
        }
        Ok(())
    }

    /// Whether the library may answer an authentication request.
    fn check_request(&self) -> io::Result<()> {
        let sent = match self.request[..] {
            _ if self.exposure == Exposure::Safe => return Ok(()),
            ref request if *request == CLEAR_TEXT => "as it is",
            ref request if *request == MD5 => "as an MD5",
            _ => return Ok(()),
        };
        Err(io::Error::new(io::ErrorKind::PermissionDenied, PasswordExposed { sent }))
    }
}

/// A login that would show the password to anyone on the way, and was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its login asks for the password {sent}")]
pub(super) struct PasswordExposed {
    /// How the password would be sent.
    pub(super) sent: &'static str,
}

impl<L: AsyncRead + Unpin> AsyncRead for BoundedLink<L> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(late) = self.alarm.poll_expired(cx) {
            return Poll::Ready(Err(late));
        }
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.link).poll_read(cx, buf);
        if let Poll::Ready(Ok(())) = polled {
            self.messages.take(&buf.filled()[before..])?;
        }
        polled
    }
}

impl<L: AsyncWrite + Unpin> AsyncWrite for BoundedLink<L> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.link).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.link).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.link).poll_shutdown(cx)
    }
}

impl TlsStream for BoundedLink<Link> {
    fn channel_binding(&self) -> ChannelBinding {
        match &self.link {
            Link::Plain(_) => ChannelBinding::none(),
            Link::Encrypted(stream) => stream.channel_binding(),
        }
    }
}

impl AsyncRead for Link {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_read(cx, buf),
            Self::Encrypted(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Link {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_write(cx, bytes),
            Self::Encrypted(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_flush(cx),
            Self::Encrypted(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Encrypted(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(length: u32) -> Vec<u8> {
        [&b"D"[..], &length.to_be_bytes(), &vec![0; length as usize - 4]].concat()
    }

    #[test]
    fn a_password_is_sent_neither_as_it_is_nor_as_an_md5_over_a_link_that_shows_it() {
        let request = |code: u32, more: &[u8]| {
            let length = 8 + more.len() as u32;
            [&b"R"[..], &length.to_be_bytes(), &code.to_be_bytes(), more].concat()
        };
        // 0: well; 3: the password; 5: an MD5 of it and four bytes of salt; 10 and 11: SASL, of which SCRAM is one (53.7).
        for (code, more, sent) in [
            (0, &b""[..], None),
            (3, b"", Some("as it is")),
            (5, b"salt", Some("as an MD5")),
            (10, b"SCRAM-SHA-256\0\0", None),
            (11, b"r=\0\0\0\x03", None),
        ] {
            let bytes = request(code, more);
            for size in [1, 3, 6, bytes.len()] {
                for exposure in [Exposure::Safe, Exposure::Exposed] {
                    let mut messages = Messages { exposure, ..Messages::default() };
                    let taken: io::Result<Vec<()>> =
                        bytes.chunks(size).map(|part| messages.take(part)).collect();
                    let refused = taken.err().map(|error| error.to_string());
                    let expected = sent.filter(|_| exposure == Exposure::Exposed);
                    let expected = expected.map(|sent| format!("its login asks for the password {sent}"));
                    assert_eq!(refused, expected, "{code} {size}");
                }
            }
        }
    }

    #[test]
    fn messages_are_followed_however_they_are_split_and_the_first_that_is_too_long_ends_the_link() {
        let stream = [message(4), message(300), message(5)].concat();
        let too_long = [b'D', 4, 0, 0, 1];
        for size in [1, 2, 3, 5, 7, 100, stream.len()] {
            let mut messages = Messages::default();
            for part in stream.chunks(size) {
                messages.take(part).unwrap();
            }
            assert_eq!((messages.known, messages.left), (0, 0), "{size}");
            let taken: io::Result<Vec<()>> = too_long.chunks(size).map(|part| messages.take(part)).collect();
            let error = taken.unwrap_err().to_string();
            assert!(error.contains("a message of 67108865 bytes, and 64 MiB are the most"), "{error}");
        }
        assert!(Messages::default().take(&[b'D', 4, 0, 0, 0]).is_ok(), "as long as one may be");
    }
}
