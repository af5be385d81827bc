#![doc = include_str!("../README.md")]

mod artefacts;
#[cfg(feature = "servers")]
mod clickhouse;
#[cfg(feature = "servers")]
mod coturn;
#[cfg(feature = "servers")]
mod kafka;
mod maven;
#[cfg(feature = "servers")]
mod mosquitto;
#[cfg(feature = "servers")]
mod nats;
#[cfg(feature = "servers")]
mod nginx;
#[cfg(feature = "servers")]
mod postgresql;
#[cfg(feature = "servers")]
mod process;
mod undisturbed;

pub use artefacts::no_file_has;
#[cfg(feature = "servers")]
pub use clickhouse::ClickHouseServer;
#[cfg(feature = "servers")]
pub use coturn::Coturn;
#[cfg(feature = "servers")]
pub use kafka::{KAFKA, KAFKA_3, Kafka, KafkaRecord, Listener, OLD_USER, SESSION, USERS};
pub use maven::maven;
#[cfg(feature = "servers")]
pub use mosquitto::{Mosquitto, Subscriber, lines};
#[cfg(feature = "servers")]
pub use nats::{NatsServer, RawClient};
#[cfg(feature = "servers")]
pub use nginx::{Nginx, number_in, self_signed};
#[cfg(feature = "servers")]
pub use postgresql::Postgresql;
#[cfg(feature = "servers")]
pub use process::{KilledOnDrop, interrupt, program, soon};
pub use undisturbed::undisturbed;

use socket2::{Domain, SockAddr, Socket, Type};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as LocalAddress, UnixDatagram};
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// A port of 127.0.0.1 that is free at the moment, over TCP and over UDP.
///
/// It lies below those that the kernel hands to connections and to listeners that name none, so that no neighbour of this
/// test is given it before it is used; and no other test is, whichever process it is in.
///
/// The port is bound to find that out, and never listened at: a program that another thread starts meanwhile holds a copy
/// of this socket until its `execve` is through, and a test that waits for its own server by connecting would reach that copy.
///
/// # Panics
/// A thousand ports in a row are taken.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    for _ in 0..1_000 {
        let step = NEXT.fetch_add(1, Relaxed).wrapping_add((std::process::id() as u16).wrapping_mul(61));
        let port = 10_000 + step % 20_000;
        if is_free(port) && is_ours(port) {
            return port;
        }
    }
    panic!("no port of this machine is free");
}

/// Whether no other test has been given this port; until this process ends none is. The sign of it is a name that one socket can
/// have at a time.
fn is_ours(port: u16) -> bool {
    static SIGNS: Mutex<Vec<UnixDatagram>> = Mutex::new(Vec::new());
    let name = LocalAddress::from_abstract_name(format!("weir-test-port-{port}"));
    let sign = name.and_then(|name| UnixDatagram::bind_addr(&name));
    let is_ours = sign.is_ok();
    SIGNS.lock().unwrap_or_else(PoisonError::into_inner).extend(sign);
    is_ours
}

fn is_free(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let bound = Socket::new(Domain::IPV4, Type::STREAM, None).and_then(|socket| {
        // As servers do: fails beside one that listens, and not beside a connection that has ended (TIME_WAIT).
        socket.set_reuse_address(true)?;
        socket.bind(&SockAddr::from(address))
    });
    bound.is_ok() && UdpSocket::bind(address).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_port_that_is_listened_at_is_not_free_and_one_that_is_found_free_refuses() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        assert!(!is_free(listener.local_addr().unwrap().port()));
        let port = free_port();
        assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err());
        assert_ne!(port, free_port());
        assert!(is_free(port) && !is_ours(port), "it is given once");
    }
}
