//! Words of others (servers, programs, people) made fit to print: no control over the reader's terminal,
//! no hidden direction marks, no megabytes. Escaping for a format is that format's own work.

/// What names, titles and addresses are cut to.
pub(crate) const LINE: usize = 200;

/// One line of at most `limit` characters. White space is folded; what steers a terminal or the direction
/// of writing, and what has no width, is spelled out.
pub fn quote(text: &str, limit: usize) -> String {
    let mut quoted = String::new();
    let mut length = 0;
    let mut letters = text.trim().chars().peekable();
    while let Some(letter) = letters.next() {
        if length >= limit {
            quoted.push('…');
            break;
        }
        if letter.is_whitespace() {
            while letters.peek().is_some_and(|next| next.is_whitespace()) {
                letters.next();
            }
            quoted.push(' ');
        } else if steers(letter) {
            quoted.extend(letter.escape_unicode());
        } else {
            quoted.push(letter);
        }
        length += 1;
    }
    quoted
}

/// Whether a character acts on the text around it instead of showing itself.
fn steers(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}'
            | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_their_letters_and_lose_their_power() {
        assert_eq!(quote("  no such\r\n\tstream ", 99), "no such stream");
        assert_eq!(quote("\u{1b}[31mred\0", 99), "\\u{1b}[31mred\\u{0}");
        assert_eq!(quote("a\u{202e}b", 99), "a\\u{202e}b");
        assert_eq!(quote("שלום <b>", 99), "שלום <b>");
    }

    #[test]
    fn a_megabyte_becomes_a_line() {
        assert_eq!(quote(&"x".repeat(1 << 20), 5), "xxxxx…");
        assert_eq!(quote("xxxxx", 5), "xxxxx");
    }
}
