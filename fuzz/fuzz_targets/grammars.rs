//! What a person writes: faults of the origin, thresholds, scenarios with what a command line says of them, and
//! quantities. The first byte chooses.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_engine::harness;
use weir_metrics::{BitRate, parse_bytes, parse_duration, parse_quantity, parse_rate};
use weir_origin::Fault;

fuzz_target!(|data: &[u8]| {
    let Some((&kind, data)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(data) else { return };
    match kind % 4 {
        0 => match text.parse::<Fault>() {
            Ok(fault) => assert_eq!(text.trim().parse(), Ok(fault)),
            Err(error) => assert!(!error.to_string().is_empty()),
        },
        1 => harness::threshold(text),
        2 => harness::scenario(text),
        _ => {
            let _ = (parse_duration(text), parse_bytes(text), parse_quantity(text));
            assert!(parse_rate(text).is_ok_and(|rate| rate > 0.0) || parse_rate(text).is_err());
            let _ = text.parse::<BitRate>().map(|rate| rate.to_string());
        }
    }
});
