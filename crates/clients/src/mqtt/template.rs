//! Texts with places in braces for what differs from client to client, and from message to message.

use fastrand::Rng;
use std::io::Write;

/// Letters and digits: what characters of `{random:N}` are digits to.
const BASE: u32 = 36;

/// Longest `{random:N}`: as many characters as MQTT 3.1.1 and brokers with short limits take of an identifier, and some more.
const MOST_RANDOM: usize = 64;

/// Bytes of the longest place, behind its first brace: `random:64}`.
const LONGEST_PLACE: usize = 10;

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
fn place(text: &str) -> Option<(Part<'static>, usize)> {
    let text = text.strip_prefix('{')?;
    let name = &text[..text.bytes().take(LONGEST_PLACE).position(|byte| byte == b'}')?];
    let place = match name {
        "client" => Part::Client,
        "user" => Part::User,
        "id" => Part::Id,
        "seq" => Part::Sequence,
        "time" => Part::Time,
        _ => {
            let count = name.strip_prefix("random:")?.parse().ok()?;
            if !(1..=MOST_RANDOM).contains(&count) {
                return None;
            }
            Part::Random(count)
        }
    };
    Some((place, name.len() + 2))
}

/// What may stand in the topic of a URL, for a person who has written something else.
pub(crate) const PLACES: &str = "{i}, {client}, {user}, {id}, {random:N}, {seq}";

/// A topic without the places that topics may have.
pub(crate) fn without_places(topic: &str) -> String {
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
    pub(super) random: u64,
}

impl ClientNames {
    /// A text with the client's own in its places. Those of messages stay.
    pub(super) fn fill(&self, template: &str) -> String {
        let mut filled = String::with_capacity(template.len());
        for part in parts(template) {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Client => filled.push_str(&self.number),
                Part::User => filled.push_str(&self.user),
                Part::Id => filled.push_str(&self.id),
                Part::Random(count) => {
                    let mut random = Rng::with_seed(self.random);
                    filled.extend((0..count).map(|_| random.digit(BASE)));
                }
                Part::Sequence => filled.push_str("{seq}"),
                Part::Time => filled.push_str("{time}"),
            }
        }
        filled
    }
}

/// A payload with places, of one client.
#[derive(Clone, Debug)]
pub(super) struct PayloadTemplate {
    pieces: Vec<Piece>,
    random: Rng,
}

/// What is left to do for a message.
#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    Random(usize),
    Sequence,
    Time,
}

impl PayloadTemplate {
    pub(super) fn of(template: &str, names: &ClientNames) -> Self {
        let mut pieces = Vec::new();
        for part in parts(template) {
            let text = match part {
                // Random characters are each message's own.
                Part::Random(count) => {
                    pieces.push(Piece::Random(count));
                    continue;
                }
                Part::Sequence => {
                    pieces.push(Piece::Sequence);
                    continue;
                }
                Part::Time => {
                    pieces.push(Piece::Time);
                    continue;
                }
                Part::Text(text) => text,
                Part::Client => &names.number,
                Part::User => &names.user,
                Part::Id => &names.id,
            };
            match pieces.last_mut() {
                Some(Piece::Text(before)) => before.push_str(text),
                _ => pieces.push(Piece::Text(text.to_owned())),
            }
        }
        Self { pieces, random: Rng::with_seed(names.random) }
    }

    /// Appends the payload of a message.
    pub(super) fn write(&mut self, sequence_number: u64, wall_nanos: u64, out: &mut Vec<u8>) {
        for piece in &self.pieces {
            // A vector takes all.
            let _ = match piece {
                Piece::Text(text) => out.write_all(text.as_bytes()),
                Piece::Random(count) => {
                    out.extend((0..*count).map(|_| self.random.digit(BASE) as u8));
                    Ok(())
                }
                Piece::Sequence => write!(out, "{sequence_number}"),
                Piece::Time => write!(out, "{}", wall_nanos / 1_000_000),
            };
        }
    }

    /// Bytes of the longest payload.
    pub(super) fn longest(template: &str, names: usize) -> usize {
        let length = |part| match part {
            Part::Text(text) => str::len(text),
            Part::Client | Part::Sequence | Part::Time => 20,
            Part::User | Part::Id => names,
            Part::Random(count) => count,
        };
        parts(template).map(length).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> ClientNames {
        ClientNames { number: "3".into(), user: "kim".into(), id: "dev-3".into(), random: 7 }
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
        let mut payload = PayloadTemplate::of(template, &names());
        let mut made = [17, 18].map(|number| {
            let mut out = Vec::new();
            payload.write(number, 1_700_000_000_123_456_789, &mut out);
            String::from_utf8(out).unwrap()
        });
        assert!(
            made[0].starts_with(r#"{"id": "dev-3", "n": 17, "at": 1700000000123, "x": ""#)
                && made[0].ends_with(r#"", "y": {}}"#),
            "{made:?}"
        );
        assert!(made.iter().all(|it| it.len() <= PayloadTemplate::longest(template, 5)));
        made[1] = made[1].replace("18", "17");
        assert_ne!(made[0], made[1], "random characters are each message's own");
    }
}
