//! What is published here is published again elsewhere.

use crate::ffmpeg::{Tool, publish, url};
use crate::peers::{Peer, Publisher, TEST_TIMEOUT, Unit, address, start, until};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use weir_origin::{MissingStream, OriginConfig, RTMP};

fn free_address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], weir_testing::free_port()))
}

/// nginx-rtmp from Debian, as one process on a port of its own.
fn nginx(folder: &std::path::Path) -> (Tool, SocketAddr) {
    let address = free_address();
    let config = format!(
        "load_module /usr/lib/nginx/modules/ngx_rtmp_module.so;\n\
         daemon off; master_process off; user root;\n\
         pid {folder}/nginx.pid; error_log {folder}/error.log;\n\
         events {{ worker_connections 256; }}\n\
         rtmp {{ server {{ listen {address}; application live {{ live on; }} }} }}\n",
        folder = folder.display(),
    );
    let path = folder.join("nginx.conf");
    std::fs::write(&path, config).unwrap();
    let (folder, path) = (folder.to_str().unwrap(), path.to_str().unwrap());
    let server = Tool::start("/usr/sbin/nginx", &["-p", folder, "-c", path]);
    until("nginx listens", || TcpStream::connect_timeout(&address, TEST_TIMEOUT).is_ok());
    (server, address)
}

#[test]
fn a_stream_goes_on_to_nginx_unit_by_unit() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, there) = nginx(folder.path());
    let origin = start(OriginConfig { forward: vec![format!("rtmp://{there}")], ..OriginConfig::default() });
    let mut viewer = Peer::player(there, "a");
    viewer.until("consent to play", |viewer| viewer.began);
    let mut publisher = Publisher::begin(address(&origin), "a");
    publisher.frames(60, 25, Duration::from_millis(5));
    viewer.until("60 frames", |viewer| viewer.numbers().len() == 60);
    assert_eq!(viewer.numbers(), (1..=60).collect::<Vec<_>>());
    assert!(viewer.units.iter().any(is_metadata));
}

#[test]
fn ffmpeg_plays_from_nginx_what_it_published_here() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, there) = nginx(folder.path());
    let origin = start(OriginConfig { forward: vec![format!("rtmp://{there}")], ..OriginConfig::default() });
    let publisher = publish(&url(address(&origin), "a"));
    // nginx never ends its viewers: this one has had enough after the first frames.
    let url = url(there, "a");
    let arguments = ["-hide_banner", "-loglevel", "warning", "-nostdin", "-i", &url];
    let enough = ["-map", "0:v", "-frames:v", "10", "-f", "null", "-"];
    let (_, words) = Tool::start("ffmpeg", &[&arguments[..], &enough].concat()).finish();
    assert_eq!(words, "", "the player warned");
    publisher.finish();
}

fn is_metadata(unit: &Unit) -> bool {
    unit.kind == weir_rtmp::message::MediaKind::Data && weir_rtmp::message::data::is_metadata(&unit.head)
}

#[test]
fn a_stream_goes_on_to_another_origin_unit_by_unit() {
    for workers in [1, 3] {
        let second = start(OriginConfig::default());
        let forward = vec![format!("rtmp://{}/relay/b", address(&second))];
        let first = start(OriginConfig { workers, forward, ..OriginConfig::default() });
        let mut publisher = Publisher::begin(address(&first), "a");
        publisher.frames(30, 25, Duration::from_millis(2));
        let there = || second.counts().stream("relay/b").cloned();
        until("30 frames there", || there().is_some_and(|stream| stream.received.video == 30));
        let options = weir_rtmp::ClientOptions::play("rtmp://host/relay", "relay", "b");
        let mut viewer = Peer::connect(address(&second), options);
        viewer.until("metadata and frames", |viewer| viewer.numbers().len() == 5);
        assert!(viewer.units.iter().any(is_metadata));
        publisher.end();
        until("the end there", || there().is_some_and(|stream| !stream.live));
        assert_eq!(there().unwrap().received, first.counts().stream("live/a").unwrap().received);
    }
}

#[test]
fn forwarding_waits_for_a_server_that_is_not_there_yet() {
    let there = free_address();
    let forward = vec![format!("rtmp://{there}")];
    let first = start(OriginConfig { forward, ..OriginConfig::default() });
    let mut publisher = Publisher::begin(address(&first), "a");
    publisher.frames(5, 5, Duration::from_millis(50));
    let second = OriginConfig { missing_stream: MissingStream::Refuse, ..OriginConfig::default() };
    let second = weir_origin::Origin::start(&second.listening(&RTMP, there)).unwrap();
    until("the stream there", || {
        publisher.frames(1, 5, Duration::from_millis(20));
        second.counts().stream("live/a").is_some_and(|stream| stream.received.video > 0)
    });
}
