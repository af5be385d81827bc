//! What is wrong with a scenario's text, in a line: where, what, and the key that was meant.

use weir_clients::meant;
use weir_protocols::declared;

/// `line:column: what`, with the nearest known key for an unknown one.
pub(crate) fn explain(error: &serde_saphyr::Error) -> String {
    let text = error.to_string();
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let first = first.strip_prefix("error: ").unwrap_or(first);
    // The library repeats the place in words.
    let (place, what) = match error.location() {
        Some(at) => {
            let words = format!("line {} column {}: ", at.line(), at.column());
            (format!("{}:{}: ", at.line(), at.column()), first.strip_prefix(&words).unwrap_or(first))
        }
        None => (String::new(), first),
    };
    let what = match (error.without_snippet(), nearest_key(what)) {
        (serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. }, _) => {
            format!("key `{key}` stands there twice; leave one out")
        }
        (serde_saphyr::Error::DuplicateMappingKey { key: None, .. }, _) => {
            "a key stands there twice; leave one out".to_owned()
        }
        (_, Some((unknown, nearest))) => format!("unknown key `{unknown}`; did you mean `{nearest}`?"),
        _ => match what.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`')) {
            Some((unknown, _)) => {
                format!("unknown key `{unknown}`; `weir schema scenario` has all that there are")
            }
            None => belongs_here(what).map_or_else(|| what.to_owned(), str::to_owned),
        },
    };
    format!("{place}{what}")
}

/// What the library calls by the names of types, in words of the file.
fn belongs_here(what: &str) -> Option<&'static str> {
    match what {
        "expected sequence start" => Some("a list belongs here: `[one, two]`, or a line with `- ` for each"),
        "expected mapping start" => Some("keys belong here: `key: value`"),
        _ => {
            let kind = what.strip_prefix("invalid ")?;
            let bits = kind.strip_prefix(['u', 'i', 'f'])?;
            let is_number = bits.parse::<u8>().is_ok();
            is_number.then_some(if kind.starts_with('f') {
                "a number belongs here"
            } else {
                "a whole number belongs here"
            })
        }
    }
}

/// The unknown key and the known one that was meant, out of the library's
/// "unknown field `x`, expected one of a, b".
pub(crate) fn nearest_key(text: &str) -> Option<(&str, &str)> {
    let (unknown, known) = text.strip_prefix("unknown field `")?.split_once("`, expected ")?;
    let known = known.strip_prefix("one of ").unwrap_or(known);
    let known = known.split([',', ' ']).map(|key| key.trim_matches('`'));
    let known: Vec<_> = known.filter(|key| !key.is_empty()).collect();
    // Of a workload the options of protocols are keys as well.
    let options = known.contains(&"publish").then(|| declared().keys().map(String::as_str));
    Some((unknown, meant(unknown, known.iter().copied().chain(options.into_iter().flatten()))?))
}
