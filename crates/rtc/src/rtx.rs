//! Retransmissions in a stream of their own (RFC 4588 section 4): the original number, then the original payload.

/// The original sequence number and payload in the decrypted payload of a retransmission. `None` when it is empty, as
/// packets are that only probe for bandwidth.
pub fn parse(payload: &[u8]) -> Option<(u16, &[u8])> {
    let (number, payload) = payload.split_first_chunk()?;
    (!payload.is_empty()).then(|| (u16::from_be_bytes(*number), payload))
}

/// Appends the payload of a retransmission.
pub fn append(original: u16, payload: &[u8], out: &mut Vec<u8>) {
    out.extend(original.to_be_bytes());
    out.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retransmission_is_read_as_it_is_written() {
        let mut out = Vec::new();
        append(0xFFFE, b"abc", &mut out);
        assert_eq!(parse(&out), Some((0xFFFE, &b"abc"[..])));
    }

    #[test]
    fn padding_alone_repeats_nothing() {
        assert_eq!(parse(&[]), None);
        assert_eq!(parse(&[1]), None);
        assert_eq!(parse(&[1, 2]), None);
    }
}
