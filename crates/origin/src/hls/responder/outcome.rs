//! What a request for something of a stream comes to: an answer, an end, or that it waits.

use super::answer::Waiting;
use super::peer::HlsViewer;
use crate::fault::LinkEnd;
use crate::hls::answer::{packets_in, without_packets};
use crate::hls::path::Resource;
use crate::hls::playlist::{Directives, Playlist, Readiness};
use crate::hls::shelf::{Shelf, Shelves, is_multivariant};
use crate::hls::window::Lookup;
use crate::pictures::Pictures;
use crate::stream::{Kind, Packet};
use crate::worker::Worker;
use std::sync::Arc;
use std::time::Duration;
use weir_metrics::Moment;
use weir_rtc::VideoCodec;
use weir_shard::Context;

/// How often is looked whether all streams of a Multivariant Playlist are there.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// What a request comes to.
pub(super) enum Outcome {
    Wait,
    Answer(u16, Vec<Arc<[u8]>>),
    /// The stream has pictures of a codec of which no segments are made.
    Unsupported(VideoCodec),
    LinkEnd(LinkEnd),
}

/// What a request comes to now.
pub(super) fn outcome(
    waiting: &mut Waiting,
    viewer: Option<&mut HlsViewer>,
    shelves: &Shelves,
    context: &Context<'_, Worker>,
) -> Outcome {
    let now = context.now;
    if waiting.not_before.is_some_and(|at| now < at) {
        return Outcome::Wait;
    }
    waiting.not_before = None;
    let Some(viewer) = viewer else { return Outcome::Answer(404, Vec::new()) };
    let stalled = viewer.script.as_mut().and_then(|script| script.stalled(now));
    if let Some(until) = stalled {
        waiting.not_before = Some(until);
        return Outcome::Wait;
    }
    let shelf = shelves.get(&waiting.stream);
    waiting.look_again = None;
    if shelf.is_none() && waiting.resource == Resource::Playlist && is_multivariant(&waiting.stream) {
        if let Some(playlist) = shelves.multivariant(&waiting.stream) {
            return Outcome::Answer(200, vec![playlist]);
        }
        waiting.look_again = Some(now + LOOK_INTERVAL);
    }
    let not_yet = |status| match waiting.deadline {
        Some(deadline) if now >= deadline => Outcome::Answer(status, Vec::new()),
        _ => Outcome::Wait,
    };
    // Without a shelf it waits for a publisher.
    let Some(shelf) = shelf else { return not_yet(404) };
    if waiting.resource == Resource::Playlist {
        return match playlist(waiting, viewer, &shelf, shelves, now) {
            Ok(playlist) => Outcome::Answer(200, vec![playlist]),
            Err(Readiness::TooFarAhead) => Outcome::Answer(400, Vec::new()),
            Err(_) => {
                if let Some(until) = viewer.script.as_ref().and_then(|script| script.stale_until(now)) {
                    waiting.not_before = Some(until);
                    return Outcome::Wait;
                }
                let pictures = context.world.settings().registry.pictures(&waiting.stream);
                if let Some(Pictures { codec, .. }) = pictures.filter(|it| it.codec != VideoCodec::H264) {
                    return Outcome::Unsupported(codec);
                }
                match waiting.deadline {
                    Some(deadline) if now >= deadline => Outcome::Answer(503, Vec::new()),
                    _ => Outcome::Wait,
                }
            }
        };
    }
    let found = shelf.look(|window| match waiting.resource {
        Resource::Segment(number) => window.segment(number),
        Resource::Part(id) => window.part(id),
        Resource::Map(id) => window.map(id),
        Resource::Key => window.key(),
        Resource::Playlist => Lookup::Missing,
    });
    match found {
        Lookup::NotYet => not_yet(404),
        Lookup::Missing => Outcome::Answer(404, Vec::new()),
        Lookup::Found(body) => {
            let is_media = !matches!(waiting.resource, Resource::Map(_) | Resource::Key);
            let script = viewer.script.as_mut().filter(|_| is_media && !waiting.is_ruled);
            if let Some(script) = script {
                waiting.is_ruled = true;
                let length = body.iter().map(|piece| piece.len()).sum();
                let unit = Packet::unit(Kind::Data, true, 0, length, Vec::new());
                // Each fault counts each unit, whatever becomes of it.
                let (status, ruling) = (script.status(&unit, now), script.rule(&unit, now));
                // What is encrypted has no packets to leave out.
                let is_encrypted = shelf.look(|window| matches!(window.key(), Lookup::Found(_)));
                let there = if is_encrypted || status.is_some() { 0 } else { packets_in(&body) };
                waiting.lost_packets = script.packets_lost(&unit, there, now);
                if let Some(status) = status {
                    return Outcome::Answer(status, Vec::new());
                }
                if let Some(cut) = ruling.cut {
                    return Outcome::LinkEnd(cut);
                }
                if ruling.dropped {
                    return Outcome::Answer(404, Vec::new());
                }
                if !ruling.wait.is_zero() {
                    waiting.not_before = Some(now + ruling.wait);
                    return Outcome::Wait;
                }
            }
            Outcome::Answer(200, without_packets(body, std::mem::take(&mut waiting.lost_packets)))
        }
    }
}

/// The playlist that a viewer is sent now.
fn playlist(
    waiting: &mut Waiting,
    viewer: &mut HlsViewer,
    shelf: &Shelf,
    shelves: &Shelves,
    now: Moment,
) -> Result<Playlist, Readiness> {
    let Directives { wanted, skips } = waiting.directives;
    let settings = shelves.settings();
    let blocks = wanted.is_some() && settings.part.is_some();
    let mut readiness = shelf.look(|window| waiting.directives.readiness(window, settings));
    let is_new = !std::mem::replace(&mut waiting.is_ruled, true);
    if let Some(script) = &mut viewer.script {
        if blocks && is_new && readiness == Readiness::NotYet && script.answers_early(now) {
            readiness = Readiness::Ready;
        }
        if script.is_stale(now)
            && let Some(playlist) = &viewer.playlist
        {
            // What the viewer waits for is not there before the playlist goes on.
            return if blocks { Err(Readiness::NotYet) } else { Ok(playlist.clone()) };
        }
    }
    if readiness != Readiness::Ready {
        return Err(readiness);
    }
    let playlist = shelf.playlist(skips, settings).ok_or(Readiness::NotYet)?;
    // Only a script hands out an old one.
    if viewer.script.is_some() {
        viewer.playlist = Some(playlist.clone());
    }
    Ok(playlist)
}
