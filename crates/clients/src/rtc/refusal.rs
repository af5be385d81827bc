//! What kind of failure a server's refusal is.

use crate::client_session::End;
use weir_metrics::Failure;
use weir_rtc::signalling::http::Refusal;
use weir_rtc::transport::TransportError;
use weir_rtc::turn::TurnError;

/// A refusal by WHEP or WHIP.
pub(super) fn of_http(refusal: &Refusal, publishes: bool, said: &str) -> End {
    let failure = match refusal {
        // The stream is there: another one publishes it.
        Refusal::NoStream(409) if publishes => {
            return (Failure::Rejected, format!("the stream is taken (HTTP 409); the server said: {said}"));
        }
        Refusal::Unauthorised(_) => Failure::Unauthorized,
        Refusal::NoStream(_) => Failure::StreamNotFound,
        Refusal::CounterOffer { .. } => Failure::CounterOffer,
        Refusal::Busy { .. } => Failure::Unavailable,
        Refusal::Redirect { .. } => Failure::RedirectFailed,
        Refusal::NoAnswer(_) => Failure::MalformedInput,
        Refusal::NotAcceptable(_) | Refusal::Status(_) => Failure::Rejected,
    };
    (failure, format!("{refusal}; the server said: {said}"))
}

/// A refusal by OvenMediaEngine. Of a signed policy that it refuses it says what it says of a missing stream.
pub(super) fn of_oven(code: u32, error: &str, is_signed: bool) -> End {
    let failure = match code {
        401 | 403 => Failure::Unauthorized,
        404 if is_signed && !error.to_ascii_lowercase().contains("find stream") => {
            let why = "the signed policy of the URL was refused (signature, expiry, address), or there is no such stream; its log says which";
            return (Failure::Rejected, format!("{code} {error}: {why}"));
        }
        404 => Failure::StreamNotFound,
        503 => Failure::Unavailable,
        // "Cannot find stream", whatever the code is.
        _ if error.to_ascii_lowercase().contains("find stream") => Failure::StreamNotFound,
        _ => Failure::Rejected,
    };
    (failure, format!("{code} {error}"))
}

/// The status of an answer to a WebSocket's request.
pub(super) fn of_upgrade(status: u16) -> Failure {
    match status {
        401 | 403 => Failure::Unauthorized,
        404 => Failure::StreamNotFound,
        503 => Failure::Unavailable,
        _ => Failure::Rejected,
    }
}

/// What a TURN server's refusal is (RFC 8489 section 14.8, RFC 8656 section 19).
pub(super) fn of_turn(error: &TurnError) -> Failure {
    match error {
        TurnError::Refused { code: 401 | 403 | 441, .. } => Failure::Unauthorized,
        TurnError::Refused { code: 486 | 508, .. } => Failure::Unavailable,
        TurnError::Refused { .. } => Failure::Rejected,
        TurnError::Incomplete(_) => Failure::MalformedInput,
    }
}

/// What became of a transport.
pub(super) fn of_transport(error: &TransportError) -> End {
    let failure = match error {
        TransportError::Candidate(_) | TransportError::TooManyCandidates => Failure::MalformedInput,
        TransportError::Fingerprint
        | TransportError::Dtls(_)
        | TransportError::NoProfile
        | TransportError::Srtp(_) => Failure::DtlsFailed,
    };
    let cause = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
    (failure, format!("{error}{cause}"))
}
