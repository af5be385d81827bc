//! Strings of service information as Unicode.
//!
//! DVB strings name their character table in their first byte (ETSI EN 300 468 annex A); ARIB strings are an
//! ISO 2022 code of eight bits with shifts (ARIB STD-B24 volume 1 part 2 section 7.1). No crate that is kept up
//! decodes the latter (2026-11), so the shifts are followed here, and the characters themselves, JIS X 0208 above
//! all, come from `encoding_rs`, as do the tables of DVB. Not decoded, and shown as U+FFFD: DRCS and mosaic glyphs,
//! and ARIB's additional symbols (rows 90 to 94) beyond the signs of programme attributes; nor what DVB has compressed or
//! reserves. ISO 6937, DVB's default table, is in none of the crates, and so is written out.

use encoding_rs::{BIG5, EUC_JP, EUC_KR, Encoding, GBK, UTF_8, UTF_16BE};

/// Which standard strings are written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TextCoding {
    /// ARIB where `original_network_id` is one of a Japanese broadcaster, otherwise DVB.
    #[default]
    Detect,
    /// ETSI EN 300 468 annex A.
    Dvb,
    /// ARIB STD-B24.
    Arib,
}

impl TextCoding {
    /// The string of these bytes, out of a table of this `original_network_id`.
    pub fn decode(self, bytes: &[u8], original_network_id: u16) -> String {
        // ARIB TR-B15 and TR-B14: satellite, and terrestrial networks.
        let japanese = matches!(original_network_id, 0x0004 | 0x0006 | 0x0007 | 0x000A | 0x7880..=0x7FE8);
        match self {
            Self::Arib => arib(bytes),
            Self::Detect if japanese => arib(bytes),
            _ => dvb(bytes),
        }
    }
}

/// A string of DVB.
fn dvb(bytes: &[u8]) -> String {
    let by =
        |encoding: &'static Encoding, bytes: &[u8]| printable(&encoding.decode_without_bom_handling(bytes).0);
    match bytes {
        [] => String::new(),
        [0x10, 0x00, number, rest @ ..] => iso_8859(*number, rest),
        [table @ 0x01..=0x0B, rest @ ..] => iso_8859(table + 4, rest),
        [0x11, rest @ ..] => by(UTF_16BE, rest),
        [0x12, rest @ ..] => by(EUC_KR, rest),
        [0x13, rest @ ..] => by(GBK, rest),
        [0x14, rest @ ..] => by(BIG5, rest),
        [0x15, rest @ ..] => by(UTF_8, rest),
        // An encoding of a broadcaster's own, such as Huffman's code.
        [0x1F, ..] => char::REPLACEMENT_CHARACTER.into(),
        _ => iso_6937(bytes),
    }
}

/// A part of ISO 8859 (tables A.3 and A.4). `encoding_rs` has Windows' letters where annex A.1 has control codes.
fn iso_8859(part: u8, bytes: &[u8]) -> String {
    let Some(encoding) = Encoding::for_label(format!("iso-8859-{part}").as_bytes()) else {
        return iso_6937(bytes);
    };
    let bytes: Vec<u8> = bytes.iter().filter_map(|&byte| is_shown(byte)).collect();
    printable(&encoding.decode_without_bom_handling(&bytes).0)
}

/// The byte if it is no control code of annex A.1 in a table of one byte a character; a line break is one of ASCII's.
fn is_shown(byte: u8) -> Option<u8> {
    match byte {
        0x8A => Some(b'\n'),
        0x00..=0x1F | 0x7F..=0x9F => None,
        _ => Some(byte),
    }
}

/// ISO/IEC 6937 with the euro sign (figure A.1): a diacritical mark stands before its letter.
fn iso_6937(bytes: &[u8]) -> String {
    // From 0xA0 on, in rows of sixteen. Marks are told by being combining characters; U+FFFD is in no use.
    const RIGHT_HALF: &str = "\u{A0}¡¢£€¥\u{FFFD}§¤‘“«←↑→↓\
        °±²³×µ¶·÷’”»¼½¾¿\
        \u{FFFD}\u{300}\u{301}\u{302}\u{303}\u{304}\u{306}\u{307}\u{308}\u{308}\u{30A}\u{327}\u{332}\u{30B}\u{328}\u{30C}\
        ―¹®©™♪¬¦\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}⅛⅜⅝⅞\
        ΩÆĐªĦ\u{FFFD}ĲĿŁØŒºÞŦŊŉ\
        ĸæđðħıĳŀłøœßþŧŋ\u{AD}";
    let mut text = String::with_capacity(bytes.len());
    let mut mark = None;
    for byte in bytes.iter().filter_map(|&byte| is_shown(byte)) {
        let character = match byte.checked_sub(0xA0) {
            Some(at) => RIGHT_HALF.chars().nth(at.into()).unwrap_or(char::REPLACEMENT_CHARACTER),
            None => char::from(byte),
        };
        if ('\u{300}'..='\u{36F}').contains(&character) {
            mark = Some(character);
        } else {
            text.push(character);
            text.extend(mark.take());
        }
    }
    text
}

/// Without the control codes of annex A.1; a line break stays.
fn printable(text: &str) -> String {
    text.chars()
        .map(|character| if matches!(character, '\u{8A}' | '\u{E08A}') { '\n' } else { character })
        .filter(|&character| {
            character == '\n' || !character.is_control() && !('\u{E080}'..='\u{E09F}').contains(&character)
        })
        .collect()
}

/// A set of characters of ARIB STD-B24 table 7-3.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Set {
    Kanji,
    Alphanumeric,
    Hiragana,
    Katakana,
    HalfKatakana,
    /// Two bytes a character that are not in any table here.
    Unknown2,
    /// One byte a character that is not in any table here.
    Unknown1,
}

impl Set {
    fn of(terminator: u8, two_bytes: bool) -> Self {
        match terminator {
            0x42 | 0x39 | 0x3A | 0x3B => Self::Kanji,
            _ if two_bytes => Self::Unknown2,
            0x4A | 0x36 => Self::Alphanumeric,
            0x30 | 0x37 => Self::Hiragana,
            0x31 | 0x38 => Self::Katakana,
            0x49 => Self::HalfKatakana,
            _ => Self::Unknown1,
        }
    }

    fn width(self) -> usize {
        if matches!(self, Self::Kanji | Self::Unknown2) { 2 } else { 1 }
    }

    /// `wide`: at normal size, at which a letter of Latin script is as wide as a kanji (section 7.1.1.2).
    fn push(self, code: &[u8], wide: bool, text: &mut String) {
        let row = |row: u8, cell: u8, text: &mut String| {
            text.push_str(&EUC_JP.decode_without_bom_handling(&[row | 0x80, cell | 0x80]).0);
        };
        match (self, code) {
            (Self::Kanji, &[row_code @ 0x7A..=0x7E, cell]) => text.push_str(symbol(row_code, cell)),
            (Self::Kanji, &[high, low]) => row(high, low, text),
            (Self::Alphanumeric, &[0x5C]) => text.push(if wide { '￥' } else { '¥' }),
            (Self::Alphanumeric, &[0x7E]) => text.push(if wide { '￣' } else { '‾' }),
            (Self::Alphanumeric, &[0x22]) if wide => text.push('”'),
            (Self::Alphanumeric, &[0x27]) if wide => text.push('’'),
            (Self::Alphanumeric, &[0x60]) if wide => text.push('‘'),
            // U+FF01 on has the wide forms of ASCII from 0x21 on.
            (Self::Alphanumeric, &[code]) if wide => {
                text.extend(char::from_u32(0xFF01 - 0x21 + u32::from(code)));
            }
            (Self::Alphanumeric, &[code]) => text.push(char::from(code)),
            // The last cells of both rows hold marks that are elsewhere in JIS X 0208 (table 7-5).
            (Self::Hiragana, &[0x77]) => text.push('ゝ'),
            (Self::Hiragana, &[0x78]) => text.push('ゞ'),
            (Self::Katakana, &[0x77]) => text.push('ヽ'),
            (Self::Katakana, &[0x78]) => text.push('ヾ'),
            (Self::Hiragana | Self::Katakana, &[code @ 0x79..=0x7E]) => {
                let index = usize::from(code - 0x79);
                text.extend("ー。「」、・".chars().nth(index));
            }
            (Self::Hiragana, &[code]) => row(0x24, code, text),
            (Self::Katakana, &[code]) => row(0x25, code, text),
            (Self::HalfKatakana, &[code]) => text.extend(char::from_u32(0xFF40 + u32::from(code))),
            _ => text.push(char::REPLACEMENT_CHARACTER),
        }
    }
}

/// The signs of programme attributes, row 90 of ARIB's additional symbols (STD-B24 table 7-10).
fn symbol(row: u8, cell: u8) -> &'static str {
    const ATTRIBUTES: [&str; 36] = [
        "[HV]",
        "[SD]",
        "[P]",
        "[W]",
        "[MV]",
        "[手]",
        "[字]",
        "[双]",
        "[デ]",
        "[S]",
        "[二]",
        "[多]",
        "[解]",
        "[SS]",
        "[B]",
        "[N]",
        "■",
        "●",
        "[天]",
        "[交]",
        "[映]",
        "[無]",
        "[料]",
        "[年齢制限]",
        "[前]",
        "[後]",
        "[再]",
        "[新]",
        "[初]",
        "[終]",
        "[生]",
        "[販]",
        "[声]",
        "[吹]",
        "[PPV]",
        "[秘]",
    ];
    match (row, cell) {
        (0x7A, 0x50..=0x73) => ATTRIBUTES[usize::from(cell - 0x50)],
        _ => "\u{FFFD}",
    }
}

/// A string of ARIB: four sets G0 to G3, of which two are in use at a time (section 7.1.1).
fn arib(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    let mut sets = [Set::Kanji, Set::Alphanumeric, Set::Hiragana, Set::Katakana];
    let (mut left, mut right) = (0, 2);
    let (mut single, mut wide) = (None, true);
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            0x0D => text.push('\n'),
            0x0E => left = 1,
            0x0F => left = 0,
            0x19 => single = Some(2),
            0x1D => single = Some(3),
            0x16 => rest = rest.get(1..).unwrap_or(&[]),
            0x1C => rest = rest.get(2..).unwrap_or(&[]),
            0x1B => rest = escape(rest, &mut sets, &mut left, &mut right),
            0x20 | 0xA0 => text.push(if wide { '\u{3000}' } else { ' ' }),
            0x21..=0x7E | 0xA1..=0xFE => {
                let set = sets[single.take().unwrap_or(if byte < 0x80 { left } else { right })];
                if set.width() == 1 {
                    set.push(&[byte & 0x7F], wide, &mut text);
                } else if let Some((&second, after)) = rest.split_first() {
                    rest = after;
                    set.push(&[byte & 0x7F, second & 0x7F], wide, &mut text);
                }
            }
            // SSZ, MSZ and NSZ: small, middle and normal size; SZX with 0x60 is a tiny one.
            0x88 | 0x89 => wide = false,
            0x8A => wide = true,
            0x8B => {
                wide = rest.first() != Some(&0x60);
                rest = rest.get(1..).unwrap_or(&[]);
            }
            // Colours and the like; some have a parameter.
            0x90..=0x94 | 0x97 | 0x98 => rest = rest.get(1..).unwrap_or(&[]),
            _ => {}
        }
    }
    text
}

/// An escape sequence (tables 7-1 and 7-2).
fn escape<'a>(bytes: &'a [u8], sets: &mut [Set; 4], left: &mut usize, right: &mut usize) -> &'a [u8] {
    match bytes {
        [0x6E, rest @ ..] => (*left = 2, rest).1,
        [0x6F, rest @ ..] => (*left = 3, rest).1,
        [0x7E, rest @ ..] => (*right = 1, rest).1,
        [0x7D, rest @ ..] => (*right = 2, rest).1,
        [0x7C, rest @ ..] => (*right = 3, rest).1,
        [0x24, at @ 0x28..=0x2B, 0x20, _, rest @ ..] => {
            (sets[usize::from(at - 0x28)] = Set::Unknown2, rest).1
        }
        [0x24, at @ 0x28..=0x2B, end, rest @ ..] => {
            (sets[usize::from(at - 0x28)] = Set::of(*end, true), rest).1
        }
        [0x24, end, rest @ ..] => (sets[0] = Set::of(*end, true), rest).1,
        [at @ 0x28..=0x2B, 0x20, _, rest @ ..] => (sets[usize::from(at - 0x28)] = Set::Unknown1, rest).1,
        [at @ 0x28..=0x2B, end, rest @ ..] => (sets[usize::from(at - 0x28)] = Set::of(*end, false), rest).1,
        [_, rest @ ..] => rest,
        [] => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arib_strings_shift_between_kanji_kana_and_latin() {
        // The samples of libaribb24's documentation.
        let first = b"\x1b\x7c\xda\xeb\xbd\xca\x0e\x34\x0f\x21\x21\x21\x74\x0e\x31\x38";
        assert_eq!(TextCoding::Arib.decode(first, 0), "ペルソナ４\u{3000}＃１８");
        let second = b"\x4d\x45\x38\x51\x21\x5f\x4b\x4d\x0e\x53\x53\x0f\x21\x21\x21\x74\x0e\x35\x0f\x1b\x24\x3b\x7a\x56";
        assert_eq!(TextCoding::Arib.decode(second, 0), "妖狐×僕ＳＳ\u{3000}＃５[字]");
    }

    #[test]
    fn dvb_strings_name_their_table() {
        let decode = |bytes: &[u8]| TextCoding::Detect.decode(bytes, 1);
        assert_eq!(decode(b"BBC ONE"), "BBC ONE");
        assert_eq!(decode(b"\x15Z\xC3\xBCrich"), "Zürich");
        assert_eq!(decode(b"\x05T\xFCrk"), "Türk");
        assert_eq!(decode(b"\x10\x00\x02\xA3\xF3d\xBC"), "Łódź");
        // Emphasis is no dagger, and a line break no letter, though Windows has them there.
        assert_eq!(decode(b"\x10\x00\x01\x86Caf\xE9\x87\x8A2"), "Café\n2");
        assert_eq!(decode(b"\x05\x86T\xFCrk"), "Türk");
        // What only its broadcaster can read, and a part of ISO 8859 that there is not.
        assert_eq!((&*decode(b"\x1F\x01\x8B\x9C"), &*decode(b"\x08abc")), ("\u{FFFD}", "abc"));
    }

    /// As iconv of glibc 2.36 has ISO_6937, but for the euro sign of DVB, the horizontal bar and the D with a stroke.
    #[test]
    fn the_table_without_a_name_is_iso_6937() {
        let all: Vec<u8> = (0xA1..=0xBF).chain(0xD0..=0xFF).collect();
        let text = "¡¢£€¥\u{FFFD}§¤‘“«←↑→↓°±²³×µ¶·÷’”»¼½¾¿―¹®©™♪¬¦\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}⅛⅜⅝⅞\
                    ΩÆĐªĦ\u{FFFD}ĲĿŁØŒºÞŦŊŉĸæđðħıĳŀłøœßþŧŋ\u{AD}";
        assert_eq!(TextCoding::Dvb.decode(&all, 1), text);
        for (bytes, said) in [
            (&b"Caf\xC2e"[..], "Cafe\u{301}"),
            (b"T\xC8urk \xC9o \xCFS \xCBc", "Tu\u{308}rk o\u{308} S\u{30C} c\u{327}"),
            // A mark with nothing behind it is nothing, and of two the last counts.
            (b"A\xC2\xC8a\xC1", "Aa\u{308}"),
            (b"\x86Das Erste\x87\x8AHD\x80\x7F", "Das Erste\nHD"),
        ] {
            assert_eq!(TextCoding::Dvb.decode(bytes, 1), said);
        }
    }

    #[test]
    fn the_network_says_which_standard_holds() {
        assert_eq!(TextCoding::Detect.decode(b"\x0eNHK", 0x7FE0), "ＮＨＫ");
        assert_eq!(TextCoding::Detect.decode(b"\x0eNHK", 1), "NHK");
    }

    /// As the npm package aribts 1.3.5 has these strings.
    #[test]
    fn letters_of_normal_size_are_wide_and_those_of_middle_size_are_not() {
        for (bytes, said) in [
            (&b"\x0eNHK\x0f\x41\x6d\x39\x67"[..], "ＮＨＫ総合"),
            (b"\x89\x0eBS 11", "BS 11"),
            (b"\x0eBS 11", "ＢＳ\u{3000}１１"),
            (b"\x88\x0eA\x8aA~\x5c", "AＡ￣￥"),
            (b"\x0e\x8b\x60A\x8b\x41A", "AＡ"),
        ] {
            assert_eq!(TextCoding::Arib.decode(bytes, 0), said);
        }
    }
}
