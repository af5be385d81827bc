//! The tokens of JSON: space, punctuation, strings, numbers.

use crate::MAX_DEPTH;
use crate::error::{Fault, Problem};
use std::borrow::Cow;

/// The bytes of a payload, and how far they are read.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'r> {
    pub(super) input: &'r [u8],
    pub(super) at: usize,
}

/// A string as it stands there, without its quotation marks.
#[derive(Clone, Copy)]
pub(super) struct Raw<'r> {
    pub(super) bytes: &'r [u8],
    /// Where it begins.
    pub(super) at: usize,
    /// Whether it has escapes.
    pub(super) escaped: bool,
}

/// The first place from `at` on without space.
#[inline]
pub(crate) fn after_space(input: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = input.get(at) {
        at += 1;
    }
    at
}

/// The place of the next item of the array around all records; `None` after the last one, which nothing may follow.
pub(crate) fn next_item(input: &[u8], at: usize, first: bool) -> Result<Option<usize>, Fault> {
    let mut cursor = Cursor { input, at };
    match cursor.peek() {
        Some(b']') => {
            let end = after_space(input, cursor.at + 1);
            if end < input.len() {
                return Err(Fault::new(Problem::TrailingBytes(input.len() - end), end));
            }
            Ok(None)
        }
        _ if first => Ok(Some(cursor.at)),
        Some(b',') => Ok(Some(after_space(input, cursor.at + 1))),
        _ => cursor.unexpected("',' or ']'"),
    }
}

impl<'r> Cursor<'r> {
    /// The next byte that is no space.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<u8> {
        let byte = *self.input.get(self.at)?;
        if byte > b' ' {
            return Some(byte);
        }
        self.at = after_space(self.input, self.at);
        self.input.get(self.at).copied()
    }

    #[cold]
    pub(super) fn fault<T>(&self, problem: Problem) -> Result<T, Fault> {
        Err(Fault::new(problem, self.at))
    }

    /// Something else is there.
    #[cold]
    pub(super) fn unexpected<T>(&mut self, expected: &'static str) -> Result<T, Fault> {
        let found = self.found();
        self.fault(Problem::Unexpected { expected, found })
    }

    /// What is there, in a word.
    pub(super) fn found(&mut self) -> &'static str {
        match self.peek() {
            None => "the end",
            Some(b'"') => "a string",
            Some(b'{') => "an object",
            Some(b'[') => "an array",
            Some(b'-' | b'0'..=b'9') => "a number",
            Some(b't' | b'f') => "a boolean",
            Some(b'n') => "null",
            Some(b',' | b':' | b'}' | b']') => "punctuation",
            Some(_) => "no JSON",
        }
    }

    /// A punctuation mark that must be there.
    #[inline]
    pub(super) fn mark(&mut self, mark: u8, expected: &'static str) -> Result<(), Fault> {
        if self.peek() == Some(mark) {
            self.at += 1;
            return Ok(());
        }
        self.unexpected(expected)
    }

    /// A mark between items, or the one after the last: whether there are more.
    #[inline]
    pub(super) fn more(&mut self, close: u8, expected: &'static str) -> Result<bool, Fault> {
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(byte) if byte == close => {
                self.at += 1;
                Ok(false)
            }
            _ => self.unexpected(expected),
        }
    }

    /// The mark after the last item, if it comes before the first one.
    #[inline]
    pub(super) fn none(&mut self, close: u8) -> bool {
        let none = self.peek() == Some(close);
        self.at += usize::from(none);
        none
    }

    /// A word that must be there.
    #[inline]
    pub(super) fn word(&mut self, word: &'static str, expected: &'static str) -> Result<(), Fault> {
        if self.takes(word) { Ok(()) } else { self.unexpected(expected) }
    }

    /// A word, if it is there.
    #[inline]
    pub(super) fn takes(&mut self, word: &str) -> bool {
        self.peek();
        let there = self.input[self.at..].starts_with(word.as_bytes());
        if there {
            self.at += word.len();
        }
        there
    }

    /// A string, as it stands there.
    #[inline]
    pub(super) fn raw(&mut self, expected: &'static str) -> Result<Raw<'r>, Fault> {
        self.mark(b'"', expected)?;
        let begin = self.at;
        let mut escaped = false;
        loop {
            self.at += plain(&self.input[self.at..]);
            match self.input.get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    // What is escaped may be a quotation mark.
                    self.at = (self.at + 2).min(self.input.len());
                }
                Some(_) => return self.fault(Problem::Text("a control character")),
                None => return self.fault(Problem::Truncated("a string")),
            }
        }
        let bytes = &self.input[begin..self.at];
        self.at += 1;
        Ok(Raw { bytes, at: begin, escaped })
    }

    /// A number as the grammar has it (RFC 8259, section 6): its end, and whether it is a whole one.
    #[inline]
    pub(super) fn number(&self) -> Option<(usize, bool)> {
        let mut at = self.at + usize::from(self.input.get(self.at) == Some(&b'-'));
        let first = *self.input.get(at)?;
        at = self.digits(at)?;
        if first == b'0' && at > self.at + 1 + usize::from(self.input[self.at] == b'-') {
            return None;
        }
        let mut whole = true;
        if self.input.get(at) == Some(&b'.') {
            whole = false;
            at = self.digits(at + 1)?;
        }
        if let Some(b'e' | b'E') = self.input.get(at) {
            whole = false;
            let sign = matches!(self.input.get(at + 1), Some(b'+' | b'-'));
            at = self.digits(at + 1 + usize::from(sign))?;
        }
        Some((at, whole))
    }

    /// The place after one digit or more.
    #[inline]
    fn digits(&self, begin: usize) -> Option<usize> {
        let mut at = begin;
        while let Some(b'0'..=b'9') = self.input.get(at) {
            at += 1;
        }
        (at > begin).then_some(at)
    }

    /// Skips a value of any kind.
    pub(super) fn skip(&mut self, depth: usize) -> Result<(), Fault> {
        if depth > MAX_DEPTH {
            return self.fault(Problem::TooDeep);
        }
        match self.peek() {
            Some(b'"') => self.raw("a value").map(drop),
            Some(b'{') => {
                self.at += 1;
                let mut more = !self.none(b'}');
                while more {
                    self.raw("a member's name")?;
                    self.mark(b':', "':'")?;
                    self.skip(depth + 1)?;
                    more = self.more(b'}', "',' or '}'")?;
                }
                Ok(())
            }
            Some(b'[') => {
                self.at += 1;
                let mut more = !self.none(b']');
                while more {
                    self.skip(depth + 1)?;
                    more = self.more(b']', "',' or ']'")?;
                }
                Ok(())
            }
            _ => {
                let words = ["true", "false", "null", super::NAN, super::INFINITY, super::MINUS_INFINITY];
                if words.into_iter().any(|word| self.takes(word)) {
                    return Ok(());
                }
                let Some((end, _)) = self.number() else { return self.unexpected("a value") };
                self.at = end;
                Ok(())
            }
        }
    }
}

impl<'r> Raw<'r> {
    /// What the string says, in bytes that may be no UTF-8.
    #[inline]
    pub(super) fn said(&self) -> Result<Cow<'r, [u8]>, Fault> {
        if !self.escaped {
            return Ok(Cow::Borrowed(self.bytes));
        }
        let mut said = Vec::with_capacity(self.bytes.len());
        self.unescape(&mut said)?;
        Ok(Cow::Owned(said))
    }

    /// Appends what the string says.
    pub(super) fn unescape(&self, out: &mut Vec<u8>) -> Result<(), Fault> {
        let mut rest = self.bytes;
        while let Some(escape) = rest.iter().position(|byte| *byte == b'\\') {
            out.extend_from_slice(&rest[..escape]);
            let at = self.at + self.bytes.len() - rest.len() + escape;
            let bad = || Fault::new(Problem::Text("an escape that JSON does not have"), at);
            let (&letter, after) = rest[escape + 1..].split_first().ok_or_else(bad)?;
            rest = after;
            let plain = match letter {
                b'"' | b'\\' | b'/' => letter,
                b'b' => 8,
                b'f' => 12,
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'u' => {
                    let (unit, after) = unit(rest).ok_or_else(bad)?;
                    rest = after;
                    let mut point = u32::from(unit);
                    // The first half of a pair, and the second (RFC 8259, section 7).
                    if (0xD800..0xDC00).contains(&point) {
                        let second = rest.strip_prefix(b"\\u").and_then(self::unit).ok_or_else(bad)?;
                        let low = u32::from(second.0).checked_sub(0xDC00).filter(|low| *low < 0x400);
                        point = 0x1_0000 + ((point - 0xD800) << 10) + low.ok_or_else(bad)?;
                        rest = second.1;
                    }
                    let letter = char::from_u32(point).ok_or_else(bad)?;
                    out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                    continue;
                }
                _ => return Err(bad()),
            };
            out.push(plain);
        }
        out.extend_from_slice(rest);
        Ok(())
    }
}

/// Four hexadecimal digits, and what follows.
fn unit(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let (digits, rest) = bytes.split_first_chunk::<4>()?;
    let digit = |sum: u16, byte: &u8| Some(sum << 4 | char::from(*byte).to_digit(16)? as u16);
    Some((digits.iter().try_fold(0, digit)?, rest))
}

/// How many bytes come before a quotation mark, a backslash or a control character.
#[inline]
fn plain(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const TOPS: u64 = ONES << 7;
    let (words, rest) = bytes.as_chunks();
    for (number, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // The lowest top bit that is set belongs to the first byte that is zero, or below a space; borrows only reach
        // bytes after that one.
        let zero = |word: u64| word.wrapping_sub(ONES) & !word;
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let found =
            (zero(word ^ (ONES * u64::from(b'"'))) | zero(word ^ (ONES * u64::from(b'\\'))) | control) & TOPS;
        if found != 0 {
            return number * 8 + (found.trailing_zeros() / 8) as usize;
        }
    }
    let special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    bytes.len() - rest.len() + rest.iter().position(special).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_end_at_the_first_special_byte_wherever_it_is() {
        for length in 0..40 {
            for special in [b'"', b'\\', 0, 0x1F] {
                let mut text = vec![b'a'; length];
                text.extend_from_slice(&[special, b'"', 0x80, 0xFF, 1, 2, 3, 4, 5, 6, 7]);
                assert_eq!(plain(&text), length);
            }
            assert_eq!(plain(&vec![0xC3; length]), length);
            assert_eq!(plain(&vec![b' '; length]), length);
        }
    }

    #[test]
    fn numbers_are_those_of_the_grammar() {
        let number = |text: &str| Cursor { input: text.as_bytes(), at: 0 }.number();
        for whole in ["0", "-0", "7", "-120"] {
            assert_eq!(number(whole), Some((whole.len(), true)), "{whole}");
        }
        for broken in ["0.5", "-1e5", "1.25E-10", "0e0", "1e+9"] {
            assert_eq!(number(broken), Some((broken.len(), false)), "{broken}");
        }
        for none in ["", "-", "01", "-01", "1.", ".5", "1e", "1e+", "+1", "x", "1.e5"] {
            assert_eq!(number(none), None, "{none}");
        }
    }

    #[test]
    fn escapes_say_letters() {
        let said = |text: &str| {
            let mut cursor = Cursor { input: text.as_bytes(), at: 0 };
            let raw = cursor.raw("a string").map_err(|fault| fault.at_record(0).problem)?;
            let said = raw.said().map_err(|fault| fault.at_record(0).problem)?;
            Ok::<_, Problem>(String::from_utf8(said.into_owned()).unwrap())
        };
        assert_eq!(said(r#""a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00z""#).unwrap(), "a\"\\/\u{8}\u{c}\n\r\té😀z");
        for wrong in [r#""\x""#, r#""\u12""#, r#""\ud800""#, r#""\ud800A""#, r#""\udc00""#] {
            assert_eq!(said(wrong), Err(Problem::Text("an escape that JSON does not have")), "{wrong}");
        }
        assert_eq!(said("\"a\\"), Err(Problem::Truncated("a string")));
        assert_eq!(said("\"a\nb\""), Err(Problem::Text("a control character")));
    }
}
