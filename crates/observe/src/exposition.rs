//! The text format in which exporters show their metrics (Prometheus text exposition format 0.0.4).
//!
//! Bytes in, samples out: no socket and no clock. What is no sample (comments, blank and broken lines) is
//! passed over.

use std::borrow::Cow;

/// One sample: `name{label="value",…} value`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Metric<'a> {
    pub(crate) name: &'a str,
    labels: Vec<(&'a str, Cow<'a, str>)>,
    pub(crate) value: f64,
}

/// The samples of an exposition, in its order.
pub(crate) fn metrics(text: &[u8]) -> impl Iterator<Item = Metric<'_>> {
    text.split(|&byte| byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok()).filter_map(metric)
}

impl Metric<'_> {
    /// The value of a label; none if it has no such label.
    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(label, _)| *label == name).map(|(_, value)| value.as_ref())
    }
}

fn metric(line: &str) -> Option<Metric<'_>> {
    let line = line.trim_matches(BLANK);
    let (name, rest) = split_name(line)?;
    let rest = rest.trim_start_matches(BLANK);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(inside) => labels(inside)?,
        None => (Vec::new(), rest),
    };
    // What may follow is the time of the sample.
    let value = rest.split(BLANK).find(|word| !word.is_empty())?.parse().ok()?;
    Some(Metric { name, labels, value })
}

/// What separates the parts of a line, and a carriage return at its end.
const BLANK: [char; 3] = [' ', '\t', '\r'];

/// A name in front, if there is one: letters, digits, `_`, and `:`.
fn split_name(text: &str) -> Option<(&str, &str)> {
    let is_part = |character: char| character.is_ascii_alphanumeric() || "_:".contains(character);
    let end = text.find(|character| !is_part(character)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    name.starts_with(|first: char| !first.is_ascii_digit()).then_some((name, rest))
}

type Labels<'a> = Vec<(&'a str, Cow<'a, str>)>;

/// The labels, and what follows the closing brace.
fn labels(mut rest: &str) -> Option<(Labels<'_>, &str)> {
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start_matches(BLANK);
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (name, after) = split_name(rest)?;
        let after = after.trim_start_matches(BLANK).strip_prefix('=')?.trim_start_matches(BLANK);
        let (value, after) = quoted(after.strip_prefix('"')?)?;
        labels.push((name, value));
        rest = after.trim_start_matches(BLANK);
        rest = rest.strip_prefix(',').or_else(|| rest.starts_with('}').then_some(rest))?;
    }
}

/// A label's value up to its closing quotation mark; `\\`, `\"` and `\n` are escapes.
fn quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let end = text.find(['"', '\\'])?;
    if text[end..].starts_with('"') {
        return Some((Cow::Borrowed(&text[..end]), &text[end + 1..]));
    }
    let mut value = text[..end].to_owned();
    let mut characters = text[end..].char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((Cow::Owned(value), &text[end + at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                escaped => value.push(escaped),
            },
            plain => value.push(plain),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn only(line: &str) -> Metric<'_> {
        let mut found = metrics(line.as_bytes());
        let metric = found.next().unwrap_or_else(|| panic!("{line:?} is a sample"));
        assert_eq!(found.next(), None);
        metric
    }

    #[test]
    fn samples_are_read_as_the_format_has_them() {
        let metric = only("node_cpu_seconds_total{cpu=\"0\",mode=\"idle\"} 12298.65");
        assert_eq!((metric.name, metric.value), ("node_cpu_seconds_total", 12298.65));
        assert_eq!(
            (metric.label("cpu"), metric.label("mode"), metric.label("x")),
            (Some("0"), Some("idle"), None)
        );
        assert_eq!(only("node_memory_Buffers_bytes 1.0780672e+07").value, 10_780_672.0);
        // A time, blanks in odd places and a comma at the end are allowed.
        let metric = only("  a:b { x = \"1\" , y=\"2\", }\t 3  1395066363000\r");
        assert_eq!((metric.name, metric.label("y"), metric.value), ("a:b", Some("2"), 3.0));
        let metric =
            only(r#"msdos_file_access_time_seconds{path="C:\\DIR\\FILE.TXT",error="a:\n\"b\""} 1.4e9"#);
        assert_eq!(
            (metric.label("path"), metric.label("error")),
            (Some("C:\\DIR\\FILE.TXT"), Some("a:\n\"b\""))
        );
        assert!(only("a NaN").value.is_nan());
        assert_eq!(only("a +Inf").value, f64::INFINITY);
    }

    #[test]
    fn what_is_no_sample_is_passed_over() {
        for line in [
            "",
            "# HELP a b",
            "# TYPE a counter",
            "a",
            "a{",
            "a{x",
            "a{x=",
            "a{x=\"",
            "a{x=\"1\"",
            "a{x=\"1\"}",
            "a{x=\"1\"y=\"2\"} 3",
            "a one",
            "1a 2",
            "{} 1",
            "<html> 3",
            "a{x=\"\\",
        ] {
            assert_eq!(metrics(line.as_bytes()).next(), None, "{line:?}");
        }
        let text = b"a 1\n\xff\xfe 2\nb 3";
        assert_eq!(metrics(text).map(|metric| metric.name).collect::<Vec<_>>(), ["a", "b"]);
    }

    fn escaped(value: &str) -> String {
        value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
    }

    proptest! {
        #[test]
        fn no_text_panics(text: Vec<u8>) {
            metrics(&text).for_each(drop);
        }

        #[test]
        fn no_text_of_the_formats_own_characters_panics(text in "[a{}\"\\\\=, \n#1.e+-]{0,60}") {
            metrics(text.as_bytes()).for_each(drop);
        }

        #[test]
        fn what_is_written_is_read_back(
            samples in prop::collection::vec(
                ("[a-z_:][a-z0-9_:]{0,9}", prop::collection::btree_map("[a-z_][a-z0-9_]{0,5}", "\\PC{0,8}|[\\\\\"\n,}= ]{0,8}", 0..4), -1e18..1e18),
                0..8,
            ),
        ) {
            let text: String = samples
                .iter()
                .map(|(name, labels, value)| {
                    let labels: Vec<_> =
                        labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
                    format!("# HELP {name} x\n{name}{{{}}} {value:e}\n", labels.join(","))
                })
                .collect();
            let read: Vec<_> = metrics(text.as_bytes()).collect();
            prop_assert_eq!(read.len(), samples.len());
            for (read, (name, labels, value)) in read.iter().zip(&samples) {
                prop_assert_eq!((read.name, read.value), (name.as_str(), *value));
                prop_assert_eq!(read.labels.len(), labels.len());
                for (label, value) in labels {
                    prop_assert_eq!(read.label(label), Some(value.as_str()));
                }
            }
        }
    }
}
