//! TCP sockets asked of the kernel over netlink: sock_diag(7), requests and answers by hand.
//!
//! The kernel picks by local port and state, so the cost of an answer follows the number of matching
//! sockets: 8,000 connections cost about 6 ms, and `/proc/net/tcp` with both ends of them 32 ms. What comes on top is a
//! walk through the kernel's whole table. The older form of the request (`TCPDIAG_GETSOCK`) asks for IPv4 and IPv6
//! in one walk; the newer wants one for each.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};

/// A TCP state, as the kernel numbers it (`include/net/tcp_states.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum TcpState {
    Established = 1,
    Listen = 10,
}

/// One socket of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Socket {
    pub(crate) local_port: u16,
    pub(crate) inode: u64,
}

/// A netlink socket to the kernel's table of TCP sockets, of weir's own network namespace.
#[derive(Debug)]
pub(crate) struct SockDiag {
    socket: OwnedFd,
    sequence: u32,
    answer: Vec<u8>,
}

impl SockDiag {
    /// Fails where the kernel has no sock_diag, or a sandbox forbids it.
    pub(crate) fn open() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(SOCK_DIAG))?;
        // The kernel answers at once; should it not, a sample must not hang.
        set_socket_timeout(&socket, Timeout::Recv, Some(Duration::from_secs(1)))?;
        Ok(Self { socket, sequence: 0, answer: vec![0; 32 * 1024] })
    }

    /// Calls `found` for every TCP socket, IPv4 and IPv6, in this state and on this local port; port 0
    /// stands for every port.
    pub(crate) fn each(
        &mut self,
        state: TcpState,
        port: u16,
        mut found: impl FnMut(Socket),
    ) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = request(self.sequence, state, port);
        sendto(&self.socket, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        while !self.receive(&mut found)? {}
        Ok(())
    }

    /// Takes one datagram of the answer; true after the last.
    fn receive(&mut self, found: &mut impl FnMut(Socket)) -> io::Result<bool> {
        let (length, _) = recv(&self.socket, &mut self.answer[..], RecvFlags::empty())?;
        for message in Messages::of(&self.answer[..length], self.sequence) {
            match message {
                Message::Socket(socket) => found(socket),
                Message::Done => return Ok(true),
                Message::Failed(errno) => return Err(io::Error::from_raw_os_error(errno)),
            }
        }
        Ok(false)
    }
}

const TCPDIAG_GETSOCK: u16 = 18;
const NLM_F_REQUEST_DUMP: u16 = 0x301;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;

/// `struct nlmsghdr` and `struct inet_diag_req`, all but the port in host byte order.
fn request(sequence: u32, state: TcpState, port: u16) -> [u8; 76] {
    let mut request = [0; 76];
    request[0..4].copy_from_slice(&76u32.to_ne_bytes());
    request[4..6].copy_from_slice(&TCPDIAG_GETSOCK.to_ne_bytes());
    request[6..8].copy_from_slice(&NLM_F_REQUEST_DUMP.to_ne_bytes());
    request[8..12].copy_from_slice(&sequence.to_ne_bytes());
    request[20..22].copy_from_slice(&port.to_be_bytes());
    request[68..72].copy_from_slice(&(1u32 << state as u8).to_ne_bytes());
    request
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Message {
    Socket(Socket),
    Done,
    Failed(i32),
}

/// The messages of one datagram that answer request `sequence`; leftovers of an earlier one are skipped.
struct Messages<'a> {
    rest: &'a [u8],
    sequence: u32,
}

impl<'a> Messages<'a> {
    fn of(datagram: &'a [u8], sequence: u32) -> Self {
        Self { rest: datagram, sequence }
    }
}

impl Iterator for Messages<'_> {
    type Item = Message;

    fn next(&mut self) -> Option<Message> {
        loop {
            let length = u32::from_ne_bytes(self.rest.get(0..4)?.try_into().ok()?) as usize;
            let message = self.rest.get(..length).filter(|message| message.len() >= 16)?;
            self.rest = self.rest.get(length.next_multiple_of(4)..).unwrap_or_default();
            if message[8..12] != self.sequence.to_ne_bytes() {
                continue;
            }
            match u16::from_ne_bytes([message[4], message[5]]) {
                NLMSG_DONE => return Some(Message::Done),
                NLMSG_ERROR => {
                    let errno = i32::from_ne_bytes(message.get(16..20)?.try_into().ok()?);
                    return Some(Message::Failed(errno.saturating_neg()));
                }
                TCPDIAG_GETSOCK => {
                    // struct inet_diag_msg: the local port after 4 bytes, the inode after 68.
                    let local_port = u16::from_be_bytes(message.get(20..22)?.try_into().ok()?);
                    let inode = u32::from_ne_bytes(message.get(84..88)?.try_into().ok()?).into();
                    return Some(Message::Socket(Socket { local_port, inode }));
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(kind: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
        let mut message = Vec::new();
        message.extend((16 + body.len() as u32).to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(2u16.to_ne_bytes());
        message.extend(sequence.to_ne_bytes());
        message.extend(0u32.to_ne_bytes());
        message.extend(body);
        message
    }

    #[test]
    fn an_answer_is_sockets_and_then_done() {
        let mut body = [0; 108];
        body[4..6].copy_from_slice(&1935u16.to_be_bytes());
        body[68..72].copy_from_slice(&10241u32.to_ne_bytes());
        let mut datagram = message(TCPDIAG_GETSOCK, 6, &body);
        datagram.extend(message(TCPDIAG_GETSOCK, 7, &body));
        datagram.extend(message(NLMSG_DONE, 7, &[0; 4]));
        let answer: Vec<_> = Messages::of(&datagram, 7).collect();
        assert_eq!(answer, [Message::Socket(Socket { local_port: 1935, inode: 10241 }), Message::Done]);
    }

    #[test]
    fn a_refusal_carries_its_errno() {
        let datagram = message(NLMSG_ERROR, 1, &(-2i32).to_ne_bytes());
        assert_eq!(Messages::of(&datagram, 1).next(), Some(Message::Failed(2)));
    }

    proptest! {
        #[test]
        fn no_datagram_panics_or_hangs(datagram: Vec<u8>, sequence: u32) {
            prop_assert!(Messages::of(&datagram, sequence).count() <= datagram.len());
        }

        #[test]
        fn no_cut_answer_panics(cut in 0usize..124) {
            Messages::of(&message(TCPDIAG_GETSOCK, 1, &[1; 108])[..cut], 1).count();
        }
    }
}
