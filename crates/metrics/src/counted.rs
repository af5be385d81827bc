//! Numbers of things, as they stand in a sentence.

/// A whole number in groups of three: `12,345`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `1 client`, `2,500 clients`.
pub fn several(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// The same of words that begin with a noun in the plural: `1 viewer a second`, `2,500 viewers a second`.
pub fn several_of(number: u64, words: &str) -> String {
    let (noun, rest) =
        words.split_once(' ').map_or((words, String::new()), |(noun, rest)| (noun, format!(" {rest}")));
    several(number, noun.strip_suffix('s').unwrap_or(noun)) + &rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_not_several() {
        assert_eq!(
            [0, 1, 12, 1_234_567].map(|it| several(it, "client")),
            ["0 clients", "1 client", "12 clients", "1,234,567 clients"]
        );
        assert_eq!(several_of(1, "viewers a second"), "1 viewer a second");
        assert_eq!([1, 2].map(|it| several_of(it, "publishers")), ["1 publisher", "2 publishers"]);
    }
}
