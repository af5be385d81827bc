//! Our side of a session: what is offered or answered, and what both sides have agreed on.

use super::candidates::NamedCandidates;
use super::refusal::of_transport;
use crate::client_session::End;
use std::net::SocketAddr;
use weir_metrics::{Failure, Moment};
use weir_rtc::VideoCodec;
use weir_rtc::sdp::{
    Agreement, Description, Direction, Local, Media, MediaKind, OfferOptions, Sources, agree,
};
use weir_rtc::signalling::{http, oven};
use weir_rtc::transport::{Certificate, Clock, NewCredentials, Remote, Transport, TransportSettings};

/// A transport and what was said about it so far.
pub(super) struct Negotiation {
    pub(super) transport: Transport,
    certificate: Certificate,
    offer: Option<Description>,
    /// Encodings of pictures that may be agreed on.
    video: &'static [&'static str],
    /// The section that the transport is named by.
    identifier: String,
    /// Candidates of the server that can be checked, and those of which only a name is known.
    pub(super) reachable: usize,
    pub(super) names: NamedCandidates,
}

impl Negotiation {
    /// A side that receives datagrams at `local`, or nowhere until it has a relay.
    pub(super) fn new(
        local: Option<SocketAddr>,
        certificate: &Certificate,
        controlling: bool,
        clock: Clock,
    ) -> Result<Self, End> {
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let settings = TransportSettings {
            local: local.unwrap_or(nowhere),
            certificate: certificate.clone(),
            lite: false,
            controlling,
            clock,
        };
        let transport = match local {
            Some(_) => Transport::new(settings).map_err(|error| of_transport(&error))?,
            None => Transport::without_candidates(settings),
        };
        Ok(Self {
            transport,
            certificate: certificate.clone(),
            offer: None,
            video: OfferOptions::VIEWER.video,
            identifier: String::new(),
            reachable: 0,
            names: NamedCandidates::default(),
        })
    }

    /// The SDP fragment with our candidates that is sent after the offer (RFC 8840 section 4.4), or with the credentials of a restart.
    pub(super) fn fragment(&self, restart: Option<&NewCredentials>) -> String {
        let transport = &self.transport;
        // Each may say which credentials it belongs to: those from before.
        let plain = |candidate: String| candidate.split(" ufrag ").next().unwrap_or_default().to_owned();
        let candidates: Vec<String> = transport.candidates().map(plain).collect();
        let before = (transport.user_fragment(), transport.password());
        let (user_fragment, password) = restart.map_or(before, |new| (new.user_fragment(), new.password()));
        http::trickle(user_fragment, password, &self.identifier, &candidates)
    }

    fn local(&self) -> Local {
        Local {
            user_fragment: self.transport.user_fragment().to_owned(),
            password: self.transport.password().to_owned(),
            fingerprint: self.certificate.fingerprint(),
            candidates: self.transport.candidates().collect(),
            lite: false,
        }
    }

    /// The SDP offer; a sender names its SSRCs in it.
    pub(super) fn offer(&mut self, offer_options: &OfferOptions<'static>, sources: Sources) -> String {
        self.video = offer_options.video;
        let mut offer = self.local().offer(offer_options);
        if offer_options.direction == Direction::SendOnly {
            offer.announce(sources);
        }
        let text = offer.to_string();
        self.offer = Some(offer);
        text
    }

    /// The server has answered: begins to look for a path.
    pub(super) fn take_answer(&mut self, now: Moment, answer: &str) -> Result<Vec<Agreement>, End> {
        let answer = read(answer)?;
        let offer = self.offer.take().unwrap_or_default();
        let agreed = agree(&offer, &answer, false);
        common(&answer, &agreed, self.video).map_err(|end| mismatch(&offer, &answer).unwrap_or(end))?;
        self.connect(now, &answer, &agreed, &[])?;
        Ok(agreed)
    }

    /// Answers an offer of the server, and begins to look for a path.
    pub(super) fn answer(
        &mut self,
        now: Moment,
        offer: &Description,
        candidates: &[String],
        offer_options: &OfferOptions<'static>,
    ) -> Result<(String, Vec<Agreement>), End> {
        self.video = offer_options.video;
        let answer = self.local().answer(offer, offer_options);
        let agreed = agree(offer, &answer, true);
        common(offer, &agreed, self.video)?;
        self.connect(now, offer, &agreed, candidates)?;
        Ok((answer.to_string(), agreed))
    }

    /// Knows the peer now. Candidates that are of no use, such as those over TCP, are passed over.
    fn connect(
        &mut self,
        now: Moment,
        theirs: &Description,
        agreed: &[Agreement],
        more: &[String],
    ) -> Result<(), End> {
        let Some(role) = agreed.first().map(|agreed| agreed.role) else {
            return common(theirs, agreed, self.video);
        };
        let credentials =
            |media: &&Media| !media.rejected && media.user_fragment.is_some() && media.password.is_some();
        let media = theirs.media.iter().find(credentials).ok_or_else(|| missing("ICE credentials"))?;
        let fingerprint = theirs.media.iter().find_map(|media| media.fingerprint.clone());
        let remote = Remote {
            user_fragment: media.user_fragment.clone().unwrap_or_default(),
            password: media.password.clone().unwrap_or_default(),
            fingerprint: fingerprint.ok_or_else(|| missing("fingerprint by SHA-256, SHA-384 or SHA-512"))?,
        };
        let mut known: Vec<&str> = Vec::new();
        for candidate in theirs.media.iter().flat_map(|media| &media.candidates).chain(more) {
            let is_udp = candidate.split_whitespace().nth(2).is_some_and(|it| it.eq_ignore_ascii_case("udp"));
            if is_udp && !known.contains(&&**candidate) {
                known.push(candidate);
                if !self.names.take(now, candidate) {
                    // An address of another family: there may be others.
                    self.reachable += usize::from(self.transport.add_candidate(candidate).is_ok());
                }
            }
        }
        self.identifier = agreed.first().map(|agreed| agreed.identifier.clone()).unwrap_or_default();
        self.transport.connect(now, remote, role);
        Ok(())
    }
}

/// Reads what the server has described.
pub(super) fn read(description: &str) -> Result<Description, End> {
    description.parse().map_err(|error| (Failure::MalformedInput, format!("{error}")))
}

/// Reads an offer of OvenMediaEngine.
pub(super) fn read_offer(offer: &oven::Offer) -> Result<Description, End> {
    read(&offer.sdp)
}

/// Whether there is anything to play, and pictures if the server has some.
///
/// # Errors
/// The two sides have no codec in common; the server's description shows why.
fn common(theirs: &Description, agreed: &[Agreement], video: &[&str]) -> Result<(), End> {
    let mut pictures = theirs.media.iter().filter(|media| media.kind == MediaKind::Video && !media.rejected);
    let words = if agreed.iter().any(|agreed| agreed.kind == MediaKind::Video) {
        return Ok(());
    } else if let Some(media) = pictures.next() {
        // Sound alone is not what was asked for.
        format!("the server offers {}; weir was to play {}", encodings(media), wanted(video))
    } else if !agreed.is_empty() {
        return Ok(());
    } else if theirs.media.is_empty() {
        "the server's description has no media: it did not take up the offer".to_owned()
    } else if theirs.media.iter().all(|media| media.rejected) {
        "the server rejects all media (port 0 in each m= line)".to_owned()
    } else {
        let sound = OfferOptions::VIEWER.audio.join(", ");
        format!("the two descriptions agree neither on pictures ({}) nor on sound ({sound})", wanted(video))
    };
    Err((Failure::Rejected, words))
}

/// Encodings that may be agreed on, in words.
fn wanted(video: &[&str]) -> String {
    let named = |name: &&str| VideoCodec::ALL.into_iter().find(|codec| codec.encoding_name() == *name);
    let names: Vec<&str> = video.iter().filter_map(named).map(VideoCodec::name).collect();
    let words = match &names[..] {
        [only] => format!("{only} alone"),
        names => names.join(", "),
    };
    // Mode 0 has no fragments: only small pictures fit.
    if video.contains(&"H264") { format!("{words}; H.264 with packetization-mode 1") } else { words }
}

/// Where the sections of an answer are not those of the offer, one by one (RFC 3264 section 6).
fn mismatch(offer: &Description, answer: &Description) -> Option<End> {
    let name = |kind| match kind {
        MediaKind::Video => "video",
        MediaKind::Audio => "audio",
        MediaKind::Other => "something else",
    };
    let [offered, answered] = [offer, answer].map(|it| it.media.iter().map(|media| name(media.kind)));
    let differs = offered.clone().zip(answered.clone()).position(|(offered, answered)| offered != answered);
    let words = if let Some(at) = differs {
        let [offered, answered] = [offered, answered].map(|mut kinds| kinds.nth(at).unwrap_or_default());
        format!("media section {} of the answer is {answered}, and {offered} was offered there", at + 1)
    } else if !answer.media.is_empty() && answer.media.len() != offer.media.len() {
        let counts = (answer.media.len(), offer.media.len());
        format!("the answer has {} media sections, and {} were offered", counts.0, counts.1)
    } else {
        return None;
    };
    Some((Failure::MalformedInput, format!("{words}: an answer has the offer's sections in their order")))
}

/// The encodings of a section, each once, without those that only repair or wrap others.
fn encodings(media: &Media) -> String {
    const NO_ENCODING: &[&str] = &["rtx", "red", "ulpfec", "flexfec-03", ""];
    let mut names: Vec<String> = Vec::new();
    for format in &media.formats {
        let name = match format.parameter("packetization-mode") {
            _ if NO_ENCODING.iter().any(|none| format.is(none)) => continue,
            None if format.is("H264") => format!("{} (packetization-mode 0)", format.name),
            Some(mode) if format.is("H264") => format!("{} (packetization-mode {mode})", format.name),
            _ => format.name.clone(),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() { "pictures of a codec that it does not name".to_owned() } else { names.join(", ") }
}

fn missing(what: &str) -> End {
    (Failure::MalformedInput, format!("the server's description has no {what}"))
}
