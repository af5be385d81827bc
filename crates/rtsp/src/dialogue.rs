//! A client's side of the dialogue: numbers its requests, logs in where the server asks for it, and keeps its session alive.

use crate::challenge::{Challenge, Login};
use crate::header::SessionHeader;
use crate::message::Message;
use crate::reader::Response;
use std::collections::VecDeque;
use std::time::Duration;

/// How many requests may wait for their responses.
const MOST_PENDING: usize = 16;

/// How often a login is answered for one request: once, and again when its nonce was used up.
const MOST_LOGINS: u8 = 2;

/// How long a session lives without a request, if the server does not say.
///
/// RFC 2326 section 12.37: "The timeout is measured in seconds, with a default of 60 seconds (1 minute)."
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// What the server can do.
    Options,
    /// What there is to play.
    Describe,
    /// Describes what is to be recorded.
    Announce,
    /// How a track is carried.
    Setup,
    /// Begins to play.
    Play,
    /// Begins to record.
    Record,
    /// Stops for a while.
    Pause,
    /// Asks for nothing, to keep a session alive.
    GetParameter,
    /// Ends the session.
    Teardown,
}

impl Method {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Options => "OPTIONS",
            Self::Describe => "DESCRIBE",
            Self::Announce => "ANNOUNCE",
            Self::Setup => "SETUP",
            Self::Play => "PLAY",
            Self::Record => "RECORD",
            Self::Pause => "PAUSE",
            Self::GetParameter => "GET_PARAMETER",
            Self::Teardown => "TEARDOWN",
        }
    }
}

/// What a response means.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// It answers a request of this kind, whatever it says.
    Of(Method, Response),
    /// The request is sent again, with a login.
    Again(Method),
    /// It answers no request that waits.
    Strange,
}

/// A request that waits for its response.
#[derive(Clone)]
struct Pending {
    number: u32,
    method: Method,
    uri: String,
    fields: Vec<(&'static str, String)>,
    body: Option<String>,
    logins: u8,
}

/// A client's side of a connection.
pub struct Dialogue {
    next_number: u32,
    pending: VecDeque<Pending>,
    login: Option<Login>,
    challenge: Option<Challenge>,
    /// Answers to the challenge so far.
    count: u32,
    random: u64,
    session: Option<SessionHeader>,
    has_get_parameter: bool,
    out: Vec<u8>,
}

impl Dialogue {
    /// A dialogue that has not begun. `random` is the nonce of its own that a client adds to a login.
    pub fn new(login: Option<Login>, random: u64) -> Self {
        Self {
            next_number: 1,
            pending: VecDeque::new(),
            login,
            challenge: None,
            count: 0,
            random,
            session: None,
            has_get_parameter: false,
            out: Vec::new(),
        }
    }

    /// What is to be sent; the caller empties it.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Asks for something, with these fields beside what every request has.
    pub fn request(&mut self, method: Method, uri: &str, fields: Vec<(&'static str, String)>) {
        self.request_with(method, uri, fields, None);
    }

    /// The same with a description as its body.
    pub fn announce(&mut self, uri: &str, description: String) {
        self.request_with(Method::Announce, uri, Vec::new(), Some(description));
    }

    fn request_with(
        &mut self,
        method: Method,
        uri: &str,
        fields: Vec<(&'static str, String)>,
        body: Option<String>,
    ) {
        let pending = Pending { number: 0, method, uri: uri.to_owned(), fields, body, logins: 0 };
        self.send(pending);
    }

    fn send(&mut self, mut pending: Pending) {
        // RFC 2326 section 9.2: "Each request carries a sequence number in the CSeq header (Section 12.17), which is incremented by
        // one for each distinct request transmitted."
        pending.number = self.next_number;
        self.next_number = self.next_number.wrapping_add(1);
        let method = pending.method.name();
        let mut message = Message::request(method, &pending.uri, pending.number);
        if let (Some(challenge), Some(login)) = (&self.challenge, &self.login) {
            self.count += 1;
            let answer = challenge.answer(login, method, &pending.uri, self.count, self.random);
            message = message.field("Authorization", answer);
        }
        message = message.maybe("Session", self.session.as_ref().map(|session| &session.name));
        for (name, value) in &pending.fields {
            message = message.field(name, value);
        }
        if let Some(body) = &pending.body {
            message = message.body("application/sdp", body.as_str());
        }
        self.out.extend(message.end());
        if self.pending.len() == MOST_PENDING {
            self.pending.pop_front();
        }
        self.pending.push_back(pending);
    }

    /// Takes a response.
    pub fn on_response(&mut self, response: Response) -> Answer {
        let number = response.fields.get("cseq").and_then(|number| number.trim().parse::<u32>().ok());
        // Responses come in the order of the requests; one without a number, as some cameras send, is that of the first.
        let at = match number {
            Some(number) => self.pending.iter().position(|pending| pending.number == number),
            None => (!self.pending.is_empty()).then_some(0),
        };
        let Some(mut pending) = at.and_then(|at| self.pending.remove(at)) else { return Answer::Strange };
        if response.status == 401 && self.login.is_some() && pending.logins < MOST_LOGINS {
            let challenge = Challenge::strongest(response.fields.all("www-authenticate"));
            let may_try = |challenge: &Challenge| {
                pending.logins == 0 && self.challenge.is_none() || challenge.is_stale()
            };
            if let Some(challenge) = challenge.filter(may_try) {
                (self.challenge, self.count) = (Some(challenge), 0);
                pending.logins += 1;
                let method = pending.method;
                self.send(pending);
                return Answer::Again(method);
            }
        }
        if response.is_success() {
            // RFC 2326 section 12.37: "Once a client receives a Session identifier, it MUST return it for any request related to
            // that session."
            if let Some(session) = response.fields.get("session").and_then(SessionHeader::parse) {
                // Some servers say the time once.
                let before = self.session.take().filter(|before| before.name == session.name);
                let timeout = session.timeout.or(before.and_then(|before| before.timeout));
                self.session = Some(SessionHeader { timeout, ..session });
            }
            if pending.method == Method::Options {
                self.has_get_parameter = response.fields.lists("public", "GET_PARAMETER");
            }
        }
        Answer::Of(pending.method, response)
    }

    /// Whether a request of this kind waits for its response.
    pub fn awaits(&self, method: Method) -> bool {
        self.pending.iter().any(|pending| pending.method == method)
    }

    /// Whether the server knows a session of ours.
    pub fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// How long the session lives without a request; `None` before there is one.
    pub fn timeout(&self) -> Option<Duration> {
        self.session.as_ref().map(|session| session.timeout.unwrap_or(DEFAULT_TIMEOUT))
    }

    /// Sends what keeps the session alive: GET_PARAMETER without a body where the server has it.
    ///
    /// RFC 2326 section 10.8: "GET_PARAMETER with no entity body may be used to test client or server liveness ("ping")."
    pub fn keep_alive(&mut self, uri: &str) {
        let method = if self.has_get_parameter { Method::GetParameter } else { Method::Options };
        self.request(method, uri, Vec::new());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::{Item, Reader};

    fn response(text: &str) -> Response {
        let wire = text.replace('\n', "\r\n");
        let mut reader = Reader::new();
        match reader.take(&mut wire.as_bytes()) {
            Ok(Some(Item::Response(response))) => response,
            other => panic!("{other:?}"),
        }
    }

    fn sent(dialogue: &mut Dialogue) -> String {
        String::from_utf8(std::mem::take(dialogue.output())).unwrap()
    }

    fn login() -> Option<Login> {
        Some(Login { user: "me".to_owned(), password: "mine".to_owned() })
    }

    #[test]
    fn a_login_is_sent_where_one_is_asked_for_and_once() {
        let mut dialogue = Dialogue::new(login(), 7);
        dialogue.request(Method::Describe, "rtsp://h/a", vec![("Accept", "application/sdp".to_owned())]);
        assert!(!sent(&mut dialogue).contains("Authorization"));
        let challenge =
            "RTSP/1.0 401 Unauthorized\nCSeq: 1\nWWW-Authenticate: Digest realm=\"r\", nonce=\"n\"\n\n";
        assert_eq!(dialogue.on_response(response(challenge)), Answer::Again(Method::Describe));
        let again = sent(&mut dialogue);
        assert!(
            again.contains("CSeq: 2\r\n") && again.contains("Authorization: Digest username=\"me\""),
            "{again}"
        );
        assert!(again.contains("Accept: application/sdp") && !again.contains("mine"), "{again}");
        let refused = dialogue.on_response(response(&challenge.replace("CSeq: 1", "CSeq: 2")));
        assert!(matches!(refused, Answer::Of(Method::Describe, response) if response.status == 401));
        // What follows has the login at once, and a nonce that was used up is replaced.
        dialogue.request(Method::Setup, "rtsp://h/a/1", Vec::new());
        assert!(sent(&mut dialogue).contains("Authorization"));
        let stale = "RTSP/1.0 401 Unauthorized\nCSeq: 3\nWWW-Authenticate: Digest realm=\"r\", nonce=\"m\", stale=true\n\n";
        assert_eq!(dialogue.on_response(response(stale)), Answer::Again(Method::Setup));
        assert!(sent(&mut dialogue).contains("nonce=\"m\""));
    }

    #[test]
    fn a_session_is_named_in_what_follows_and_kept_alive() {
        let mut dialogue = Dialogue::new(None, 0);
        dialogue.request(Method::Options, "rtsp://h/a", Vec::new());
        dialogue.on_response(response("RTSP/1.0 200 OK\nCSeq: 1\nPublic: DESCRIBE, GET_PARAMETER\n\n"));
        dialogue.request(Method::Setup, "rtsp://h/a/1", Vec::new());
        assert!(!sent(&mut dialogue).contains("Session:"));
        // Without a number it answers the request that waits.
        dialogue.on_response(response("RTSP/1.0 200 OK\nSession: abc;timeout=20\n\n"));
        assert_eq!(dialogue.timeout(), Some(Duration::from_secs(20)));
        dialogue.request(Method::Play, "rtsp://h/a", Vec::new());
        dialogue.on_response(response("RTSP/1.0 200 OK\nSession: abc\n\n"));
        assert_eq!(dialogue.timeout(), Some(Duration::from_secs(20)), "a time that was said once holds");
        sent(&mut dialogue);
        dialogue.keep_alive("rtsp://h/a");
        let ping = sent(&mut dialogue);
        assert!(
            ping.starts_with("GET_PARAMETER rtsp://h/a RTSP/1.0") && ping.contains("Session: abc\r\n"),
            "{ping}"
        );
        assert!(dialogue.awaits(Method::GetParameter));
        assert_eq!(dialogue.on_response(response("RTSP/1.0 200 OK\nCSeq: 99\n\n")), Answer::Strange);
    }
}
