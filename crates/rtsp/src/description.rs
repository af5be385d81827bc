//! Descriptions of cameras and media servers: tracks, payload formats and where to control each.
//!
//! Much of what cameras send is not quite SDP (RFC 8866), so that a line which cannot be read is passed over.

use std::fmt;
use weir_rtc::sdp::Format;

/// How many media a description may have: cameras have up to five, with metadata and sound of both directions.
pub const MOST_MEDIA: usize = 16;

/// How many payload formats a media may have.
const MOST_FORMATS: usize = 32;

/// What a media carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaKind {
    /// Pictures.
    Video,
    /// Sound.
    Audio,
    /// Metadata, text, and whatever else.
    Other,
}

/// One media section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Media {
    /// What it carries.
    pub kind: MediaKind,
    /// Whether packets are encrypted (`RTP/SAVP`).
    pub is_secure: bool,
    /// Payload types, the first the one that is meant.
    pub formats: Vec<Format>,
    /// `a=control`, as written.
    pub control: Option<String>,
    /// Whether the client is the one that sends (`a=sendonly` of a back channel, as ONVIF has it).
    pub is_back_channel: bool,
}

/// A description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// `a=control` of the session.
    pub control: Option<String>,
    /// `a=range` of the session or of a media, as written: the times that can be played.
    pub range: Option<String>,
    /// The media.
    pub media: Vec<Media>,
}

impl Description {
    /// Reads a description. Lines that cannot be read are passed over.
    pub fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let mut description = Self::default();
        for line in text.split(['\r', '\n']).map(str::trim) {
            let Some((name, value)) = line.split_once('=') else { continue };
            match name {
                "m" if description.media.len() == MOST_MEDIA => break,
                "m" => description.media.extend(media(value)),
                "a" => {
                    let (name, value) = value.split_once(':').unwrap_or((value, ""));
                    let value = value.trim();
                    match (name.trim(), description.media.last_mut()) {
                        ("range", _) => description.range = Some(value.to_owned()),
                        ("control", None) => description.control = Some(value.to_owned()),
                        (name, Some(media)) => media.attribute(name, value),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        description
    }

    /// Whether it is of something recorded, with a beginning to play from.
    ///
    /// RFC 2326 section 3.6: "The beginning of a presentation corresponds to 0.0 seconds … The special constant now is defined as
    /// the current instant of a live event."
    pub fn is_recorded(&self) -> bool {
        self.range.as_deref().is_some_and(|range| !range.contains("now"))
    }

    /// The URL that stands for all tracks, where the description came from `base`.
    ///
    /// RFC 2326 section C.1.1: "If this attribute contains only an asterisk (*), then the URL is treated as if it were an empty
    /// embedded URL, and thus inherits the entire base URL."
    pub fn aggregate(&self, base: &str) -> String {
        self.control.as_deref().map_or_else(|| base.to_owned(), |control| resolve(base, control))
    }

    /// The URL of a media.
    pub fn track(&self, base: &str, media: &Media) -> String {
        let base = match self.control.as_deref() {
            // An absolute URL of the session is where its tracks are relative to.
            Some(control) if is_absolute(control) => control,
            _ => base,
        };
        media.control.as_deref().map_or_else(|| base.to_owned(), |control| resolve(base, control))
    }
}

impl Media {
    /// What its packets carry.
    pub fn format(&self) -> Option<&Format> {
        self.formats.first()
    }

    fn attribute(&mut self, name: &str, value: &str) {
        match name {
            "control" => self.control = Some(value.to_owned()),
            "sendonly" => self.is_back_channel = true,
            "rtpmap" => {
                if let Some((format, encoding)) = self.described(value) {
                    let mut parts = encoding.split('/').map(str::trim);
                    parts.next().unwrap_or_default().clone_into(&mut format.name);
                    format.clock_rate =
                        parts.next().and_then(|rate| rate.parse().ok()).unwrap_or(format.clock_rate);
                    format.channels = parts.next().and_then(|channels| channels.parse().ok());
                }
            }
            "fmtp" => {
                if let Some((format, parameters)) = self.described(value) {
                    parameters.clone_into(&mut format.parameters);
                }
            }
            _ => {}
        }
    }

    /// The format that an attribute is about, and what it says.
    fn described<'v>(&mut self, value: &'v str) -> Option<(&mut Format, &'v str)> {
        let (number, rest) = value.split_once(' ')?;
        let number: u8 = number.trim().parse().ok()?;
        let format = self.formats.iter_mut().find(|format| format.payload_type == number)?;
        Some((format, rest.trim()))
    }
}

/// As it is sent: every track with its control.
impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("v=0\r\no=- 0 0 IN IP4 0.0.0.0\r\ns=weir\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\n")?;
        if let Some(control) = &self.control {
            write!(f, "a=control:{control}\r\n")?;
        }
        if let Some(range) = &self.range {
            write!(f, "a=range:{range}\r\n")?;
        }
        for media in &self.media {
            let kind = match media.kind {
                MediaKind::Video => "video",
                MediaKind::Audio => "audio",
                MediaKind::Other => "application",
            };
            let profile = if media.is_secure { "SAVP" } else { "AVP" };
            write!(f, "m={kind} 0 RTP/{profile}")?;
            media.formats.iter().try_for_each(|format| write!(f, " {}", format.payload_type))?;
            f.write_str("\r\n")?;
            for format in &media.formats {
                write!(f, "a=rtpmap:{} {}/{}", format.payload_type, format.name, format.clock_rate)?;
                format.channels.map_or(Ok(()), |channels| write!(f, "/{channels}"))?;
                f.write_str("\r\n")?;
                if !format.parameters.is_empty() {
                    write!(f, "a=fmtp:{} {}\r\n", format.payload_type, format.parameters)?;
                }
            }
            if media.is_back_channel {
                f.write_str("a=sendonly\r\n")?;
            }
            if let Some(control) = &media.control {
                write!(f, "a=control:{control}\r\n")?;
            }
        }
        Ok(())
    }
}

fn media(value: &str) -> Option<Media> {
    let mut words = value.split_whitespace();
    let kind = match words.next()?.to_ascii_lowercase().as_str() {
        "video" => MediaKind::Video,
        "audio" => MediaKind::Audio,
        _ => MediaKind::Other,
    };
    let (_port, protocol) = (words.next()?, words.next()?);
    let formats =
        words.filter_map(|word| word.parse().ok()).filter(|number| *number < 128).take(MOST_FORMATS);
    let formats: Vec<Format> = formats.map(fixed).collect();
    let is_secure = protocol.to_ascii_uppercase().contains("SAVP");
    Some(Media { kind, is_secure, formats, control: None, is_back_channel: false })
}

/// A payload type, with the codec that RFC 3551 section 6 gives it.
fn fixed(payload_type: u8) -> Format {
    let (name, clock_rate) = match payload_type {
        0 => ("PCMU", 8_000),
        3 => ("GSM", 8_000),
        4 => ("G723", 8_000),
        8 => ("PCMA", 8_000),
        9 => ("G722", 8_000),
        10 | 11 => ("L16", 44_100),
        13 | 19 => ("CN", 8_000),
        14 => ("MPA", 90_000),
        18 => ("G729", 8_000),
        26 => ("JPEG", 90_000),
        31 => ("H261", 90_000),
        32 => ("MPV", 90_000),
        33 => ("MP2T", 90_000),
        34 => ("H263", 90_000),
        _ => ("", 90_000),
    };
    Format { payload_type, name: name.to_owned(), clock_rate, ..Format::default() }
}

fn is_absolute(url: &str) -> bool {
    let scheme = url.split("://").next().unwrap_or_default();
    url.contains("://") && ["rtsp", "rtsps", "rtspu"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

/// Where a control leads. RFC 2326 has it resolved as RFC 1808 says; servers and clients have agreed on another way, by which
/// it is put behind the base, query and all, with a slash between them.
fn resolve(base: &str, control: &str) -> String {
    match control {
        "" | "*" => base.to_owned(),
        absolute if is_absolute(absolute) => absolute.to_owned(),
        relative if base.ends_with('/') => format!("{base}{}", relative.trim_start_matches('/')),
        relative => format!("{base}/{}", relative.trim_start_matches('/')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAMERA: &str = "v=0\r\no=- 1 1 IN IP4 10.0.0.2\r\ns=Media\r\nno line\r\na=control:*\r\nt=0 0\r\n\
        m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1;sprop-parameter-sets=Z0IAHg==,aM4=\r\n\
        a=control:trackID=1\r\nm=audio 0 RTP/AVP 0\r\na=control:rtsp://10.0.0.2/a/trackID=2\r\n\
        m=application 0 RTP/AVP 107\r\na=rtpmap:107 vnd.onvif.metadata/90000\r\na=control:/meta\r\n";

    #[test]
    fn a_cameras_description_has_its_tracks() {
        let description = Description::parse(CAMERA.as_bytes());
        let names: Vec<_> =
            description.media.iter().map(|media| media.format().unwrap().name.clone()).collect();
        assert_eq!(names, ["H264", "PCMU", "vnd.onvif.metadata"]);
        let base = "rtsp://cam/a?ch=1";
        assert_eq!(description.aggregate(base), base);
        assert!(!description.is_recorded());
        for (range, expected) in [("npt=now-", false), ("npt=0-", true), ("npt=0-30.5", true)] {
            let text = format!("v=0\r\na=range:{range}\r\n");
            assert_eq!(Description::parse(text.as_bytes()).is_recorded(), expected, "{range}");
        }
        let tracks: Vec<_> = description.media.iter().map(|media| description.track(base, media)).collect();
        let expected =
            ["rtsp://cam/a?ch=1/trackID=1", "rtsp://10.0.0.2/a/trackID=2", "rtsp://cam/a?ch=1/meta"];
        assert_eq!(tracks, expected);
        assert_eq!(description.track("rtsp://cam/a/", &description.media[0]), "rtsp://cam/a/trackID=1");
    }

    #[test]
    fn an_absolute_control_of_the_session_is_the_base_of_its_tracks() {
        let text = "v=0\na=control:rtsp://h/live/\nm=video 0 RTP/SAVP 26\na=control:1\nm=audio 0 RTP/AVP 97\na=sendonly\n";
        let description = Description::parse(text.as_bytes());
        assert_eq!(description.aggregate("rtsp://x"), "rtsp://h/live/");
        assert_eq!(description.track("rtsp://x", &description.media[0]), "rtsp://h/live/1");
        assert!(description.media[0].is_secure && description.media[1].is_back_channel);
        assert_eq!(
            (&*description.media[0].formats[0].name, description.media[1].control.as_ref()),
            ("JPEG", None)
        );
    }

    #[test]
    fn what_is_written_is_read() {
        let description = Description::parse(CAMERA.as_bytes());
        assert_eq!(Description::parse(description.to_string().as_bytes()), description);
    }

    #[test]
    fn what_is_no_description_has_no_media() {
        assert_eq!(Description::parse(b"\0\xFF=a\nm=\nm=video\na=:"), Description::default());
        let many = "m=video 0 RTP/AVP 96\n".repeat(100);
        assert_eq!(Description::parse(many.as_bytes()).media.len(), MOST_MEDIA);
    }
}
