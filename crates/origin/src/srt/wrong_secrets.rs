//! Wrong passphrases by address: each costs 2,048 hashes before it is known to be wrong. Knows no handshake.

use super::peers::origin_of;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use weir_metrics::Moment;

/// Wrong passphrases of one address in [`SPAN`]: with half a millisecond to one each they take a twentieth of a thread at the most.
const MOST: u32 = 50;
const SPAN: Duration = Duration::from_secs(1);
/// Addresses that are told apart; those beyond count as one.
const ADDRESSES: usize = 4_096;
/// Stands for the addresses beyond: no datagram comes from there.
const OTHERS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// How many wrong passphrases came from where. Right ones are not counted.
#[derive(Debug, Default)]
pub(super) struct WrongSecrets {
    /// Since when they are counted, and how many there were.
    by_address: HashMap<IpAddr, (Moment, u32)>,
}

impl WrongSecrets {
    /// Whether so many came from there that the next passphrase is not looked at.
    pub(super) fn are_too_many_of(&self, from: SocketAddr, now: Moment) -> bool {
        let address = self.place_of(from);
        self.by_address.get(&address).is_some_and(|(since, count)| now < *since + SPAN && *count >= MOST)
    }

    /// One came from there.
    pub(super) fn add(&mut self, from: SocketAddr, now: Moment) {
        if self.by_address.len() >= ADDRESSES {
            self.by_address.retain(|_, (since, _)| now < *since + SPAN);
        }
        let address = self.place_of(from);
        let (since, count) = self.by_address.entry(address).or_insert((now, 0));
        if *since + SPAN <= now {
            (*since, *count) = (now, 0);
        }
        *count += 1;
    }

    /// What stands for an address: those that find no place of their own share one.
    fn place_of(&self, from: SocketAddr) -> IpAddr {
        let address = origin_of(from);
        let has_place = self.by_address.contains_key(&address) || self.by_address.len() < ADDRESSES;
        if has_place { address } else { OTHERS }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Moment = Moment::from_nanos(1_000_000_000_000);

    fn address(host: u32) -> SocketAddr {
        (Ipv4Addr::from(0x0A00_0000 + host), 1).into()
    }

    /// How many passphrases are looked at, of this many wrong ones that come at once.
    fn looked_at(wrong: &mut WrongSecrets, from: SocketAddr, count: u32, now: Moment) -> u32 {
        (0..count)
            .map(|_| {
                let is_looked_at = !wrong.are_too_many_of(from, now);
                if is_looked_at {
                    wrong.add(from, now);
                }
                u32::from(is_looked_at)
            })
            .sum()
    }

    #[test]
    fn fifty_wrong_ones_of_an_address_are_looked_at_in_a_second() {
        let mut wrong = WrongSecrets::default();
        assert_eq!(looked_at(&mut wrong, address(1), 1_000, START), 50);
        assert_eq!(looked_at(&mut wrong, address(2), 49, START), 49);
        assert!(!wrong.are_too_many_of(address(2), START), "another address has its own count");
        assert!(wrong.are_too_many_of(address(1), START + Duration::from_millis(999)));
        assert_eq!(looked_at(&mut wrong, address(1), 1_000, START + SPAN), 50);
        // In ten seconds ten times as many.
        let in_ten_seconds: u32 = (0..10_000)
            .map(|millis| looked_at(&mut wrong, address(3), 1, START + Duration::from_millis(millis)))
            .sum();
        assert_eq!(in_ten_seconds, 500);
        let network = |host: u16| SocketAddr::from(([0x2001, 0xDB8, 0, 1, 0, 0, 0, host], 1));
        let of_network: u32 = (0..200).map(|host| looked_at(&mut wrong, network(host), 1, START)).sum();
        assert_eq!(of_network, 50, "a network of 64 bits is one machine's");
    }

    #[test]
    fn the_table_is_bounded_and_what_finds_no_place_shares_one() {
        let mut wrong = WrongSecrets::default();
        let looked: u32 = (0..100_000).map(|host| looked_at(&mut wrong, address(host), 1, START)).sum();
        assert_eq!((looked, wrong.by_address.len()), (4_096 + 50, 4_097));
        // A second later all of them are forgotten.
        assert_eq!(looked_at(&mut wrong, address(200_000), 60, START + SPAN), 50);
        assert_eq!(wrong.by_address.len(), 1);
    }
}
