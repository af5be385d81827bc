//! Variables of playlists (`EXT-X-DEFINE`; draft-pantos-hls-rfc8216bis-22, sections 4.3 and 4.4.2.3).

use super::playlist_error::PlaylistError;
use std::borrow::Cow;
use std::collections::HashMap;
use weir_web::uri::decoded;

/// The longest line that variables may make: a few of them in a playlist of 8 MiB could otherwise make each line as long.
const LONGEST_EXPANSION: usize = 1 << 20;

/// Variables by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Variables(HashMap<String, String>);

const DEFINE: &str = "#EXT-X-DEFINE:";

/// Bytes that the variables of a playlist may come to in all: their names, their values, and the lines that they stand in.
struct Budget(usize);

impl Budget {
    fn charge(&mut self, bytes: usize) -> Result<(), PlaylistError> {
        self.0 = self.0.checked_sub(bytes).ok_or(PlaylistError::Variable)?;
        Ok(())
    }
}

/// Whether a playlist defines variables: what it says depends on what it may import then.
pub(super) fn are_defined(playlist: &[u8]) -> bool {
    playlist.windows(DEFINE.len()).any(|window| window == DEFINE.as_bytes())
}

/// A playlist with its variables replaced, and what it has defined. It may import `known` ones, and those of the `query` of its URL.
pub(super) fn expand<'a>(
    text: &'a str,
    known: &Variables,
    query: &str,
) -> Result<(Cow<'a, str>, Variables), PlaylistError> {
    let mut defined = Variables::default();
    if !text.contains(DEFINE) {
        // Section 4.3: without a definition, what looks like a reference is text.
        return Ok((Cow::Borrowed(text), defined));
    }
    let mut expanded = String::with_capacity(text.len());
    // A variable may be as long as the playlist, and stand in each of its lines: in names and values of others as well.
    let mut budget = Budget(2 * LONGEST_EXPANSION);
    for line in text.lines() {
        let line = defined.replace(line)?;
        if let Cow::Owned(replaced) = &line {
            budget.charge(replaced.len())?;
        }
        if let Some(attributes) = line.strip_prefix(DEFINE) {
            defined.define(attributes, known, query, &mut budget)?;
        } else {
            expanded.push_str(&line);
            expanded.push('\n');
        }
    }
    Ok((Cow::Owned(expanded), defined))
}

impl Variables {
    fn define(
        &mut self,
        attributes: &str,
        known: &Self,
        query: &str,
        budget: &mut Budget,
    ) -> Result<(), PlaylistError> {
        let (name, value) = if let Some(name) = attribute(attributes, "NAME") {
            (name, attribute(attributes, "VALUE").map(str::to_owned))
        } else if let Some(name) = attribute(attributes, "IMPORT") {
            (name, known.0.get(name).cloned())
        } else if let Some(name) = attribute(attributes, "QUERYPARAM") {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            (name, pairs.find(|(key, _)| *key == name).map(|(_, value)| decoded(value).into_owned()))
        } else {
            return Err(PlaylistError::Variable);
        };
        // Section 4.4.2.3: what is not there, and a name that is there already, MUST fail the playlist.
        let value = value.ok_or(PlaylistError::Variable)?;
        budget.charge(name.len() + value.len())?;
        match self.0.insert(name.to_owned(), value) {
            None => Ok(()),
            Some(_) => Err(PlaylistError::Variable),
        }
    }

    /// A line with its references replaced: all of them of a URI, those in quotes of a tag.
    fn replace<'a>(&self, line: &'a str) -> Result<Cow<'a, str>, PlaylistError> {
        let is_tag = line.starts_with('#');
        if !line.contains("{$") || is_tag && !line.starts_with("#EXT-X-") {
            return Ok(Cow::Borrowed(line));
        }
        let mut replaced = String::new();
        for (number, piece) in line.split('"').enumerate() {
            if number > 0 {
                replaced.push('"');
            }
            if is_tag && number % 2 == 0 {
                replaced.push_str(piece);
            } else {
                self.append(piece, &mut replaced)?;
            }
            if replaced.len() > LONGEST_EXPANSION {
                return Err(PlaylistError::Variable);
            }
        }
        Ok(Cow::Owned(replaced))
    }

    fn append(&self, mut piece: &str, replaced: &mut String) -> Result<(), PlaylistError> {
        while let Some((before, rest)) = piece.split_once("{$") {
            replaced.push_str(before);
            let (name, behind) = rest.split_once('}').ok_or(PlaylistError::Variable)?;
            replaced.push_str(self.0.get(name).ok_or(PlaylistError::Variable)?);
            if replaced.len() > LONGEST_EXPANSION {
                return Err(PlaylistError::Variable);
            }
            piece = behind;
        }
        replaced.push_str(piece);
        Ok(())
    }
}

/// The value of an attribute in quotes.
fn attribute<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = attributes;
    loop {
        let (this, behind) = rest.split_once('=')?;
        let value = match behind.strip_prefix('"') {
            Some(quoted) => {
                let (value, behind) = quoted.split_once('"')?;
                rest = behind.strip_prefix(',').unwrap_or(behind);
                Some(value)
            }
            None => {
                rest = behind.split_once(',').map_or("", |(_, behind)| behind);
                None
            }
        };
        if this.trim() == name {
            return value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn expanded(text: &str, query: &str) -> Result<String, PlaylistError> {
        let known = Variables([("host".to_owned(), "cdn".to_owned())].into());
        expand(text, &known, query).map(|(text, _)| text.into_owned())
    }

    #[test]
    fn variables_stand_in_uris_and_in_quotes() {
        let text = "#EXTM3U\n#EXT-X-DEFINE:NAME=\"path\",VALUE=\"a,b\"\n#EXT-X-DEFINE:IMPORT=\"host\"\n#EXT-X-DEFINE:QUERYPARAM=\"token\"\n#EXT-X-MAP:URI=\"{$path}/i.mp4\",BYTERANGE={$path}\n#EXTINF:2,{$path}\nhttp://{$host}/{$path}.ts?t={$token}\n";
        assert_eq!(
            expanded(text, "x=1&token=a%20b").unwrap(),
            "#EXTM3U\n#EXT-X-MAP:URI=\"a,b/i.mp4\",BYTERANGE={$path}\n#EXTINF:2,{$path}\nhttp://cdn/a,b.ts?t=a b\n"
        );
        assert_eq!(expanded("{$none}", "").unwrap(), "{$none}");
    }

    #[test]
    fn what_is_not_defined_or_defined_twice_is_refused_and_nothing_grows_without_end() {
        let define = "#EXT-X-DEFINE:NAME=\"a\",VALUE=\"1\"\n";
        for wrong in [
            format!("{define}{{$b}}"),
            format!("{define}{{$a"),
            format!("{define}{define}"),
            "#EXT-X-DEFINE:IMPORT=\"none\"\n".to_owned(),
            "#EXT-X-DEFINE:QUERYPARAM=\"none\"\n".to_owned(),
            "#EXT-X-DEFINE:NAME=\"a\"\n".to_owned(),
        ] {
            assert_eq!(expanded(&wrong, "none"), Err(PlaylistError::Variable), "{wrong}");
        }
        // Each is ten times as long as the one before it.
        let mut bomb = format!("#EXT-X-DEFINE:NAME=\"0\",VALUE=\"{}\"\n", "x".repeat(1_000));
        for number in 1..9 {
            let value = format!("{{${}}}", number - 1).repeat(10);
            bomb.push_str(&format!("#EXT-X-DEFINE:NAME=\"{number}\",VALUE=\"{value}\"\n"));
        }
        assert_eq!(expanded(&format!("{bomb}{{$8}}\n"), ""), Err(PlaylistError::Variable));
        // Names may be made of variables, too.
        let long = format!("#EXT-X-DEFINE:NAME=\"a\",VALUE=\"{}\"\n", "x".repeat(100_000));
        let names: String =
            (0..100).map(|it| format!("#EXT-X-DEFINE:NAME=\"{{$a}}{it}\",VALUE=\"\"\n")).collect();
        assert_eq!(expanded(&(long + &names), ""), Err(PlaylistError::Variable));
    }

    proptest! {
        #[test]
        fn nothing_breaks_it(lines in prop::collection::vec(prop::sample::select(vec![
            "#EXT-X-DEFINE:NAME=\"a\",VALUE=\"{$a}\"", "#EXT-X-DEFINE:NAME=\"b\",VALUE=\"\"", "#EXT-X-DEFINE:", "#EXT-X-DEFINE:NAME=\"",
            "{$b}", "{$", "}", "\"", "#EXT-X-MAP:URI=\"{$b}\"", "é",
        ]), 0..12)) {
            let _ = expanded(&lines.join("\n"), "a=%");
        }
    }
}
