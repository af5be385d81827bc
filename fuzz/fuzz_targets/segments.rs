//! Maps, segments and parts of HLS as a server sends them, one after the other: nothing panics, and nothing is counted that is not there.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| weir_protocols::harness::segments(data));
