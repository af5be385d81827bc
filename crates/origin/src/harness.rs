//! A whole connection, played from bytes: what the fuzz target `origin_session` and its tests share. Nothing here is part of
//! the origin.
//!
//! The first byte chooses the protocol. Then each step is two bytes, what happens and a length, and as many bytes of its
//! own: bytes of the peer, a datagram to the port of WebRTC, room on the link, time that passes.

use crate::hls::{HlsSession, HlsSettings, Shelves};
use crate::mirakurun::TunerSession;
use crate::mqtt::{Broker, MqttSession};
use crate::policy::{Departure, MissingStream, Patience};
use crate::registry::Registry;
use crate::rtc::{Hub, Port, RtcSession};
use crate::rtmp::RtmpSession;
use crate::rtsp::RtspSession;
use crate::stream::{History, Terms};
use crate::tuner::{Catalogue, Tuners};
use crate::worker::{OriginSettings, Worker};
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use weir_metrics::Failure;
use weir_rtc::transport::{Certificate, Clock};
use weir_shard::{Event, Rig, Session, SessionId, World};

/// What one connection may have kept for it, in bytes that wait to be sent: the limit of MQTT and one message.
const MOST_UNSENT: usize = 80 << 20;

/// Plays a connection.
pub fn play(data: &[u8]) {
    let Some((&protocol, script)) = data.split_first() else { return };
    let settings = settings();
    match protocol % 7 {
        0 => {
            let mut rig = Rig::new(Worker::new(settings));
            let mut session = RtmpSession::new(&mut rig.world, peer());
            // Random bytes find no way through a handshake, and this one is looked at by another target.
            let shaken = [&[3][..], &[0; 2 * 1536]].concat();
            rig.dispatch(&mut session, Event::Connected);
            rig.dispatch(&mut session, Event::Bytes(&shaken));
            drive(&mut rig, &mut session, None, script);
        }
        1 => {
            let mut rig = Rig::new(Worker::new(settings));
            let mut session = TunerSession::new(&mut rig.world, peer());
            rig.dispatch(&mut session, Event::Connected);
            drive(&mut rig, &mut session, None, script);
        }
        2 => {
            let mut rig = Rig::new(Worker::new(settings));
            let clock = Clock::new(rig.now, Instant::now());
            let local = SocketAddr::from(([127, 0, 0, 1], 40_000));
            let hub = Hub::new(SessionId::made_up(1), local, certificate().clone(), clock);
            rig.world.put_state(Box::new(hub));
            let mut session = RtcSession::new(&mut rig.world, peer());
            rig.dispatch(&mut session, Event::Connected);
            drive(&mut rig, &mut session, Some(&mut Port), script);
        }
        3 => {
            let mut rig = Rig::new(Broker::new(settings));
            let mut session = MqttSession::new(&mut rig.world, rig.now);
            rig.dispatch(&mut session, Event::Connected);
            drive(&mut rig, &mut session, None, script);
        }
        5 => {
            let mut rig = Rig::new(Worker::new(settings));
            let mut session = HlsSession::new(&mut rig.world, peer());
            rig.dispatch(&mut session, Event::Connected);
            drive(&mut rig, &mut session, None, script);
        }
        6 => {
            let mut rig = Rig::new(Worker::new(settings));
            let mut session = RtspSession::new(&mut rig.world, peer());
            rig.dispatch(&mut session, Event::Connected);
            drive(&mut rig, &mut session, None, script);
        }
        _ => {
            let mut rig = Rig::new(Worker::new(settings));
            let mut session = crate::bulk::BulkSession::new(&mut rig.world);
            // A receiver is sent as much as its link takes.
            rig.room = 1 << 20;
            rig.dispatch(&mut session, Event::Connected);
            drive(&mut rig, &mut session, None, script);
        }
    }
}

fn drive<W: World>(
    rig: &mut Rig<W>,
    session: &mut dyn Session<W>,
    mut port: Option<&mut dyn Session<W>>,
    mut script: &[u8],
) {
    while let [what, length, rest @ ..] = script
        && !rig.closed
    {
        let (piece, after) = rest.split_at(rest.len().min(usize::from(*length) * 4));
        script = after;
        match what % 8 {
            5 => rig.advance(session, Duration::from_millis(u64::from(*length) * 100)),
            6 => rig.room = usize::from(*length) * 16,
            7 => rig.make_room(session, usize::from(*length) * 64),
            4 => match &mut port {
                Some(port) => rig.tell_datagram(*port, SocketAddr::from(([127, 0, 0, 3], 3)), piece),
                // From the port that a script names most easily.
                None if rig.hears_datagrams => {
                    rig.tell_datagram(session, SocketAddr::from(([127, 0, 0, 1], 3)), piece);
                }
                None => rig.dispatch(session, Event::Woken),
            },
            _ => rig.dispatch(session, Event::Bytes(piece)),
        }
        for _ in 0..std::mem::take(&mut rig.woken).len().min(4) {
            rig.dispatch(session, Event::Woken);
        }
        assert!(rig.unsent.len() <= MOST_UNSENT, "{} bytes wait", rig.unsent.len());
        rig.sent.clear();
        rig.datagrams.clear();
    }
    if !rig.closed {
        rig.dispatch(session, Event::Closed { failure: Failure::ClosedByPeer, words: "" });
    }
}

fn peer() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 50_000))
}

fn certificate() -> &'static Certificate {
    static CERTIFICATE: OnceLock<Certificate> = OnceLock::new();
    CERTIFICATE.get_or_init(|| Certificate::generate().expect("the system has random numbers"))
}

pub(crate) fn settings() -> Arc<OriginSettings> {
    Arc::new(OriginSettings {
        terms: Terms { history: History::default(), merge: Duration::ZERO },
        tuners: Catalogue::prepare(&Tuners::default()).ok(),
        hls: Some(Shelves::new(HlsSettings {
            part: Some(Duration::from_millis(200)),
            ..HlsSettings::default()
        })),
        missing_stream: MissingStream::Wait,
        departure: Departure::Stay,
        patience: Patience::default(),
        faults: Vec::new(),
        present: AtomicU64::new(0),
        routes: Vec::new(),
        srt_passphrase: None,
        turn: None,
        registry: Registry::default(),
        leaked: Mutex::default(),
        departed_kept: 65_536,
        troubles: Mutex::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The peer sends these bytes, in as many steps as that takes.
    fn says(bytes: &[u8]) -> Vec<u8> {
        // Lengths count in fours; what is short of four goes with spaces that no protocol here minds at its end.
        bytes
            .chunks(4 * 255)
            .flat_map(|piece| {
                let mut step = vec![0, piece.len().div_ceil(4) as u8];
                step.extend_from_slice(piece);
                step.resize(2 + piece.len().div_ceil(4) * 4, b' ');
                step
            })
            .collect()
    }

    #[test]
    fn a_connection_of_each_protocol_plays_to_its_end() {
        let connect = [0x10, 12, 0, 4, b'M', b'Q', b'T', b'T', 4, 2, 0, 60, 0, 0, 0xC0, 0];
        for (protocol, bytes) in [
            (0, &b"\x02\0\0\0\0\0\x04\x01\0\0\0\0\0\0\x10\0"[..]),
            (1, b"GET /api/version HTTP/1.1\r\n\r\n"),
            (2, b"OPTIONS / HTTP/1.1\r\n\r\n"),
            (2, b"GET /live/a HTTP/1.1\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"),
            (3, &connect),
            (3, b"GET /mqtt HTTP/1.1\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: mqtt\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n\x82\x90\0\0\0\0\x10\x0c\0\x04MQTT\x04\x02\0\x3c\0\0\xc0\0"),
            (4, b"weir bulk 1 up\n"),
            (5, b"GET /live/a.m3u8?_HLS_msn=1 HTTP/1.1\r\n\r\nGET /live/a/0.ts HTTP/1.1\r\n\r\n"),
            (6, b"ANNOUNCE rtsp://h/a RTSP/1.0\r\nContent-Length: 66\r\n\r\nv=0\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:1   \r\n\
                SETUP rtsp://h/a/1 RTSP/1.0\r\nTransport: RTP/AVP;client_port=3-4\r\n\r\nRECORD rtsp://h/a RTSP/1.0\r\n\r\n"),
        ] {
            play(&[&[protocol][..], &says(bytes), &[4, 4, 0x80, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0x65, 0, 0, 0, 5, 255, 6, 0, 7, 200, 4, 0]].concat());
        }
    }

    #[test]
    fn any_script_plays_to_its_end() {
        let mut state = 7_u64;
        for protocol in 0..7 {
            for _ in 0..200 {
                let mut script = vec![protocol];
                script.extend((0..400).map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 56) as u8
                }));
                play(&script);
            }
        }
    }
}
