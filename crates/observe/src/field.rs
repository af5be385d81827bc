//! Numbers and columns in the texts of `/proc`. Malformed text gives `None`, or fewer items; never a panic.

/// The words of a line.
pub(crate) fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// The lines of a text, without their ends.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&byte| byte == b'\n')
}

/// An unsigned decimal number, digits only.
pub(crate) fn decimal(text: &[u8]) -> Option<u64> {
    radix(text, 10)
}

/// An unsigned hexadecimal number, digits only.
pub(crate) fn hexadecimal(text: &[u8]) -> Option<u64> {
    radix(text, 16)
}

/// The first number of the line `label number …`, as in `/proc/meminfo` (`MemTotal:`) and `cpu.stat`.
pub(crate) fn labelled(text: &[u8], label: &str) -> Option<u64> {
    lines(text).find_map(|line| {
        let mut words = words(line);
        (words.next()? == label.as_bytes()).then(|| words.next().and_then(decimal)).flatten()
    })
}

/// The columns of `/proc/net/snmp` and `/proc/net/netstat`: a line of names and a line of values, both
/// starting with `prefix`. A value that is not an unsigned number (`MaxConn -1`) is left out.
pub(crate) fn columns<'a>(text: &'a [u8], prefix: &'a str) -> impl Iterator<Item = (&'a [u8], u64)> {
    let mut tables = lines(text).filter(move |line| words(line).next() == Some(prefix.as_bytes()));
    let names = tables.next().unwrap_or_default();
    let values = tables.next().unwrap_or_default();
    words(names)
        .zip(words(values))
        .skip(1)
        .filter_map(|(name, value)| decimal(value).map(|value| (name, value)))
}

/// Text for people: bytes that are not UTF-8 are replaced.
pub(crate) fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

fn radix(text: &[u8], radix: u32) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |number, &byte| {
        let digit = char::from(byte).to_digit(radix)?;
        number.checked_mul(radix.into())?.checked_add(digit.into())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_number_is_digits_and_fits() {
        assert_eq!(decimal(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(hexadecimal(b"07E8"), Some(2024));
        for text in ["", "-1", "+1", "1 ", "0x1", "18446744073709551616"] {
            assert_eq!(decimal(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn columns_pair_names_with_values() {
        let text =
            b"Tcp: RtoMin MaxConn RetransSegs\nTcp: 200 -1 7\nUdp: InDatagrams RcvbufErrors\nUdp: 1 2\n";
        assert_eq!(columns(text, "Tcp:").collect::<Vec<_>>(), [(&b"RtoMin"[..], 200), (b"RetransSegs", 7)]);
        assert_eq!(columns(text, "Udp:").count(), 2);
        assert_eq!(columns(text, "Ip:").count(), 0);
        assert_eq!(columns(b"Tcp: A B C\nTcp: 1", "Tcp:").count(), 1);
    }

    proptest! {
        #[test]
        fn no_text_panics(text: Vec<u8>) {
            decimal(&text);
            hexadecimal(&text);
            labelled(&text, "MemTotal:");
            columns(&text, "Tcp:").count();
        }
    }
}
