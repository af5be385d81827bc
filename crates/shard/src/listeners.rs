//! Listeners, one a shard.

use std::io;
use std::net::SocketAddr;

/// Non-blocking listeners with deep backlogs, one a shard, that share one port. Port 0 is any free one.
///
/// # Errors
/// The address is taken, even by listeners that would share it, or is not of this machine.
pub fn listeners(address: SocketAddr, count: usize) -> io::Result<Vec<std::net::TcpListener>> {
    let Some(others) = count.checked_sub(1) else { return Ok(Vec::new()) };
    // Bound exclusively first, so that no other program has the port; shared only then, so that none takes it meanwhile.
    let first = bound(address, false)?;
    first.set_reuse_port(true)?;
    let address = first.local_addr()?.as_socket().unwrap_or(address);
    let others = (0..others).map(|_| bound(address, true));
    std::iter::once(Ok(first))
        .chain(others)
        .map(|socket| {
            let socket = socket?;
            // The kernel cuts this to net.core.somaxconn.
            socket.listen(65_535)?;
            Ok(socket.into())
        })
        .collect()
}

fn bound(address: SocketAddr, shared: bool) -> io::Result<socket2::Socket> {
    let socket = socket2::Socket::new(
        socket2::Domain::for_address(address),
        socket2::Type::STREAM.nonblocking().cloexec(),
        Some(socket2::Protocol::TCP),
    )?;
    // What an earlier server's connections left behind keeps no port.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    socket.bind(&address.into())?;
    Ok(socket)
}
