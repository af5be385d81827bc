//! Playlists of HLS as a server sends them, one after the other: nothing panics, little is kept, and no server is asked again at once for
//! what it does not have.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| weir_protocols::harness::playlists(data));
