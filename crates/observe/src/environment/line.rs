//! Files of one line, as `/proc` and `/sys` have them.

use std::fs;

/// The content of a file of one line, without white space around it; `None` if there is none.
pub(super) fn line_of(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    // The device tree ends its strings with a zero byte.
    Some(text.trim_matches(|letter: char| letter.is_whitespace() || letter == '\0').to_owned())
        .filter(|text| !text.is_empty())
}
