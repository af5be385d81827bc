//! A whole connection to the origin, in any of its protocols, on a made-up clock: bytes in pieces, room that comes and
//! goes, time that passes, datagrams of strangers. Nothing panics, and what is kept stays small.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| weir_origin::harness::play(data));
