//! Any message of OvenMediaEngine's dialogue and any HTTP response of WHIP and WHEP is read without harm.

#![no_main]

use libfuzzer_sys::fuzz_target;
use url::Url;
use weir_rtc::signalling::{http, oven};
use weir_web::Fields;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(oven::Message::Offer(offer)) = oven::Message::parse(text) {
        let again = oven::Message::parse(&oven::offer(&offer)).expect("what was just written");
        assert!(matches!(again, oven::Message::Offer(again) if again.sdp == offer.sdp));
    }
    let _ = oven::Request::parse(text);
    if let Some(restarted) = http::restarted(text) {
        let again = http::trickle(&restarted.user_fragment, &restarted.password, "0", &restarted.candidates);
        assert_eq!(
            http::restarted(&again).map(|again| again.candidates.len()),
            Some(restarted.candidates.len())
        );
    }

    let request = Url::parse("http://127.0.0.1/whep").expect("a URL");
    let (headers, body) = text.split_once("\n\n").unwrap_or((text, "v=0\n"));
    let headers: Fields = headers.lines().filter_map(|line| line.split_once(':')).collect();
    for status in [201, 307, 406, 503] {
        let _ = http::session(&request, status, &headers, body);
    }
});
