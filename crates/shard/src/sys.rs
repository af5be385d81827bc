//! The one place that calls the kernel past a safe wrapper.
//!
//! Invariant: every call passes a descriptor borrowed for the length of the call, if it takes one, and a pointer and
//! length of one live local of the type that the call or the option is documented to take or to give.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Sets `SO_RCVLOWAT`: the link becomes readable only when this number of bytes waits (socket(7)).
///
/// # Errors
/// The kernel's, for a descriptor that is not a stream socket.
pub(crate) fn set_receive_low_water(socket: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    set_integer(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes)
}

/// Sets `IP_BIND_ADDRESS_NO_PORT`: the local port is chosen at connect, per destination (ip(7)).
///
/// # Errors
/// The kernel's, for a descriptor that is not an IP socket.
pub(crate) fn bind_address_without_port(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_integer(socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)
}

/// Clears `IP_PKTINFO` or `IPV6_RECVPKTINFO`: the kernel does not say where each datagram was sent to (ip(7), ipv6(7)).
///
/// # Errors
/// The kernel's, for a descriptor that is not an IP socket.
pub(crate) fn leave_out_packet_information(socket: BorrowedFd<'_>, is_ipv4: bool) -> io::Result<()> {
    let (level, option) = match is_ipv4 {
        true => (libc::IPPROTO_IP, libc::IP_PKTINFO),
        false => (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
    };
    set_integer(socket, level, option, 0)
}

/// What the peer's machine has acknowledged of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AcknowledgedBytes {
    /// Bytes since the connection was made.
    pub(crate) bytes: u64,
    /// How long ago its last acknowledgement came, one of no further bytes included.
    pub(crate) ago: Duration,
}

/// What the peer's machine has acknowledged (tcp(7), `TCP_INFO`).
///
/// # Errors
/// The kernel's, for a descriptor that is not a TCP socket; one older than Linux 4.1, which does not count them.
pub(crate) fn acknowledged(socket: BorrowedFd<'_>) -> io::Result<AcknowledgedBytes> {
    let info = tcp_info(socket, std::mem::offset_of!(libc::tcp_info, tcpi_bytes_acked) + size_of::<u64>())?;
    let ago = Duration::from_millis(info.tcpi_last_ack_recv.into());
    Ok(AcknowledgedBytes { bytes: info.tcpi_bytes_acked, ago })
}

/// How long ago the last segment with data came, read or unread (tcp(7), `TCP_INFO`).
///
/// # Errors
/// The kernel's, for a descriptor that is not a TCP socket.
pub(crate) fn received_ago(socket: BorrowedFd<'_>) -> io::Result<Duration> {
    let info =
        tcp_info(socket, std::mem::offset_of!(libc::tcp_info, tcpi_last_data_recv) + size_of::<u32>())?;
    Ok(Duration::from_millis(info.tcpi_last_data_recv.into()))
}

/// What the kernel says of a connection, of which it must fill this number of bytes.
fn tcp_info(socket: BorrowedFd<'_>, needed: usize) -> io::Result<libc::tcp_info> {
    let mut info = std::mem::MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the descriptor is borrowed, so open; the pointer and length describe `info`, of which the kernel
    // writes no more than `length` and says in it how much that was.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    if (length as usize) < needed {
        return Err(io::ErrorKind::Unsupported.into());
    }
    // SAFETY: the struct holds integers alone, and all of it was set to zero.
    Ok(unsafe { info.assume_init() })
}

/// What the kernel says of a socket's memory (`SO_MEMINFO`, linux/sock_diag.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SocketMemory {
    /// Bytes that were to be sent and have not left, with what the kernel needs beside them (`SK_MEMINFO_WMEM_ALLOC`): what
    /// `SIOCOUTQ` says of a socket of datagrams (udp(7)).
    pub(crate) unsent: u64,
    /// Datagrams that it dropped because the socket was full (`SK_MEMINFO_DROPS`): the count that `SO_RXQ_OVFL` puts beside each datagram.
    pub(crate) dropped: u64,
}

/// What the kernel says of a socket's memory.
///
/// # Errors
/// The kernel's, for a descriptor that is not a socket; one older than Linux 4.12, which cannot be asked.
pub(crate) fn memory(socket: BorrowedFd<'_>) -> io::Result<SocketMemory> {
    const UNSENT: usize = 2;
    const DROPS: usize = 8;
    let mut counts = [0_u32; DROPS + 1];
    let mut length = size_of_val(&counts) as libc::socklen_t;
    // SAFETY: the descriptor is borrowed, so open; the pointer and length describe `counts`, of which the kernel
    // writes no more than `length` and says in it how much that was.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            counts.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    if (length as usize) < size_of_val(&counts) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(SocketMemory { unsent: counts[UNSENT].into(), dropped: counts[DROPS].into() })
}

/// Datagrams that the kernel dropped because the socket was full.
///
/// # Errors
/// Those of `memory`.
pub fn dropped(socket: BorrowedFd<'_>) -> io::Result<u64> {
    memory(socket).map(|memory| memory.dropped)
}

/// What the kernel says of its clock, changing nothing (adjtimex(2)).
///
/// # Errors
/// The kernel's, where a sandbox keeps the call from weir.
pub(crate) fn kernel_clock() -> io::Result<libc::timex> {
    let mut state = std::mem::MaybeUninit::<libc::timex>::zeroed();
    // SAFETY: the pointer is that of `state`, a live local of the type that the call takes; `modes` in it is zero, so that the
    // kernel only writes it.
    let result = unsafe { libc::adjtimex(state.as_mut_ptr()) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the struct holds integers alone, and all of it was set to zero.
    Ok(unsafe { state.assume_init() })
}

fn set_integer(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: usize,
) -> io::Result<()> {
    let value = libc::c_int::try_from(value).unwrap_or(libc::c_int::MAX);
    // SAFETY: the descriptor is borrowed, so open; the pointer and length describe `value`, which
    // outlives the call, and all these options take an int.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(&value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn the_kernel_says_how_well_its_clock_is_kept() {
        let most_error = kernel_clock().unwrap().maxerror;
        // `NTP_PHASE_LIMIT`: 16 s is what it says when it knows nothing, in microseconds.
        assert!((0..=16_000_000).contains(&most_error), "{most_error}");
    }

    #[test]
    fn a_descriptor_that_is_no_socket_is_an_error() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(set_receive_low_water(file.as_fd(), 1).is_err());
        assert!(bind_address_without_port(file.as_fd()).is_err());
        assert!(leave_out_packet_information(file.as_fd(), true).is_err());
        assert!(acknowledged(file.as_fd()).is_err());
        assert!(received_ago(file.as_fd()).is_err());
        assert!(memory(file.as_fd()).is_err());
        assert!(dropped(file.as_fd()).is_err());
    }
}
