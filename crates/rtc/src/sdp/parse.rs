//! Reading a description. All that it may grow is bounded.

use std::str::FromStr;

use super::{Description, Direction, Extension, Format, Media, MediaKind, Setup};

/// The longest description that is read, in bytes. Browsers write about 8 kB.
pub const MOST_BYTES: usize = 128 << 10;

/// How many of anything a description or a media section may have.
const MOST_MEDIA: usize = 32;
const MOST_ENTRIES: usize = 128;

/// Why a description cannot be read. Lines are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Far above the largest offers of browsers, which are tens of kilobytes.
    #[error("a session description of {0} bytes; {MOST_BYTES} are read")]
    TooLong(usize),
    /// It does not begin with its version: it is no description at all.
    #[error("no session description: it does not begin with v=0")]
    Version,
    /// Not a letter, an equals sign and a value.
    #[error("line {0} of the session description is malformed")]
    Line(usize),
    /// The value of a known attribute cannot be read.
    #[error("line {line} of the session description: the value of {attribute} cannot be read")]
    Value {
        /// The line.
        line: usize,
        /// The attribute, or the letter of the line.
        attribute: &'static str,
    },
    /// More than any session has.
    #[error("line {line} of the session description: too many of {attribute}")]
    TooMany {
        /// The line.
        line: usize,
        /// The attribute, or the letter of the line.
        attribute: &'static str,
    },
}

impl FromStr for Description {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        if text.len() > MOST_BYTES {
            return Err(ParseError::TooLong(text.len()));
        }
        let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim_end().is_empty());
        if lines.next().is_none_or(|(_, line)| line.trim_end() != "v=0") {
            return Err(ParseError::Version);
        }
        let mut description = Self::default();
        // What the session says for all media is read as a section in front of them.
        let mut session = Media::default();
        for (line_number, line) in lines {
            let value = match line.as_bytes() {
                [b'a'..=b'z', b'=', ..] => line[2..].trim_end(),
                _ => return Err(ParseError::Line(line_number)),
            };
            let section = description.media.last_mut().unwrap_or(&mut session);
            match line.as_bytes()[0] {
                b'm' => {
                    if description.media.len() >= MOST_MEDIA {
                        return Err(ParseError::TooMany { line: line_number, attribute: "m=" });
                    }
                    let media = media(value, &session)
                        .ok_or(ParseError::Value { line: line_number, attribute: "m=" })?;
                    description.media.push(media);
                }
                // What is no number of ours identifies the session as well as any other.
                b'o' => {
                    let session = value.split_whitespace().nth(1).and_then(|word| word.parse().ok());
                    description.session = session.unwrap_or_default();
                }
                b'a' => {
                    let (name, value) = value.split_once(':').unwrap_or((value, ""));
                    match name {
                        "ice-lite" => description.ice_lite = true,
                        "extmap-allow-mixed" => description.extensions_mixed = true,
                        "group" => {
                            if let Some(identifiers) = value.strip_prefix("BUNDLE") {
                                let identifiers = identifiers.split_whitespace().take(MOST_MEDIA);
                                description.bundle = identifiers.map(str::to_owned).collect();
                            }
                        }
                        _ => attribute(section, name, value).map_err(|fault| fault.at(line_number))?,
                    }
                }
                _ => {}
            }
        }
        Ok(description)
    }
}

/// What is wrong with an attribute.
enum Fault {
    Value(&'static str),
    TooMany(&'static str),
}

impl Fault {
    fn at(self, line: usize) -> ParseError {
        match self {
            Self::Value(attribute) => ParseError::Value { line, attribute },
            Self::TooMany(attribute) => ParseError::TooMany { line, attribute },
        }
    }
}

fn media(value: &str, session: &Media) -> Option<Media> {
    let mut words = value.split_whitespace();
    let kind = words.next()?;
    let port = words.next()?.split('/').next()?.parse::<u16>().ok()?;
    let protocol = words.next()?;
    let kind = match kind {
        "video" if protocol.contains("RTP") => MediaKind::Video,
        "audio" if protocol.contains("RTP") => MediaKind::Audio,
        _ => MediaKind::Other,
    };
    let mut media = Media { kind, rejected: port == 0, ..session.clone() };
    if kind != MediaKind::Other {
        for word in words.take(MOST_ENTRIES) {
            let payload_type = word.parse().ok().filter(|payload_type| *payload_type < 128)?;
            if media.format(payload_type).is_none() {
                media.formats.push(Format { payload_type, ..Format::default() });
            }
        }
    }
    Some(media)
}

fn attribute(media: &mut Media, name: &str, value: &str) -> Result<(), Fault> {
    match name {
        "mid" => media.identifier = token(value).ok_or(Fault::Value("mid"))?,
        "sendrecv" => media.direction = Direction::SendReceive,
        "sendonly" => media.direction = Direction::SendOnly,
        "recvonly" => media.direction = Direction::ReceiveOnly,
        "inactive" => media.direction = Direction::Inactive,
        "ice-ufrag" => media.user_fragment = Some(token(value).ok_or(Fault::Value("ice-ufrag"))?),
        "ice-pwd" => media.password = Some(token(value).ok_or(Fault::Value("ice-pwd"))?),
        // Of several fingerprints one that can be checked is enough.
        "fingerprint" => {
            let fingerprint = value.parse().ok();
            media.fingerprint = fingerprint.or(media.fingerprint.take());
        }
        "setup" => {
            media.setup = match value {
                "actpass" => Some(Setup::Either),
                "active" => Some(Setup::Active),
                "passive" => Some(Setup::Passive),
                // Nothing is to be set up for now (RFC 4145 section 4), which no transport of ICE is told.
                "holdconn" => return Ok(()),
                _ => return Err(Fault::Value("setup")),
            };
        }
        "msid" => media.stream = Some(value.trim().to_owned()).filter(|stream| !stream.is_empty()),
        "candidate" => push(&mut media.candidates, value.to_owned(), "candidate")?,
        "end-of-candidates" => media.end_of_candidates = true,
        "rtcp-mux" => media.rtcp_mux = true,
        "rtcp-rsize" => media.rtcp_reduced_size = true,
        "rtpmap" => {
            let (format, value) = format(media, value, "rtpmap")?;
            if let Some(format) = format {
                encoding(format, value).ok_or(Fault::Value("rtpmap"))?;
            }
        }
        "fmtp" => {
            // Some name a format and give it no parameters.
            let value = if value.contains(' ') { value } else { &format!("{value} ") };
            let (format, value) = format(media, value, "fmtp")?;
            if let Some(format) = format.filter(|_| !value.is_empty()) {
                value.clone_into(&mut format.parameters);
            }
        }
        "rtcp-fb" => {
            if let Some(value) = value.strip_prefix("* ") {
                for format in &mut media.formats {
                    push(&mut format.feedback, value.to_owned(), "rtcp-fb")?;
                }
                return Ok(());
            }
            let (format, value) = format(media, value, "rtcp-fb")?;
            if let Some(format) = format {
                push(&mut format.feedback, value.to_owned(), "rtcp-fb")?;
            }
        }
        "extmap" => {
            let mut words = value.split_whitespace();
            // The direction behind the identifier is that of the section in all of the field.
            let identifier = words.next().and_then(|word| word.split('/').next()?.parse::<u16>().ok());
            let (Some(identifier), Some(name)) = (identifier, words.next()) else {
                return Err(Fault::Value("extmap"));
            };
            // Packets have identifiers from 1 to 255. Those from 4096 on are placeholders of an offer with more extensions than
            // numbers (RFC 8285 section 7), and nothing that could be agreed on here.
            if let Some(identifier) = u8::try_from(identifier).ok().filter(|it| *it > 0) {
                push(&mut media.extensions, Extension { identifier, name: name.to_owned() }, "extmap")?;
            }
        }
        "ssrc" => {
            let source = value.split_whitespace().next().and_then(|word| word.parse().ok());
            let source = source.ok_or(Fault::Value("ssrc"))?;
            if !media.sources.contains(&source) {
                push(&mut media.sources, source, "ssrc")?;
            }
        }
        "ssrc-group" => {
            if let Some(sources) = value.strip_prefix("FID ") {
                let mut sources = sources.split_whitespace().map(str::parse);
                let (Some(Ok(source)), Some(Ok(repair))) = (sources.next(), sources.next()) else {
                    return Err(Fault::Value("ssrc-group"));
                };
                push(&mut media.repairs, (source, repair), "ssrc-group")?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn push<T>(list: &mut Vec<T>, item: T, attribute: &'static str) -> Result<(), Fault> {
    if list.len() >= MOST_ENTRIES {
        return Err(Fault::TooMany(attribute));
    }
    list.push(item);
    Ok(())
}

/// One word that is not empty.
fn token(value: &str) -> Option<String> {
    let is_word = !value.is_empty() && !value.contains(char::is_whitespace);
    is_word.then(|| value.to_owned())
}

/// The format that an attribute is about, if the section has it, and the rest of the value.
fn format<'a, 'b>(
    media: &'a mut Media,
    value: &'b str,
    attribute: &'static str,
) -> Result<(Option<&'a mut Format>, &'b str), Fault> {
    let (payload_type, value) = value.split_once(' ').ok_or(Fault::Value(attribute))?;
    if media.kind == MediaKind::Other {
        return Ok((None, value));
    }
    let payload_type: u8 = payload_type.parse().map_err(|_| Fault::Value(attribute))?;
    let format = media.formats.iter_mut().find(|format| format.payload_type == payload_type);
    Ok((format, value.trim()))
}

/// `name/clock rate`, and for sound `/channels`.
fn encoding(format: &mut Format, value: &str) -> Option<()> {
    let mut parts = value.split('/');
    format.name = token(parts.next()?)?;
    format.clock_rate = parts.next()?.parse().ok().filter(|rate| *rate > 0)?;
    format.channels = parts.next().map(str::parse).transpose().ok()?;
    Some(())
}
