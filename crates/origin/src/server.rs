//! What can be listened for: a name, and what opens a listener, on workers or on a thread of its own.

use crate::bulk::BulkSession;
use crate::hls::HlsSession;
use crate::mirakurun::TunerSession;
use crate::mqtt;
use crate::origin_thread::StartThread;
use crate::rtc::{self, RtcSession};
use crate::rtmp::RtmpSession;
use crate::rtsp::RtspSession;
use crate::srt;
use crate::worker::Worker;
use std::fmt;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use weir_shard::Shard;

/// Something that an origin can listen for.
pub struct Server {
    /// Its name, as in `weir origin --NAME`.
    pub name: &'static str,
    /// Its name if links are TLS; `None` if they never are.
    pub secure_name: Option<&'static str>,
    /// What it offers by TLS (ALPN), the most wanted first; empty if protocols are not asked for.
    pub alpn: &'static [&'static [u8]],
    /// Where its sessions live.
    pub sessions: Sessions,
}

/// Where the sessions of a server live.
pub enum Sessions {
    /// Runs on every worker, and makes it accept the links of a listener.
    OnWorkers(Accept),
    /// Runs on one worker, which takes the datagrams of a port.
    OnOneWorker(Accept),
    /// All on one thread beside the workers, which has what it listens at.
    OnOwnThread(StartThread),
}

/// Makes a worker accept the links of a listener, with TLS if there is a configuration for it.
pub type Accept = fn(&mut Shard<Worker>, TcpListener, Option<Arc<rustls::ServerConfig>>) -> io::Result<()>;

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// RTMP: publishers and viewers.
pub static RTMP: Server = Server {
    name: "rtmp",
    secure_name: Some("rtmps"),
    alpn: &[],
    sessions: Sessions::OnWorkers(|shard, listener, tls| {
        shard.listen(listener, tls, |worker, peer| Box::new(RtmpSession::new(worker, peer)))
    }),
};

/// RTSP: publishers and viewers.
pub static RTSP: Server = Server {
    name: "rtsp",
    secure_name: Some("rtsps"),
    alpn: &[],
    sessions: Sessions::OnWorkers(|shard, listener, tls| {
        shard.listen(listener, tls, |worker, peer| Box::new(RtspSession::new(worker, peer)))
    }),
};

/// MPEG-TS over HTTP, as Mirakurun and mirakc serve it.
pub static HTTP: Server = Server {
    name: "http",
    secure_name: Some("https"),
    alpn: &[],
    sessions: Sessions::OnWorkers(|shard, listener, tls| {
        shard.listen(listener, tls, |worker, peer| Box::new(TunerSession::new(worker, peer)))
    }),
};

/// HTTP Live Streaming of what is published.
pub static HLS: Server = Server {
    name: "hls",
    secure_name: Some("hlss"),
    alpn: &[weir_web::http2::ALPN, b"http/1.1"],
    sessions: Sessions::OnWorkers(|shard, listener, tls| {
        shard.listen(listener, tls, |worker, peer| Box::new(HlsSession::new(worker, peer)))
    }),
};

/// WebRTC's signalling: WHIP, WHEP and OvenMediaEngine's.
pub static RTC: Server = Server {
    name: "rtc",
    secure_name: Some("rtcs"),
    alpn: &[],
    sessions: Sessions::OnWorkers(|shard, listener, tls| {
        rtc::open_port(shard, listener.local_addr()?.ip())?;
        shard.listen(listener, tls, |worker, peer| Box::new(RtcSession::new(worker, peer)))
    }),
};

/// Background TCP streams.
pub static BULK: Server = Server {
    name: "bulk",
    secure_name: None,
    alpn: &[],
    sessions: Sessions::OnWorkers(|shard, listener, tls| {
        shard.listen(listener, tls, |worker, _| Box::new(BulkSession::new(worker)))
    }),
};

/// SRT: publishers and viewers, in one UDP port.
pub static SRT: Server = Server {
    name: "srt",
    secure_name: None,
    alpn: &[],
    sessions: Sessions::OnOneWorker(|shard, listener, _| {
        // The port was taken for TCP, where one of UDP is as free; nothing is to connect there.
        let address = listener.local_addr()?;
        drop(listener);
        srt::open_port(shard, address)
    }),
};

/// MQTT.
pub static MQTT: Server = Server {
    name: "mqtt",
    secure_name: Some("mqtts"),
    alpn: &[],
    sessions: Sessions::OnOwnThread(mqtt::START),
};
