//! The server's side of the handshake.

use super::digest::{self, Digest, HandshakeSide};
use super::{
    Error, Incoming, PACKET_LEN, Progress, Schema, Scheme, VERSION, random_packet, skip, take_version,
};

/// The version in a S1 with a digest. Clients take anything whose first byte is 3 or more.
const MEDIA_SERVER: [u8; 4] = [4, 5, 0, 1];

/// Listens to C0, C1 and C2, and speaks S0, S1 and S2.
#[derive(Clone, Debug)]
pub struct Server {
    random: fastrand::Rng,
    phase: HandshakePhase,
    c1: Incoming,
    scheme: Scheme,
}

#[derive(Clone, Copy, Debug)]
enum HandshakePhase {
    C0,
    C1,
    C2 { left: usize },
}

impl Server {
    /// A server. Its random bytes come from `seed`; they protect nothing.
    pub fn new(seed: u64) -> Self {
        Self {
            random: fastrand::Rng::with_seed(seed),
            phase: HandshakePhase::C0,
            c1: Incoming::new(),
            scheme: Scheme::Simple,
        }
    }

    /// Takes bytes off the front of `input`, up to the end of C2, and appends S0, S1 and S2 when C1 is complete.
    pub fn input(&mut self, input: &mut &[u8], out: &mut Vec<u8>) -> Result<Progress, Error> {
        loop {
            match self.phase {
                HandshakePhase::C0 if take_version(input)? => self.phase = HandshakePhase::C1,
                HandshakePhase::C1 if self.c1.take(input) => {
                    self.answer(out);
                    self.phase = HandshakePhase::C2 { left: PACKET_LEN };
                }
                HandshakePhase::C2 { left: 0 } => return Ok(Progress::Done),
                HandshakePhase::C2 { left } if !input.is_empty() => {
                    self.phase = HandshakePhase::C2 { left: skip(left, input) };
                }
                _ => return Ok(Progress::Pending),
            }
        }
    }

    /// The scheme that the client asked for; [`Scheme::Simple`] until C1 has come.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    fn answer(&mut self, out: &mut Vec<u8>) {
        out.push(VERSION);
        match digest::find(&self.c1.bytes, HandshakeSide::Client) {
            Some((schema, c1_digest)) => self.answer_digest(schema, &c1_digest, out),
            None => {
                out.extend(random_packet(&mut self.random, [0; 4]));
                out.extend(self.c1.bytes);
            }
        }
    }

    fn answer_digest(&mut self, schema: Schema, c1_digest: &Digest, out: &mut Vec<u8>) {
        self.scheme = Scheme::Digest;
        let mut s1 = random_packet(&mut self.random, MEDIA_SERVER);
        digest::sign(&mut s1, schema, HandshakeSide::Server);
        let mut s2 = random_packet(&mut self.random, [0; 4]);
        digest::answer(&mut s2, c1_digest, HandshakeSide::Server);
        out.extend(s1);
        out.extend(s2);
    }
}
