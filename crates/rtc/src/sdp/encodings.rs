//! Encodings as they are offered, and which of those that are offered is answered.

use super::{Direction, Format, MediaKind, OfferOptions, Profile};
use crate::{VideoCodec, h264, opus};

/// The first payload type without a fixed meaning (RFC 3551 section 3).
pub(super) const FIRST_DYNAMIC: u8 = 96;

/// The payload type, where it is fixed, clock rate and channels of what is offered (RFC 3551 section 6: "even though the actual sampling
/// rate for G.722 audio is 16,000 Hz, the RTP clock rate for the G722 payload format is 8,000 Hz").
pub(super) fn encoding(kind: MediaKind, name: &str) -> (Option<u8>, u32, Option<u8>) {
    match (kind, name) {
        (MediaKind::Audio, "G722") => (Some(9), 8_000, None),
        (MediaKind::Audio, "PCMU") => (Some(0), 8_000, None),
        (MediaKind::Audio, "PCMA") => (Some(8), 8_000, None),
        (MediaKind::Audio, _) => (None, opus::CLOCK_RATE, Some(2)),
        _ => (None, h264::CLOCK_RATE, None),
    }
}

/// The parameters with which a codec is offered, as Chromium 140 does: of VP9 a profile of 8 bits and one of 10, of H.264 four profiles
/// (Baseline, Constrained Baseline, Main and High). A sender says the profile of what it sends; of H.264 the one that every endpoint decodes
/// (RFC 7742 section 6.2) is behind it, for servers that know no other.
pub(super) fn variants<'a>(
    kind: MediaKind,
    name: &'a str,
    options: &OfferOptions<'_>,
) -> Vec<(&'a str, String)> {
    let is_its = |profile: &Profile| kind == MediaKind::Video && profile.codec().encoding_name() == name;
    if let Some(profile) = options.profile.filter(is_its) {
        let own = profile.parameters();
        let common = Profile::CONSTRAINED_BASELINE.parameters();
        let format = |parameters: &String| Format {
            name: name.to_owned(),
            parameters: parameters.clone(),
            ..Format::default()
        };
        let has_other = name == "H264" && !format(&own).matches(&format(&common));
        return [Some(own), has_other.then_some(common)]
            .into_iter()
            .flatten()
            .map(|parameters| (name, parameters))
            .collect();
    }
    let variants: &[&str] = match (kind, name) {
        (MediaKind::Audio, "opus") => &["minptime=10;useinbandfec=1"],
        (_, "H264") if options.direction == Direction::ReceiveOnly => &[
            "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42001f",
            "level-asymmetry-allowed=1;packetization-mode=0;profile-level-id=42001f",
            "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f",
            "level-asymmetry-allowed=1;packetization-mode=0;profile-level-id=42e01f",
            "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=4d001f",
            "level-asymmetry-allowed=1;packetization-mode=0;profile-level-id=4d001f",
            "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=64001f",
        ],
        (_, "H264") => &["level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f"],
        (_, "AV1") => &["level-idx=5;profile=0;tier=0"],
        (_, "VP9") => &["profile-id=0", "profile-id=2"],
        (_, "H265") => &["level-id=180;profile-id=1;tier-flag=0;tx-mode=SRST"],
        _ => &[""],
    };
    variants.iter().map(|parameters| (name, (*parameters).to_owned())).collect()
}

/// The best format, or of several encodings the best of each, with those of their retransmissions.
pub(super) fn choose(offered: &[Format], names: &[&str], offer_options: &OfferOptions<'_>) -> Vec<Format> {
    let best: Vec<&Format> = if offer_options.several {
        names.iter().filter_map(|name| best(offered, &[*name], offer_options)).collect()
    } else {
        best(offered, names, offer_options).into_iter().collect()
    };
    let with_repair = best.into_iter().flat_map(|best| {
        let repair = offered.iter().find(|format| format.repairs() == Some(best.payload_type));
        [Some(best), repair.filter(|_| offer_options.retransmission)]
    });
    let formats = with_repair.flatten().cloned();
    formats
        .map(|mut format| {
            format.feedback.retain(|feedback| offer_options.feedback.contains(&&**feedback));
            format
        })
        .collect()
}

/// The best of what is offered under these names.
fn best<'a>(offered: &'a [Format], names: &[&str], offer_options: &OfferOptions<'_>) -> Option<&'a Format> {
    // Mode 0 of H.264 has no fragments, so that only small pictures fit; H.265 may have payloads that are not read here.
    let fits = |format: &&Format| {
        names.iter().any(|name| format.is(name))
            && (!format.is("H264") || format.parameter("packetization-mode") == Some("1"))
            && (!format.is("H265") || VideoCodec::of(format).is_some())
    };
    // Of what we send it is known which profile it has, if one is offered that is it; the next best is what every endpoint decodes.
    let is_sender = offer_options.direction == Direction::SendOnly;
    let own =
        names.iter().filter(|_| is_sender).flat_map(|name| variants(MediaKind::Video, name, offer_options));
    let sent = own.map(|(name, parameters)| (name.to_owned(), parameters)).find_map(|(name, parameters)| {
        offered.iter().filter(fits).find(|format| {
            let (name, parameters) = (name.clone(), parameters.clone());
            Format { name, clock_rate: format.clock_rate, parameters, ..Format::default() }.matches(format)
        })
    });
    // An answer keeps to the order of the offer, which is the server's own preference (RFC 3264 section 6.1, RFC 8829 section 5.3.1).
    sent.or_else(|| offered.iter().find(fits))
}
