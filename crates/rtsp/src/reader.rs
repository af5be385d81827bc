//! What comes over a connection: requests, responses and interleaved binary data, one after the other.
//!
//! A packet that lies whole in what was read is lent from there and not copied.

use std::fmt;
use weir_web::Fields;

/// The longest body that is read, in bytes: far above any description of a camera, which is a few thousand bytes.
pub const LONGEST_BODY: usize = 128 << 10;

/// The longest head: as in HTTP.
const LONGEST_HEAD: usize = 16 << 10;

/// The most fields of a head. Cameras send about ten.
const MOST_FIELDS: usize = 64;

/// How many bytes of what is not RTSP an error shows.
const SHOWN: usize = 25;

/// What a response begins with.
const RESPONSE: &[u8] = b"RTSP/1.0 ";

/// In front of an interleaved packet.
const FRAME_HEADER: usize = 4;

/// A request.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// Such as `DESCRIBE`.
    pub method: String,
    /// What it is about, as the client wrote it.
    pub uri: String,
    /// All of its fields.
    pub fields: Fields,
    /// Its body.
    pub body: Vec<u8>,
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Such as 200.
    pub status: u16,
    /// The server's words, which may be empty.
    pub reason: String,
    /// All of its fields.
    pub fields: Fields,
    /// Its body.
    pub body: Vec<u8>,
}

/// What comes next over a connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A request of the peer.
    Request(Request),
    /// A response of the peer.
    Response(Response),
    /// An interleaved packet.
    Frame {
        /// Its channel.
        channel: u8,
        /// The packet.
        bytes: &'a [u8],
    },
    /// A line of a description behind its announced end, with its line feed: the response said too short a length.
    Rest(Vec<u8>),
}

/// Bytes that are not RTSP 1.0. The connection is of no more use: where the next message begins is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RtspError {
    /// Another protocol.
    #[error("the peer does not speak RTSP: a message begins with {0:?}")]
    NotRtsp(String),
    /// RTSP 2.0, or a version that does not exist.
    #[error("the peer speaks {0}, and weir RTSP/1.0 only")]
    Version(String),
    /// More than any peer says before the body.
    #[error("the head of an RTSP message is longer than 16 KiB, or has more than {MOST_FIELDS} fields")]
    HeadTooLong,
    /// A line in a head that is not a field.
    #[error("a line in the head of an RTSP message is not a field")]
    Field,
    /// A Content-Length that is not a number, or several that differ.
    #[error("the length of an RTSP message's body is not a number: {0:?}")]
    Length(String),
    /// A body that is longer than any description.
    #[error("an RTSP message has a body of {0} bytes; {LONGEST_BODY} are read")]
    BodyTooLong(u64),
}

/// What is being gathered.
#[derive(Debug)]
enum State {
    /// Nothing: the next byte begins something.
    Between,
    /// An interleaved packet, its header included.
    Frame,
    /// The lines of a head.
    Head,
    /// A body behind its head, until it has this length.
    Body(Box<Head>, usize),
}

/// A head that is whole.
#[derive(Debug)]
struct Head {
    start: StartLine,
    fields: Fields,
}

#[derive(Debug)]
enum StartLine {
    Request { method: String, uri: String },
    Response { status: u16, reason: String },
}

/// Reads one side of a connection.
#[derive(Debug)]
pub struct Reader {
    state: State,
    bytes: Vec<u8>,
    /// Lines of the head so far, and where the present one begins.
    lines: usize,
    line_at: usize,
    /// How much more may follow a description of which too short a length was announced.
    rest: usize,
}

impl Reader {
    /// A connection on which nothing has come.
    pub fn new() -> Self {
        Self { state: State::Between, bytes: Vec::new(), lines: 0, line_at: 0, rest: 0 }
    }

    /// Takes the next item off the front of `bytes`; `None` when they are used up.
    ///
    /// # Errors
    /// What came is not RTSP 1.0, or longer than any peer has reason to send.
    #[inline]
    pub fn take<'s, 'b: 's>(&'s mut self, bytes: &mut &'b [u8]) -> Result<Option<Item<'s>>, RtspError> {
        // The short way for packets that are whole.
        if matches!(self.state, State::Between)
            && let [b'$', channel, high, low, rest @ ..] = *bytes
            && let Some((packet, rest)) = rest.split_at_checked(u16::from_be_bytes([*high, *low]).into())
        {
            *bytes = rest;
            return Ok(Some(Item::Frame { channel: *channel, bytes: packet }));
        }
        self.gather(bytes)
    }

    /// Bytes of a body that has begun to come and is not whole.
    pub fn body_so_far(&self) -> Option<usize> {
        matches!(self.state, State::Body(..)).then_some(self.bytes.len()).filter(|length| *length > 0)
    }

    /// The message whose body is not coming to its announced end, with what came of it: some cameras announce more than they
    /// send.
    pub fn give_up_body(&mut self) -> Option<Item<'static>> {
        match std::mem::replace(&mut self.state, State::Between) {
            State::Body(head, _) => {
                let body = std::mem::take(&mut self.bytes);
                // The rest may come yet.
                self.rest = if head.is_description() { LONGEST_BODY.saturating_sub(body.len()) } else { 0 };
                Some(head.item(body))
            }
            state => {
                self.state = state;
                None
            }
        }
    }

    fn gather<'s>(&'s mut self, bytes: &mut &[u8]) -> Result<Option<Item<'s>>, RtspError> {
        loop {
            match &mut self.state {
                State::Between => {
                    let Some((&first, rest)) = bytes.split_first() else { return Ok(None) };
                    self.bytes.clear();
                    match first {
                        b'$' => {
                            self.state = State::Frame;
                            self.rest = 0;
                        }
                        // The end of a line behind a description that was announced too short is the description's.
                        b'\r' | b'\n' if self.rest > 0 => {
                            self.rest -= 1;
                            *bytes = rest;
                            return Ok(Some(Item::Rest(vec![first])));
                        }
                        // RFC 2326 section 4.1 refers to HTTP, whose servers pass over empty lines before a message.
                        b'\r' | b'\n' => *bytes = rest,
                        _ => (self.state, self.lines, self.line_at) = (State::Head, 0, 0),
                    }
                }
                State::Frame => {
                    self.fill(bytes, FRAME_HEADER);
                    let Some(&[_, channel, high, low]) = self.bytes.first_chunk() else { return Ok(None) };
                    let length = FRAME_HEADER + usize::from(u16::from_be_bytes([high, low]));
                    self.fill(bytes, length);
                    if self.bytes.len() < length {
                        return Ok(None);
                    }
                    self.state = State::Between;
                    return Ok(Some(Item::Frame { channel, bytes: &self.bytes[FRAME_HEADER..] }));
                }
                State::Head => {
                    let Some(line) = self.line(bytes)? else { return Ok(None) };
                    if line.is_empty() {
                        let (head, length) = self.head()?;
                        self.bytes.clear();
                        self.state = State::Body(Box::new(head), length);
                    }
                }
                State::Body(_, length) => {
                    let length = *length;
                    self.fill(bytes, length);
                    if self.bytes.len() < length {
                        return Ok(None);
                    }
                    let State::Body(head, _) = std::mem::replace(&mut self.state, State::Between) else {
                        return Ok(None);
                    };
                    let body = std::mem::take(&mut self.bytes);
                    self.rest = if head.is_description() { LONGEST_BODY - body.len() } else { 0 };
                    return Ok(Some(head.item(body)));
                }
            }
            if self.lines == 1 && matches!(self.state, State::Head) && !self.is_start_line() {
                return self.rest().map(Some);
            }
        }
    }

    /// Takes bytes until there are so many, or none are left.
    fn fill(&mut self, bytes: &mut &[u8], length: usize) {
        let missing = length.saturating_sub(self.bytes.len()).min(bytes.len());
        let (now, later) = bytes.split_at(missing);
        self.bytes.extend_from_slice(now);
        *bytes = later;
    }

    /// Takes bytes to the end of a line, which is returned without it.
    fn line(&mut self, bytes: &mut &[u8]) -> Result<Option<&[u8]>, RtspError> {
        let end = bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let (now, later) = bytes.split_at(end.unwrap_or(bytes.len()));
        self.check_start(now)?;
        if self.bytes.len() + now.len() > LONGEST_HEAD {
            return Err(RtspError::HeadTooLong);
        }
        self.bytes.extend_from_slice(now);
        *bytes = later;
        if end.is_none() {
            return Ok(None);
        }
        let line = trimmed(&self.bytes[self.line_at..]);
        self.line_at = self.bytes.len();
        self.lines += 1;
        if self.lines > MOST_FIELDS + 2 {
            return Err(RtspError::HeadTooLong);
        }
        Ok(Some(line))
    }

    /// A first line that has no end yet is not gathered if it cannot be one.
    fn check_start(&self, more: &[u8]) -> Result<(), RtspError> {
        if self.lines > 0 || self.rest > 0 {
            return Ok(());
        }
        let is_text = |byte: &u8| matches!(byte, b'\r' | b'\n' | b'\t' | 0x20..=0x7E | 0x80..);
        let first = self.bytes.first().or(more.first());
        if first.is_some_and(u8::is_ascii_alphanumeric) && more.iter().all(is_text) {
            return Ok(());
        }
        Err(self.not_rtsp(more))
    }

    fn not_rtsp(&self, more: &[u8]) -> RtspError {
        let shown: Vec<u8> = self.bytes.iter().chain(more).take(SHOWN).copied().collect();
        RtspError::NotRtsp(String::from_utf8_lossy(&shown).into_owned())
    }

    fn first_line(&self) -> &[u8] {
        trimmed(self.bytes.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default())
    }

    fn is_start_line(&self) -> bool {
        let line = self.first_line();
        line.starts_with(b"RTSP/")
            || line.rsplit(|byte| *byte == b' ').next().is_some_and(|it| it.starts_with(b"RTSP/"))
    }

    /// A line that begins no message.
    fn rest(&mut self) -> Result<Item<'static>, RtspError> {
        let mut line = std::mem::take(&mut self.bytes);
        self.state = State::Between;
        // A description without a line feed at its end, and the next response behind it.
        let next = line.windows(RESPONSE.len()).position(|it| it == RESPONSE).filter(|_| self.rest > 0);
        if let Some(at) = next {
            self.bytes = line.split_off(at);
            (self.state, self.line_at) = (State::Head, self.bytes.len());
        }
        match self.rest.checked_sub(line.len()) {
            Some(left) if self.rest > 0 => {
                self.rest = left;
                Ok(Item::Rest(line))
            }
            _ => {
                (self.bytes, self.state) = (line, State::Between);
                Err(self.not_rtsp(&[]))
            }
        }
    }

    /// Reads the head, and how long a body follows.
    fn head(&self) -> Result<(Head, usize), RtspError> {
        let text = String::from_utf8_lossy(&self.bytes);
        let mut lines = text.split('\n').map(|line| line.trim_end_matches('\r'));
        let start = start_line(lines.next().unwrap_or_default())?;
        let mut fields: Vec<(String, String)> = Vec::new();
        for line in lines.filter(|line| !line.is_empty()) {
            // RFC 2326 section 4.2 takes over folded lines of HTTP/1.1.
            if line.starts_with([' ', '\t']) {
                let (_, value) = fields.last_mut().ok_or(RtspError::Field)?;
                value.push(' ');
                value.push_str(line.trim());
                continue;
            }
            let (name, value) = line.split_once(':').ok_or(RtspError::Field)?;
            fields.push((name.trim().to_owned(), value.trim().to_owned()));
        }
        let fields: Fields = fields.into_iter().collect();
        let length = length(&fields)?;
        Ok((Head { start, fields }, length))
    }
}

impl Default for Reader {
    fn default() -> Self {
        Self::new()
    }
}

impl Head {
    fn is_description(&self) -> bool {
        matches!(self.start, StartLine::Response { .. })
            && self.fields.get("content-type").is_some_and(|kind| kind.contains("sdp"))
    }

    fn item(self, body: Vec<u8>) -> Item<'static> {
        let fields = self.fields;
        match self.start {
            StartLine::Request { method, uri } => Item::Request(Request { method, uri, fields, body }),
            StartLine::Response { status, reason } => {
                Item::Response(Response { status, reason, fields, body })
            }
        }
    }
}

impl Response {
    /// The server's own words.
    pub fn said(&self) -> String {
        format!("{} {}", self.status, self.reason).trim_end().to_owned()
    }

    /// Whether it is a refusal, or leads elsewhere.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URI may be a key.
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("fields", &self.fields)
            .finish_non_exhaustive()
    }
}

fn trimmed(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn start_line(line: &str) -> Result<StartLine, RtspError> {
    let version = |version: &str| match version {
        "RTSP/1.0" => Ok(()),
        other => Err(RtspError::Version(other.chars().take(SHOWN).collect())),
    };
    let not_rtsp = || RtspError::NotRtsp(line.chars().take(SHOWN).collect());
    if line.starts_with("RTSP/") {
        let mut words = line.splitn(3, ' ');
        version(words.next().unwrap_or_default())?;
        let status =
            words.next().and_then(|status| status.parse().ok()).filter(|it| (100..1000).contains(it));
        let reason = words.next().unwrap_or_default().trim().to_owned();
        return Ok(StartLine::Response { status: status.ok_or_else(not_rtsp)?, reason });
    }
    let (method, rest) = line.split_once(' ').ok_or_else(not_rtsp)?;
    let (uri, last) = rest.rsplit_once(' ').ok_or_else(not_rtsp)?;
    version(last)?;
    Ok(StartLine::Request { method: method.to_owned(), uri: uri.trim().to_owned() })
}

/// RFC 2326 section 12.14: "Unlike HTTP, it MUST be included in all messages that carry content beyond the header portion of the
/// message. If it is missing, a default value of zero is assumed."
fn length(fields: &Fields) -> Result<usize, RtspError> {
    let mut length = None;
    for part in fields.all("content-length").flat_map(|value| value.split(',')).map(str::trim) {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        match part.parse::<u64>().ok().filter(|_| is_number) {
            Some(number) if length.is_none_or(|before| before == number) => length = Some(number),
            _ => return Err(RtspError::Length(part.chars().take(SHOWN).collect())),
        }
    }
    let length = length.unwrap_or(0);
    usize::try_from(length).ok().filter(|it| *it <= LONGEST_BODY).ok_or(RtspError::BodyTooLong(length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What comes of these pieces, with packets copied, and the error that ended it.
    fn read(pieces: &[&[u8]]) -> (Vec<String>, Option<RtspError>) {
        let (mut reader, mut items) = (Reader::new(), Vec::new());
        for mut piece in pieces.iter().copied() {
            loop {
                match reader.take(&mut piece) {
                    Ok(Some(Item::Request(it))) => {
                        items.push(format!("{} {} {:?}", it.method, it.uri, it.body));
                    }
                    Ok(Some(Item::Response(it))) => {
                        items.push(format!("{} {:?} {:?}", it.said(), it.fields.get("cseq"), it.body));
                    }
                    Ok(Some(Item::Frame { channel, bytes })) => items.push(format!("${channel} {bytes:?}")),
                    Ok(Some(Item::Rest(line))) => items.push(format!("+{}", String::from_utf8_lossy(&line))),
                    Ok(None) => break,
                    Err(error) => return (items, Some(error)),
                }
            }
        }
        (items, None)
    }

    const DIALOGUE: &[u8] = b"\r\nRTSP/1.0 200 OK\r\nCSeq: 1\r\nContent-Length: 3\r\n\r\nabc$\x02\0\x02hi\
        DESCRIBE rtsp://h/a b RTSP/1.0\nCSeq:2\n\n$\0\0\0RTSP/1.0 404\r\nX: a\r\n  folded\r\n\r\n";

    #[test]
    fn messages_and_packets_follow_each_other_in_any_pieces() {
        let expected = [
            "200 OK Some(\"1\") [97, 98, 99]",
            "$2 [104, 105]",
            "DESCRIBE rtsp://h/a b []",
            "$0 []",
            "404 None []",
        ];
        assert_eq!(read(&[DIALOGUE]).0, expected);
        let bytes: Vec<&[u8]> = DIALOGUE.chunks(1).collect();
        assert_eq!(read(&bytes), read(&[DIALOGUE]));
    }

    #[test]
    fn what_is_not_rtsp_is_named() {
        for (wire, words) in [
            (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "begins with \"HTTP/1.1 400 Bad Request"),
            (b"\x16\x03\x01", "does not speak RTSP"),
            (b"RTSP/2.0 200 OK\r\n\r\n", "speaks RTSP/2.0"),
            (b"RTSP/1.0 OK\r\n\r\n", "does not speak RTSP"),
            (b"RTSP/1.0 200 OK\r\nno field\r\n\r\n", "not a field"),
            (b"RTSP/1.0 200 OK\r\nContent-Length: -1\r\n\r\n", "not a number"),
            (b"RTSP/1.0 200 OK\r\nContent-Length: 999999999\r\n\r\n", "999999999 bytes"),
        ] {
            let error = read(&[wire]).1.expect(words).to_string();
            assert!(error.contains(words), "{error}");
        }
        let long = [b"OPTIONS * RTSP/1.0\r\nX: ".as_slice(), &[b'x'; LONGEST_HEAD]].concat();
        assert_eq!(read(&[&long]).1, Some(RtspError::HeadTooLong));
    }

    #[test]
    fn a_description_goes_on_behind_an_announced_length_that_is_too_short() {
        let wire = b"RTSP/1.0 200 OK\r\nContent-Type: application/sdp\r\nContent-Length: 9\r\n\r\nv=0\r\nm=video\r\na=x\r\n\
            RTSP/1.0 200 OK\r\n\r\n";
        let (items, error) = read(&[wire]);
        assert_eq!((items.len(), error), (4, None), "{items:?}");
        assert_eq!(items[1], "+deo\r\n");
        // It is cut in front of a line's end, and the rest has none.
        let wire = b"RTSP/1.0 200 OK\r\nContent-Type: application/sdp\r\nContent-Length: 3\r\n\r\nv=0\r\na=control:1RTSP/1.0 404 No\r\n\r\n";
        let (items, error) = read(&[wire]);
        assert_eq!(error, None);
        assert_eq!(items[1..], ["+\r", "+\n", "+a=control:1", "404 No None []"]);
        // Of anything else it is not RTSP.
        let other = b"RTSP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nv=0\r\n";
        assert!(matches!(read(&[other]).1, Some(RtspError::NotRtsp(_))));
    }

    #[test]
    fn a_description_that_is_shorter_than_announced_is_what_came_of_it() {
        let mut reader = Reader::new();
        let mut wire =
            &b"RTSP/1.0 200 OK\r\nContent-Type: application/sdp\r\nContent-Length: 90\r\n\r\nv=0\r\n"[..];
        assert_eq!(reader.take(&mut wire), Ok(None));
        assert_eq!(reader.body_so_far(), Some(5));
        let Some(Item::Response(response)) = reader.give_up_body() else { panic!("no response") };
        assert_eq!(response.body, b"v=0\r\n");
        assert!(reader.give_up_body().is_none());
        // What comes of it later is no other protocol.
        assert_eq!(reader.take(&mut &b"m=video\n"[..]), Ok(Some(Item::Rest(b"m=video\n".to_vec()))));
    }

    const PARTS: &[&[u8]] = &[
        b"$\x01\0\x03abc",
        b"RTSP/1.0 200 OK\r\n",
        b"\r\n",
        b"A b RTSP/1.0\n",
        b"Content-Length: 2\r\n",
        b"Content-Type: application/sdp\r\n",
        b"a=b\n",
        b"\0",
        b"x",
    ];

    proptest! {
        #[test]
        fn every_split_of_any_bytes_reads_the_same(
            bytes in prop::collection::vec(prop::sample::select(PARTS), 0..12),
            cut: usize,
        ) {
            let bytes = bytes.concat();
            let (first, second) = bytes.split_at(cut % (bytes.len() + 1));
            let (whole, parts) = (read(&[&bytes]), read(&[first, second]));
            prop_assert_eq!(whole.0, parts.0);
            // The words of an error show what stood behind it.
            prop_assert_eq!(whole.1.map(|it| std::mem::discriminant(&it)), parts.1.map(|it| std::mem::discriminant(&it)));
        }
    }
}
