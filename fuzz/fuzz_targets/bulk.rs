//! What either end of a bulk stream may hear: lines have one spelling, totals add up however they are cut.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_bulk::{Request, Totals, consent};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(Some((request, length))) = Request::parse(bytes) {
        assert_eq!(request.line().len(), length);
    }
    let _ = consent(bytes);
    let (mut whole, mut cut) = (Totals::default(), Totals::default());
    let (first, rest) = bytes.split_at(bytes.len() / 3);
    assert_eq!(whole.read(bytes), cut.read(first) + cut.read(rest));
});
