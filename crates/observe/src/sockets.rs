//! The TCP sockets of one network namespace, and which process owns one.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use crate::reader::numbered;
use crate::sock_diag::{SockDiag, Socket, TcpState};
use crate::tcp_table;

/// Where the sockets are read from.
#[derive(Debug)]
pub(crate) enum Sockets {
    /// Over netlink: weir's own network namespace.
    Netlink(SockDiag),
    /// From `/proc/PID/net/tcp`: the namespace of this process.
    Table(u32),
}

impl Sockets {
    /// The sockets that `pid` sees: over netlink when it lives in weir's network namespace.
    pub(crate) fn seen_by(pid: u32) -> Self {
        let namespace = |pid| fs::read_link(format!("/proc/{pid}/ns/net")).ok();
        // An unreadable namespace (another user's process) is taken for weir's own.
        let foreign = namespace(pid).is_some_and(|its| namespace(std::process::id()) != Some(its));
        if foreign { Self::Table(pid) } else { Self::own() }
    }

    /// The sockets of weir's own network namespace.
    pub(crate) fn own() -> Self {
        // Asking for one port shows whether the kernel answers at all.
        match SockDiag::open().and_then(|mut diag| diag.each(TcpState::Listen, 1, |_| ()).map(|()| diag)) {
            Ok(diag) => Self::Netlink(diag),
            Err(_) => Self::Table(std::process::id()),
        }
    }

    /// The listening sockets on this port; port 0 stands for every port.
    pub(crate) fn listening(&mut self, port: u16) -> io::Result<Vec<Socket>> {
        let mut sockets = Vec::new();
        self.each(TcpState::Listen, port, |socket| sockets.push(socket))?;
        Ok(sockets)
    }

    /// How many connections are established with one of these local ports.
    pub(crate) fn established(&mut self, ports: &BTreeSet<u16>) -> io::Result<u64> {
        let mut count = 0;
        for &port in ports {
            self.each(TcpState::Established, port, |_| count += 1)?;
        }
        Ok(count)
    }

    fn each(&mut self, state: TcpState, port: u16, found: impl FnMut(Socket)) -> io::Result<()> {
        match self {
            Self::Netlink(diag) => diag.each(state, port, found),
            Self::Table(pid) => tcp_table::each(*pid, state, port, found),
        }
    }
}

/// The sockets that a process holds, by inode. Empty when its descriptors are hidden.
pub(crate) fn inodes_held(pid: u32) -> impl Iterator<Item = u64> {
    let descriptors = numbered(&format!("/proc/{pid}/fd")).into_iter().flatten();
    descriptors.filter_map(move |descriptor| {
        let target = fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// A listener of each family on one port, so that no other socket of this machine is counted with theirs: the kernel
    /// gives a free port of IPv4 to IPv6 as well. Of the ports that it gives by itself, some still have the connections of a listener
    /// that is gone, and others those of other addresses of this machine.
    fn listeners() -> (TcpListener, TcpListener) {
        let pair = || {
            let port = weir_testing::free_port();
            let listen = |address| TcpListener::bind((address, port)).ok();
            listen("127.0.0.1").zip(listen("::1"))
        };
        (0..100).find_map(|_| pair()).unwrap()
    }

    /// `count` connections, both ends in this process.
    fn connected(listener: &TcpListener, count: usize) -> Vec<(TcpStream, TcpStream)> {
        let connect = |_| {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (client, listener.accept().unwrap().0)
        };
        (0..count).map(connect).collect()
    }

    fn counted_exactly(mut sockets: Sockets) {
        let ((four, _four), (_six, six)) = (listeners(), listeners());
        let mut pairs = connected(&four, 37);
        let _pairs = connected(&six, 5);
        let ports = [&four, &six].map(|listener| listener.local_addr().unwrap().port());
        assert_eq!(sockets.established(&ports.into()).unwrap(), 42);
        assert_eq!(sockets.established(&[ports[0]].into()).unwrap(), 37);
        pairs.truncate(30);
        assert_eq!(sockets.established(&[ports[0]].into()).unwrap(), 30);

        let listening = sockets.listening(ports[1]).unwrap();
        assert_eq!(listening.len(), 2);
        assert!(listening.iter().all(|socket| socket.local_port == ports[1]));
        assert!(
            listening.iter().all(|socket| inodes_held(std::process::id()).any(|inode| inode == socket.inode))
        );
        assert!(sockets.listening(0).unwrap().contains(&listening[0]));
    }

    #[test]
    fn netlink_counts_exactly() {
        counted_exactly(Sockets::Netlink(SockDiag::open().unwrap()));
    }

    #[test]
    fn the_table_counts_exactly() {
        counted_exactly(Sockets::Table(std::process::id()));
    }

    #[test]
    fn a_vanished_process_holds_nothing() {
        assert_eq!(inodes_held(0).count(), 0);
    }
}
