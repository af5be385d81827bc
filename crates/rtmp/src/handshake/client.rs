//! The client's side of the handshake.

use super::digest::{self, HandshakeSide};
use super::{Error, Incoming, Progress, Schema, Scheme, VERSION};
use super::{PACKET_LEN, random_packet, skip, take_version};

/// The version in a C1 with a digest, that of a Flash Player which is known to be answered with one.
const FLASH_PLAYER: [u8; 4] = [9, 0, 124, 2];

/// Speaks C0, C1 and C2, and listens to S0, S1 and S2.
#[derive(Clone, Debug)]
pub struct Client {
    scheme: Scheme,
    random: fastrand::Rng,
    phase: HandshakePhase,
    s1: Incoming,
}

#[derive(Clone, Copy, Debug)]
enum HandshakePhase {
    S0,
    S1,
    S2 { left: usize },
}

impl Client {
    /// A client that offers a scheme. Its random bytes come from `seed`; they protect nothing.
    pub fn new(offered: Scheme, seed: u64) -> Self {
        Self {
            scheme: offered,
            random: fastrand::Rng::with_seed(seed),
            phase: HandshakePhase::S0,
            s1: Incoming::new(),
        }
    }

    /// Appends C0 and C1, once, before anything is read.
    pub fn start(&mut self, out: &mut Vec<u8>) {
        out.push(VERSION);
        out.extend(match self.scheme {
            Scheme::Simple => random_packet(&mut self.random, [0; 4]),
            Scheme::Digest => {
                let mut c1 = random_packet(&mut self.random, FLASH_PLAYER);
                digest::sign(&mut c1, Schema::DigestFirst, HandshakeSide::Client);
                c1
            }
        });
    }

    /// Takes bytes off the front of `input`, up to the end of S2, and appends C2 when S1 is complete.
    pub fn input(&mut self, input: &mut &[u8], out: &mut Vec<u8>) -> Result<Progress, Error> {
        loop {
            match self.phase {
                HandshakePhase::S0 if take_version(input)? => self.phase = HandshakePhase::S1,
                HandshakePhase::S1 if self.s1.take(input) => {
                    out.extend(self.c2());
                    self.phase = HandshakePhase::S2 { left: PACKET_LEN };
                }
                HandshakePhase::S2 { left: 0 } => return Ok(Progress::Done),
                HandshakePhase::S2 { left } if !input.is_empty() => {
                    self.phase = HandshakePhase::S2 { left: skip(left, input) };
                }
                _ => return Ok(Progress::Pending),
            }
        }
    }

    /// The scheme that was offered, and after S1 the one that the server answered with.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// A digest if one was offered and the server gave one, else an echo.
    fn c2(&mut self) -> [u8; PACKET_LEN] {
        let found = match self.scheme {
            Scheme::Simple => None,
            Scheme::Digest => digest::find(&self.s1.bytes, HandshakeSide::Server),
        };
        let Some((_, s1_digest)) = found else {
            self.scheme = Scheme::Simple;
            return self.s1.bytes;
        };
        let mut c2 = random_packet(&mut self.random, [0; 4]);
        digest::answer(&mut c2, &s1_digest, HandshakeSide::Client);
        c2
    }
}
