//! Our side of a session: what is offered or answered, and what both sides have agreed on.

use super::refusal::of_transport;
use crate::client_session::End;
use std::net::SocketAddr;
use weir_metrics::{Failure, Moment};
use weir_rtc::sdp::{Agreement, Description, Direction, Local, Media, OfferOptions, Sources, agree};
use weir_rtc::signalling::{http, oven};
use weir_rtc::transport::{Certificate, Clock, Remote, Transport, TransportSettings};

/// A transport and what was said about it so far.
pub(super) struct Negotiation {
    pub(super) transport: Transport,
    certificate: Certificate,
    offer: Option<Description>,
    /// The section that the transport is named by.
    identifier: String,
    /// Candidates of the server that can be checked.
    pub(super) reachable: usize,
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
            identifier: String::new(),
            reachable: 0,
        })
    }

    /// The SDP fragment with our candidates that is sent after the offer (RFC 8840 section 4.4).
    pub(super) fn fragment(&self) -> String {
        let candidates: Vec<String> = self.transport.candidates().collect();
        let (user_fragment, password) = (self.transport.user_fragment(), self.transport.password());
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
    pub(super) fn offer(&mut self, offer_options: &OfferOptions<'_>, sources: Sources) -> String {
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
        if agreed.is_empty() {
            return Err(nothing(&answer));
        }
        self.connect(now, &answer, &agreed, &[])?;
        Ok(agreed)
    }

    /// Answers an offer of the server, and begins to look for a path.
    pub(super) fn answer(
        &mut self,
        now: Moment,
        offer: &Description,
        candidates: &[String],
        offer_options: &OfferOptions<'_>,
    ) -> Result<(String, Vec<Agreement>), End> {
        let answer = self.local().answer(offer, offer_options);
        let agreed = agree(offer, &answer, true);
        if agreed.is_empty() {
            return Err(nothing(offer));
        }
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
        let role = agreed.first().ok_or_else(|| nothing(theirs))?.role;
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
                // A name of multicast DNS, an address of another family: there may be others.
                self.reachable += usize::from(self.transport.add_candidate(candidate).is_ok());
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

/// The two sides have no codec in common; the server's description shows why.
fn nothing(theirs: &Description) -> End {
    let words = if theirs.media.is_empty() {
        "the server's description has no media: it did not take up the offer"
    } else if theirs.media.iter().all(|media| media.rejected) {
        "the server rejects all media (port 0 in each m= line)"
    } else {
        "the two descriptions agree on neither H.264 nor Opus"
    };
    (Failure::Rejected, words.to_owned())
}

fn missing(what: &str) -> End {
    (Failure::MalformedInput, format!("the server's description has no {what}"))
}
