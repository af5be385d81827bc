//! Alerts that anybody can send: those in records of DTLS that nothing protects (RFC 6347 section 4.1, epoch 0).
//!
//! Section 4.1.2.7 has invalid records discarded in silence, because anybody that guesses an address could otherwise end an
//! association with 15 bytes. An alert of a peer without keys looks the same as such a forgery.

use std::borrow::Cow;

/// Type, version, epoch, sequence number and length in front of each record.
const HEADER: usize = 13;
/// The content type of alerts.
const ALERT: u8 = 21;
/// Records begin with their content type up to here; others are protected and have the short header of DTLS 1.3
/// (RFC 9147 section 4.1).
const LAST_CONTENT_TYPE: u8 = 31;

/// A datagram without its alerts that nothing protects, and the code of the last of them.
pub(super) fn without_plain_alerts(datagram: &[u8]) -> (Cow<'_, [u8]>, Option<u8>) {
    if !records(datagram).any(is_plain_alert) {
        return (Cow::Borrowed(datagram), None);
    }
    let code = records(datagram).filter(|record| is_plain_alert(record)).last();
    let code = code.map(|record| record.get(HEADER + 1).copied().unwrap_or(0));
    let rest = records(datagram).filter(|record| !is_plain_alert(record)).flatten().copied();
    (Cow::Owned(rest.collect()), code)
}

fn is_plain_alert(record: &[u8]) -> bool {
    matches!(record, [ALERT, _, _, 0, 0, ..])
}

/// The records of a datagram; what is no whole record comes last, as one piece.
fn records(datagram: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let length = match *rest {
            [] => return None,
            [0..=LAST_CONTENT_TYPE, _, _, _, _, _, _, _, _, _, _, high, low, ..] => {
                HEADER + usize::from(u16::from_be_bytes([high, low]))
            }
            _ => rest.len(),
        };
        let (record, behind) = rest.split_at_checked(length).unwrap_or((rest, &[]));
        rest = behind;
        Some(record)
    })
}

/// The name of an alert (RFC 8446 section 6, and what older versions have besides).
pub(super) fn name(code: u8) -> &'static str {
    match code {
        0 => "close_notify",
        10 => "unexpected_message",
        20 => "bad_record_mac",
        40 => "handshake_failure",
        42 => "bad_certificate",
        43 => "unsupported_certificate",
        46 => "certificate_unknown",
        47 => "illegal_parameter",
        48 => "unknown_ca",
        50 => "decode_error",
        51 => "decrypt_error",
        70 => "protocol_version",
        71 => "insufficient_security",
        80 => "internal_error",
        90 => "user_canceled",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u8, epoch: u8, payload: &[u8]) -> Vec<u8> {
        let mut record = vec![kind, 254, 253, 0, epoch, 0, 0, 0, 0, 0, 0, 0, payload.len() as u8];
        record.extend(payload);
        record
    }

    #[test]
    fn alerts_that_nothing_protects_are_left_out() {
        let (hello, alert, sealed) =
            (record(22, 0, b"hello"), record(21, 0, &[2, 40]), record(21, 1, &[9; 26]));
        assert_eq!(alert.len(), 15);
        for (datagram, left, code) in [
            (alert.clone(), vec![], Some(40)),
            (hello.clone(), hello.clone(), None),
            (sealed.clone(), sealed.clone(), None),
            ([&*hello, &*alert, &*sealed].concat(), [&*hello, &*sealed].concat(), Some(40)),
            // Too short for what it says, and the short header of DTLS 1.3.
            (alert[..14].to_vec(), vec![], Some(0)),
            (vec![0x2f, 21, 0, 0, 0], vec![0x2f, 21, 0, 0, 0], None),
        ] {
            assert_eq!(without_plain_alerts(&datagram), (Cow::from(left), code), "{datagram:?}");
        }
    }

    #[test]
    fn whatever_comes_is_taken_apart_without_loss() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..2_000 {
            let datagram: Vec<u8> = (0..random.usize(0..60)).map(|_| random.u8(..32)).collect();
            assert_eq!(records(&datagram).flatten().copied().collect::<Vec<_>>(), datagram);
        }
    }
}
