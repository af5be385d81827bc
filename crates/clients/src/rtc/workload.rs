//! Groups of WebRTC viewers and publishers.

use super::connection::Terms;
use super::dialogue::Signalling;
use super::play::{self, Player};
use super::publish::{self, Publisher};
use super::relay;
use super::request::Request;
use super::sending::Content;
use super::{OVEN_SCHEMES, RtcOptions, SCHEMA, WHEP_SCHEMES, WHIP_SCHEMES};
use crate::endpoints::{EndpointFinder, Endpoints};
use crate::host_clock::HostClock;
use crate::material::{Material, MaterialError};
use crate::options::{PlayOptions, PublishOptions};
use crate::redirect::Redirects;
use crate::shard_recorder::ShardRecorder;
use crate::target::{Scheme, TargetError};
use crate::workload::{NewClient, Workload};
use crate::workload_error::WorkloadError;
use std::sync::Arc;
use std::time::Instant;
use weir_media::{AudioCodec, PictureCodec};
use weir_rtc::sdp::{OfferOptions, Profile};
use weir_rtc::transport::{Certificate, Clock};
use weir_rtsp::video_codec;
use weir_shard::tls::ClientTls;

/// Viewers by WHEP. Resolves names, so it may take a while.
///
/// # Errors
/// A URL that leads nowhere, or TLS settings or a certificate that cannot be made.
pub fn whep(urls: &[String], options: &PlayOptions, rtc: &RtcOptions) -> Result<Workload, WorkloadError> {
    play(urls, options, rtc, WHEP_SCHEMES, Signalling::Http)
}

/// Viewers of OvenMediaEngine. Resolves names, so it may take a while.
///
/// # Errors
/// As [`whep`].
pub fn oven(urls: &[String], options: &PlayOptions, rtc: &RtcOptions) -> Result<Workload, WorkloadError> {
    play(urls, options, rtc, OVEN_SCHEMES, Signalling::Oven)
}

/// What is said of a file that browsers would not show: RTP carries pictures in the order of decoding, and they show them as they come.
const B_FRAMES: &str = "the file has B-frames, which browsers show in the wrong order or not at all: make it without them (`ffmpeg … -bf 0`)";

/// What is said of a file whose sound stays behind.
const SILENT: &str = "the file's sound is AAC, which WebRTC does not carry: its pictures are published alone";

/// Publishers by WHIP. Resolves names and makes the material, so it may take a while.
///
/// # Errors
/// As [`whep`], and material that cannot be made.
pub fn whip(urls: &[String], options: &PublishOptions, rtc: &RtcOptions) -> Result<Workload, WorkloadError> {
    let endpoints = endpoints(
        "publish",
        urls,
        EndpointFinder::new(WHIP_SCHEMES, &options.tls).resolving(options.resolve),
        rtc,
    )?;
    let material = Material::prepare_of(&options.material.with_opus(), options.stamp, &PictureCodec::ALL)?;
    if !material.has_pictures() {
        return Err(MaterialError::NoPictures.into());
    }
    let sound = material.audio();
    let has_sound = sound.as_ref().is_some_and(|audio| audio.codec == AudioCodec::Opus);
    let warnings = [
        material.has_b_frames().then(|| B_FRAMES.to_owned()),
        material.unstamped(options.stamp),
        (sound.is_some() && !has_sound).then(|| SILENT.to_owned()),
    ];
    let audio = if has_sound { OfferOptions::PUBLISHER.audio } else { &[] };
    let codec = video_codec(material.picture_codec());
    let profile = material.picture_record().and_then(|record| Profile::of_record(codec, &record));
    let offer_options =
        OfferOptions { audio, profile, extensions: &[], ..OfferOptions::PUBLISHER }.of_codec(Some(codec));
    let shared_options = Arc::new(publish::SharedOptions {
        terms: terms(Signalling::Http, offer_options, &options.tls)?,
        timeouts: options.timeouts,
        content: Content { material, stamp: options.stamp, clock: HostClock::read() },
    });
    let new = move |client: NewClient<'_, Request>, shard: &mut ShardRecorder| {
        let NewClient { planned, request, endpoint, now, .. } = client;
        Publisher::client(planned, request, endpoint.clone(), Arc::clone(&shared_options), now, shard)
    };
    let mut workload = Workload::new(SCHEMA, endpoints, new).returning(options.returns);
    workload.warnings.extend(warnings.into_iter().flatten());
    Ok(with_secrets(workload, rtc))
}

/// The same, which knows whether a token or a field that a person gave is sent.
fn with_secrets(mut workload: Workload, rtc: &RtcOptions) -> Workload {
    workload.sends_secret |= rtc.token.is_some() || !rtc.given.is_empty();
    workload
}

fn play(
    urls: &[String],
    options: &PlayOptions,
    rtc: &RtcOptions,
    schemes: &'static [Scheme],
    signalling: Signalling,
) -> Result<Workload, WorkloadError> {
    let endpoints =
        endpoints("play", urls, EndpointFinder::new(schemes, &options.tls).resolving(options.resolve), rtc)?;
    let shared_options = Arc::new(play::SharedOptions {
        terms: terms(signalling, offer_options(rtc), &options.tls)?,
        timeouts: options.timeouts,
        playout: options.playout(),
        rtc: rtc.clone(),
        clock: HostClock::read(),
    });
    let (options, returns, decoders) = (options.clone(), options.returns, options.decoders.clone());
    let new = move |client: NewClient<'_, Request>, shard: &mut ShardRecorder| {
        let witness = options.is_witness(client.planned.client);
        let decoded = options.decoded(client.planned.client);
        Player::client(client, (witness, decoded), Arc::clone(&shared_options), shard)
    };
    let workload = Workload::new(SCHEMA, endpoints, new).returning(returns).decoded_by(decoders);
    Ok(with_secrets(workload, rtc))
}

fn endpoints(
    verb: &'static str,
    urls: &[String],
    mut finder: EndpointFinder,
    options: &RtcOptions,
) -> Result<Endpoints<Request>, WorkloadError> {
    Endpoints::find(verb, urls, &mut finder, |target| {
        let missing = "no path that HTTP can ask for; write for example whep+http://host/app/stream";
        let incomplete = || TargetError::Incomplete { url: target.to_string(), missing };
        Request::new(&target, options).ok_or_else(incomplete)
    })
}

fn terms(
    signalling: Signalling,
    offer_options: OfferOptions<'static>,
    tls: &ClientTls,
) -> Result<Arc<Terms>, WorkloadError> {
    let certificate = Certificate::generate().map_err(|error| {
        WorkloadError::Options(format!(
            "no certificate for DTLS can be made: {error}; is there a source of randomness?"
        ))
    })?;
    let clock = Clock::new(weir_shard::clock::now(), Instant::now());
    let redirects = Redirects::new(EndpointFinder::new(relay::SCHEMES, tls));
    Ok(Arc::new(Terms { signalling, offer_options, clock, certificate, redirects }))
}

/// What viewers want, and say that they will say.
fn offer_options(options: &RtcOptions) -> OfferOptions<'static> {
    let feedback: &[&str] = match (options.nack, options.bandwidth) {
        (true, true) => OfferOptions::VIEWER.feedback,
        (true, false) => &["nack", "nack pli", "ccm fir"],
        (false, true) => &["nack pli", "ccm fir", "transport-cc", "goog-remb"],
        (false, false) => &["nack pli", "ccm fir"],
    };
    OfferOptions { feedback, retransmission: options.nack, ..OfferOptions::VIEWER }.of_codec(options.codec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_rtc::VideoCodec;

    #[test]
    fn viewers_offer_all_that_is_read_unless_a_codec_is_asked_for() {
        let offered = |codec| offer_options(&RtcOptions { codec, ..RtcOptions::default() }).video;
        assert_eq!(offered(None), OfferOptions::VIEWER.video);
        assert_eq!(offered(Some(VideoCodec::Vp8)), ["VP8"]);
    }
}
