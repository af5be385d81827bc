//! What an agent may say in words: one line, of bounded length.

/// Bytes of what is said in an event: a client's own words have 200 characters at the most.
pub(super) const MOST_WORDS: usize = 4_000;

/// The beginning of what is said, in one line, so that it has at most `MOST_WORDS`, whatever its letters.
pub fn briefly(words: &str) -> String {
    let plain = words.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    plain.take(MOST_WORDS / 4).collect()
}

/// Whether an agent can have said this: others read it, on a terminal.
pub(super) fn is_brief(words: &str) -> bool {
    words.len() <= MOST_WORDS && !words.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_one_line() {
        assert_eq!(briefly("gone\nfor good"), "gone for good");
        assert!(is_brief("gone for good") && !is_brief("gone\nfor good"));
    }
}
