//! Any description is read in bounded memory and can be answered; what is written again reads the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_rtc::sdp::{Description, Local, OfferOptions, agree};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    // With and without the line that the fuzzer would have to find first.
    for text in [text.to_owned(), format!("v=0\r\n{text}")] {
        let Ok(description) = text.parse::<Description>() else { continue };
        let local = Local {
            user_fragment: "user".to_owned(),
            password: "a-password-of-22-signs".to_owned(),
            fingerprint: format!("sha-256 {}", ["AB"; 32].join(":")).parse().expect("a fingerprint"),
            candidates: vec!["1 1 udp 1 127.0.0.1 4000 typ host".to_owned()],
            lite: false,
        };
        let answer = local.answer(&description, &OfferOptions::VIEWER);
        assert_eq!(answer.media.len(), description.media.len());
        let agreed = agree(&description, &answer, true);
        assert!(agreed.len() <= answer.media.iter().filter(|media| !media.rejected).count());
        let again: Description = description.to_string().parse().expect("what was just written");
        assert_eq!(again.media.len(), description.media.len());
    }
});
