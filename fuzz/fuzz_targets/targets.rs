//! Where clients go: URLs as a person writes them, redirects and lists of services as a server sends them. The first byte
//! chooses.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_clients::harness;

fuzz_target!(|data: &[u8]| {
    let Some((&kind, data)) = data.split_first() else { return };
    match (kind % 3, std::str::from_utf8(data)) {
        (0, Ok(text)) => harness::url(text),
        (1, Ok(text)) => harness::redirect(text),
        (2, _) => harness::services(data),
        _ => {}
    }
});
