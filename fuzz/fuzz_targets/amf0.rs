//! What can be decoded can be encoded, and is then the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_rtmp::amf0::{decode, encode_all};
use weir_rtmp::message::{Command, MessageKind, data};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(values) = decode(bytes) {
        let mut again = Vec::new();
        encode_all(&values, &mut again);
        let decoded = decode(&again).expect("what was just encoded");
        // Not compared as values: a number may be NaN.
        assert_eq!(format!("{decoded:?}"), format!("{values:?}"));
    }
    let _ = Command::parse(MessageKind::CommandAmf3, bytes);
    let _ = data::metadata(data::for_viewers(bytes));
});
