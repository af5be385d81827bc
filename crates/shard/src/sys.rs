//! The one place that calls the kernel past a safe wrapper.
//!
//! Invariant: every call passes a descriptor borrowed for the length of the call, and a pointer and
//! length of one live local of the type that the option is documented to take.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Sets `SO_RCVLOWAT`: the link becomes readable only when so many bytes wait (socket(7)).
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

fn set_integer(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: usize,
) -> io::Result<()> {
    let value = libc::c_int::try_from(value).unwrap_or(libc::c_int::MAX);
    // SAFETY: the descriptor is borrowed, so open; the pointer and length describe `value`, which
    // outlives the call, and both options take an int.
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
    fn a_descriptor_that_is_no_socket_is_an_error() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(set_receive_low_water(file.as_fd(), 1).is_err());
        assert!(bind_address_without_port(file.as_fd()).is_err());
    }
}
