//! Listeners that share a port, and who may take one.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use weir_shard::listeners;

fn free() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

#[test]
fn all_have_one_port_and_who_comes_is_given_to_one_of_them() {
    let listeners = listeners(free(), 3).unwrap();
    let address = listeners[0].local_addr().unwrap();
    assert_ne!(address.port(), 0);
    assert!(listeners.iter().all(|listener| listener.local_addr().unwrap() == address));
    let guests: Vec<_> = (0..60).map(|_| TcpStream::connect(address).unwrap()).collect();
    let taken: Vec<_> =
        listeners.iter().map(|listener| std::iter::from_fn(|| listener.accept().ok()).count()).collect();
    assert_eq!(taken.iter().sum::<usize>(), guests.len());
    assert!(taken.iter().all(|&count| count > 0), "{taken:?}");
}

#[test]
fn a_port_that_others_share_is_taken() {
    let first = listeners(free(), 2).unwrap();
    let taken = listeners(first[0].local_addr().unwrap(), 2).unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::AddrInUse);
}

#[test]
fn a_port_that_was_just_given_up_can_be_taken_again() {
    let first = listeners(free(), 2).unwrap();
    let address = first[0].local_addr().unwrap();
    let _guest = TcpStream::connect(address).unwrap();
    drop(first);
    assert_eq!(listeners(address, 2).unwrap().len(), 2);
}

#[test]
fn many_at_once_each_get_a_port_of_their_own() {
    let all: Vec<_> = std::thread::scope(|scope| {
        let takers: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| (0..50).map(|_| listeners(free(), 2).unwrap()).collect::<Vec<_>>()))
            .collect();
        takers.into_iter().flat_map(|taker| taker.join().unwrap()).collect()
    });
    let mut ports: Vec<_> = all.iter().map(|pair| pair[0].local_addr().unwrap().port()).collect();
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), all.len());
}
