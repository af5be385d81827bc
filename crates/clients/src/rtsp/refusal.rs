//! What a server's refusal means for a client.

use weir_metrics::Failure;
use weir_rtsp::{Method, Response};
use weir_setting::TRANSPORT;

/// How a client fails that gets this response; `None` of one that goes on.
pub(super) fn refusal(method: Method, response: &Response) -> Option<(Failure, String)> {
    let failure = match response.status {
        100..=299 => return None,
        401 | 403 | 407 => Failure::Unauthorized,
        404 | 410 => Failure::StreamNotFound,
        // RFC 2326 section 11.3.3: 453 Not Enough Bandwidth.
        453 | 503 => Failure::Unavailable,
        _ => Failure::Rejected,
    };
    let mut words = format!("{} is answered with {}", method.name(), response.said());
    if response.status == 401 {
        words.push_str("; give user and password in the URL: rtsp://USER:PASSWORD@HOST/PATH");
    } else if response.status == 461 {
        words.push_str(&format!("; ask for the other transport with {TRANSPORT}"));
    }
    Some((failure, words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_kinds_of_failure() {
        for (status, expected) in [
            (200, None),
            (401, Some(Failure::Unauthorized)),
            (404, Some(Failure::StreamNotFound)),
            (453, Some(Failure::Unavailable)),
            (461, Some(Failure::Rejected)),
            (500, Some(Failure::Rejected)),
        ] {
            let response =
                Response { status, reason: "x".to_owned(), fields: Default::default(), body: Vec::new() };
            assert_eq!(refusal(Method::Setup, &response).map(|it| it.0), expected, "{status}");
        }
    }
}
