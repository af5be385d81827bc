//! Texts with places in braces for what differs from client to client, and from message to message.

use super::draw::of_message;
use super::number::NumberRange;
use fastrand::Rng;
use std::fmt::Write;

/// Letters and digits: what characters of `{random:N}` are digits to.
const BASE: u32 = 36;

/// Longest `{random:N}`: as many characters as MQTT 3.1.1 and brokers with short limits take of an identifier, and some more.
const MOST_RANDOM: usize = 64;

/// Bytes of the longest place, behind its first brace: `number:` with two bounds of 64 bits and a sign, and their points.
const LONGEST_PLACE: usize = 64;

/// Bytes of the longest place with choices: a hundred names of ten letters.
const LONGEST_CHOICE: usize = 1_024;

/// A part of a template. What stands in braces and is no place of these is text, as in a payload of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    Text(&'a str),
    /// `{client}`: the number of the client.
    Client,
    /// `{user}`: its user name.
    User,
    /// `{id}`: its identifier.
    Id,
    /// `{random:N}`: N letters and digits.
    Random(usize),
    /// `{number:LEAST..MOST}`: one of these numbers.
    Number(NumberRange),
    /// `{choice:A|B|C}`: one of these texts, which are written as here.
    Choice(&'a str),
    /// `{seq}`: the number of the message.
    Sequence,
    /// `{time}`: milliseconds since 1970.
    Time,
}

/// The parts of a template.
pub(super) fn parts(template: &str) -> impl Iterator<Item = Part<'_>> {
    let mut rest = template;
    std::iter::from_fn(move || {
        if let Some((place, length)) = place(rest) {
            rest = &rest[length..];
            return Some(place);
        }
        // Up to the next place.
        let mut starts = rest.match_indices('{').map(|(at, _)| at);
        let end = starts.find(|at| place(&rest[*at..]).is_some()).unwrap_or(rest.len());
        let (text, behind) = rest.split_at(end);
        rest = behind;
        (!text.is_empty()).then_some(Part::Text(text))
    })
}

/// The place that a text begins with, and how long it is.
fn place(text: &str) -> Option<(Part<'_>, usize)> {
    let text = text.strip_prefix('{')?;
    let longest = if text.starts_with("choice:") { LONGEST_CHOICE } else { LONGEST_PLACE };
    let name = &text[..text.bytes().take(longest).position(|byte| byte == b'}')?];
    let place = match name {
        "client" => Part::Client,
        "user" => Part::User,
        "id" => Part::Id,
        "seq" => Part::Sequence,
        "time" => Part::Time,
        _ => match name.split_once(':')? {
            ("random", count) => {
                Part::Random(count.parse().ok().filter(|count| (1..=MOST_RANDOM).contains(count))?)
            }
            ("number", range) => Part::Number(NumberRange::parse(range)?),
            // One alone is no choice, but a text that looks like it.
            ("choice", choices) => Part::Choice(Some(choices).filter(|it| it.contains('|'))?),
            _ => return None,
        },
    };
    Some((place, name.len() + 2))
}

/// One of these choices.
fn choose<'a>(choices: &'a str, random: &mut Rng) -> &'a str {
    let number = random.usize(..choices.split('|').count());
    choices.split('|').nth(number).unwrap_or_default()
}

/// What may stand in the topic of a URL, for a person who has written something else.
pub(super) const PLACES: &str = "{i}, {client}, {user}, {id}, {random:N}, {number:1..9}, {choice:a|b}, {seq}";

/// A topic without the places that topics may have.
pub(super) fn without_places(topic: &str) -> String {
    let texts = parts(topic).map(|part| match part {
        Part::Text(text) => text,
        Part::Time => "{time}",
        _ => "",
    });
    texts.collect()
}

/// Whether a template has random characters in it.
pub fn is_random(template: &str) -> bool {
    parts(template).any(|part| matches!(part, Part::Random(_)))
}

/// What one client has for the places that differ from client to client.
#[derive(Clone, Debug, Default)]
pub(super) struct ClientNames {
    pub(super) number: String,
    pub(super) user: String,
    pub(super) id: String,
    /// Where its random characters come from: others in each run.
    pub(super) random: u64,
    /// Where its numbers and choices come from: the same in each run of one seed.
    pub(super) seed: u64,
}

impl ClientNames {
    /// A text with the client's own in its places, numbers and choices as well. Those of messages stay.
    pub(super) fn fill(&self, template: &str) -> String {
        let mut drawn = of_message(self.seed, 0);
        let mut filled = String::with_capacity(template.len());
        for part in parts(template) {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Client => filled.push_str(&self.number),
                Part::User => filled.push_str(&self.user),
                Part::Id => filled.push_str(&self.id),
                Part::Random(count) => filled.push_str(&self.characters(count)),
                Part::Number(range) => range.write(&mut drawn, &mut filled),
                Part::Choice(choices) => filled.push_str(choose(choices, &mut drawn)),
                Part::Sequence => filled.push_str("{seq}"),
                Part::Time => filled.push_str("{time}"),
            }
        }
        filled
    }

    /// Its random characters.
    fn characters(&self, count: usize) -> String {
        let mut random = Rng::with_seed(self.random);
        (0..count).map(|_| random.digit(BASE)).collect()
    }
}

/// A text of which some places differ from message to message, of one client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MessageTemplate {
    pieces: Vec<Piece>,
    seed: u64,
}

/// What is left to do for a message.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Random(usize),
    Number(NumberRange),
    Choice(Vec<String>),
    Sequence,
    Time,
}

impl MessageTemplate {
    /// That of a payload, in which random characters are each message's own.
    pub(super) fn of_payload(template: &str, names: &ClientNames) -> Self {
        Self::new(template, names, Piece::Random, || Piece::Time)
    }

    /// That of a topic, in which random characters are the client's, and the time is no place.
    pub(super) fn of_topic(template: &str, names: &ClientNames) -> Self {
        let random = |count| Piece::Text(names.characters(count));
        Self::new(template, names, random, || Piece::Text("{time}".to_owned()))
    }

    fn new(
        template: &str,
        names: &ClientNames,
        random: impl Fn(usize) -> Piece,
        time: impl Fn() -> Piece,
    ) -> Self {
        let mut pieces: Vec<Piece> = Vec::new();
        for part in parts(template) {
            let piece = match part {
                Part::Text(text) => Piece::Text(text.to_owned()),
                Part::Client => Piece::Text(names.number.clone()),
                Part::User => Piece::Text(names.user.clone()),
                Part::Id => Piece::Text(names.id.clone()),
                Part::Random(count) => random(count),
                Part::Number(range) => Piece::Number(range),
                Part::Choice(choices) => Piece::Choice(choices.split('|').map(str::to_owned).collect()),
                Part::Sequence => Piece::Sequence,
                Part::Time => time(),
            };
            match (pieces.last_mut(), piece) {
                (Some(Piece::Text(before)), Piece::Text(text)) => before.push_str(&text),
                (_, piece) => pieces.push(piece),
            }
        }
        Self { pieces, seed: names.seed }
    }

    /// The text, if it is the same in all messages.
    pub(super) fn only(&self) -> Option<&str> {
        match &self.pieces[..] {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The choices of all places that have some.
    pub(super) fn choices(&self) -> impl Iterator<Item = &str> {
        let choices = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Choice(choices) => Some(choices),
            _ => None,
        });
        choices.flatten().map(String::as_str)
    }

    /// Appends the text of a message: the same whenever it is written.
    pub(super) fn write(&self, sequence_number: u64, wall_nanos: u64, out: &mut String) {
        let mut random = of_message(self.seed, sequence_number);
        for piece in &self.pieces {
            // A string takes all.
            let _ = match piece {
                Piece::Text(text) => out.write_str(text),
                Piece::Random(count) => {
                    out.extend((0..*count).map(|_| random.digit(BASE)));
                    Ok(())
                }
                Piece::Number(range) => {
                    range.write(&mut random, out);
                    Ok(())
                }
                Piece::Choice(choices) => {
                    let number = random.usize(..choices.len());
                    out.write_str(&choices[number])
                }
                Piece::Sequence => write!(out, "{sequence_number}"),
                Piece::Time => write!(out, "{}", wall_nanos / 1_000_000),
            };
        }
    }

    /// The same with this text in the place of all that differs.
    pub(super) fn with(&self, text: &str) -> String {
        let texts = self.pieces.iter().map(|piece| match piece {
            Piece::Text(own) => own,
            _ => text,
        });
        texts.collect()
    }

    /// Bytes of the longest payload.
    pub(super) fn longest(template: &str, names: usize) -> usize {
        let length = |part| match part {
            Part::Text(text) => str::len(text),
            Part::Client | Part::Sequence | Part::Time => 20,
            Part::User | Part::Id => names,
            Part::Random(count) => count,
            Part::Number(range) => range.longest(),
            Part::Choice(choices) => choices.split('|').map(str::len).max().unwrap_or_default(),
        };
        parts(template).map(length).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> ClientNames {
        ClientNames { number: "3".into(), user: "kim".into(), id: "dev-3".into(), random: 7, seed: 9 }
    }

    #[test]
    fn places_are_filled_and_what_is_none_is_text() {
        let filled = names().fill("{client}/{user}/{id}/{seq}/{x}/{random:0}/{random:99}/{{client}}{");
        assert_eq!(filled, "3/kim/dev-3/{seq}/{x}/{random:0}/{random:99}/{3}{");
        let random = names().fill("{random:8}");
        assert!(random.len() == 8 && random.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'z')));
        assert_eq!(
            names().fill("a/{random:8}/{random:4}"),
            format!("a/{random}/{}", &random[..4]),
            "its own"
        );
        assert_ne!(ClientNames { random: 8, ..names() }.fill("{random:8}"), random);
        assert_eq!(without_places("a/{client}/{random:3}/{seq}/{clinet}"), "a////{clinet}");
    }

    #[test]
    fn a_payload_has_the_places_of_client_and_message() {
        let template = r#"{"id": "{id}", "n": {seq}, "at": {time}, "x": "{random:12}", "y": {}}"#;
        let payload = MessageTemplate::of_payload(template, &names());
        let mut made = [17, 18].map(|number| {
            let mut out = String::new();
            payload.write(number, 1_700_000_000_123_456_789, &mut out);
            out
        });
        assert!(
            made[0].starts_with(r#"{"id": "dev-3", "n": 17, "at": 1700000000123, "x": ""#)
                && made[0].ends_with(r#"", "y": {}}"#),
            "{made:?}"
        );
        assert!(made.iter().all(|it| it.len() <= MessageTemplate::longest(template, 5)));
        made[1] = made[1].replace("18", "17");
        assert_ne!(made[0], made[1], "random characters are each message's own");
    }

    #[test]
    fn numbers_and_choices_are_the_messages_own_and_the_same_whenever_they_are_written() {
        let template = r#"{"t": {number:18.5..24.0}, "n": {number:1..6}, "s": "{choice:on|off|}", "x": "{choice:one}{number:2..1}"}"#;
        let payload = MessageTemplate::of_payload(template, &names());
        let written = |number| {
            let mut out = String::new();
            payload.write(number, 0, &mut out);
            out
        };
        let all: std::collections::BTreeSet<_> = (0..100).map(written).collect();
        assert!(all.len() > 50, "{}", all.len());
        for text in &all {
            let value: serde_json::Value = serde_json::from_str(text).unwrap();
            let degrees = value["t"].as_f64().unwrap();
            assert!(
                (18.5..=24.0).contains(&degrees) && (1..=6).contains(&value["n"].as_i64().unwrap()),
                "{text}"
            );
            assert!(["on", "off", ""].contains(&value["s"].as_str().unwrap()), "{text}");
            assert_eq!(value["x"], "{choice:one}{number:2..1}");
            assert!(text.len() <= MessageTemplate::longest(template, 5));
        }
        assert_eq!(written(7), written(7));
        let other = MessageTemplate::of_payload(template, &ClientNames { seed: 10, ..names() });
        assert_ne!(payload, other);
        // Of a client they are one each, and the seed's.
        let filled = names().fill("{number:1..1000}/{choice:a|b}");
        assert_eq!(filled, ClientNames { random: 8, ..names() }.fill("{number:1..1000}/{choice:a|b}"));
        assert!(filled.ends_with("/a") || filled.ends_with("/b"), "{filled}");
    }
}
