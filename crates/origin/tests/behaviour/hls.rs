//! HLS: what is published on one worker is served by all, and who waits for it is woken on all.

use crate::peers::{Publisher, address, identity, start, until};
use crate::readers::Reader;
use std::net::{Ipv6Addr, SocketAddr};
use std::process::Command;
use std::time::Duration;
use weir_origin::{ANY_PORT, HLS, HlsSettings, Origin, OriginConfig};

/// An origin of four workers whose segments of a second have parts of 200 ms.
fn origin() -> (Origin, SocketAddr) {
    let hls = HlsSettings {
        segment: Duration::from_secs(1),
        part: Some(Duration::from_millis(200)),
        ..HlsSettings::default()
    };
    let origin = start(OriginConfig { workers: 4, hls, ..OriginConfig::default() }.listening(&HLS, ANY_PORT));
    let hls = origin.address("hls").unwrap();
    (origin, hls)
}

/// The kernel spreads connections over the workers; with forty of them, none is left out.
fn ask_forty(hls: SocketAddr, path: &str) -> Vec<Reader> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {hls}\r\n\r\n");
    (0..40).map(|_| Reader::ask_for(hls, &request, Duration::from_millis(1))).collect()
}

/// Reads answers until all have this in them.
fn all_have(readers: &mut [Reader], what: &str) {
    until(what, || {
        readers.iter_mut().for_each(Reader::step);
        readers.iter().all(|reader| String::from_utf8_lossy(&reader.body).contains(what))
    });
    assert!(readers.iter().all(|reader| reader.status() == Some(200)));
}

#[test]
fn who_waits_is_woken_on_every_worker() {
    let (origin, hls) = origin();
    // Nobody publishes yet.
    let mut early = ask_forty(hls, "/live/a.m3u8");
    assert!(early.iter().all(|reader| reader.status().is_none()));
    let mut publisher = Publisher::begin(address(&origin), "a");
    publisher.frames(30, 25, Duration::from_millis(2));
    all_have(&mut early, "\na/0.ts\n");
    // The hint of the next part, and a reload that waits for the next segment.
    let mut reloads = ask_forty(hls, "/live/a.m3u8?_HLS_msn=1");
    let mut hints = ask_forty(hls, "/live/a/part-5.ts");
    assert!(reloads.iter().chain(&hints).all(|reader| reader.status().is_none()));
    publisher.frames(30, 25, Duration::from_millis(2));
    all_have(&mut reloads, "\na/1.ts\n");
    until("the part", || {
        hints.iter_mut().for_each(Reader::step);
        hints.iter().all(|reader| !reader.body.is_empty() && reader.body.len() % 188 == 0)
    });
    let segment = Reader::get(hls, "/live/a/1.ts");
    assert_eq!((segment.status(), segment.body.first()), (Some(200), Some(&0x47)));
    let mut last = ask_forty(hls, "/live/a.m3u8?_HLS_msn=3&_HLS_part=0");
    publisher.end();
    all_have(&mut last, "#EXT-X-ENDLIST\n");
    assert_eq!(Reader::get(hls, "/live/none.ts").status(), Some(404));
}

#[test]
fn curl_is_answered_by_the_version_of_http_that_it_offers_by_tls_at_an_address_of_ipv6() {
    let folder = tempfile::tempdir().unwrap();
    let hls = HlsSettings {
        segment: Duration::from_secs(1),
        part: Some(Duration::from_millis(200)),
        ..HlsSettings::default()
    };
    let config = OriginConfig { hls, ..OriginConfig::default() };
    let any_port = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
    let origin = start(config.listening_secure(&HLS, any_port, identity(folder.path())));
    let url = format!("https://{}/live/a", origin.address("hlss").unwrap());
    let mut publisher = Publisher::begin(address(&origin), "a");
    publisher.frames(70, 25, Duration::from_millis(2));
    for (flag, version) in [("--http2", "2"), ("--http1.1", "1.1")] {
        let paths = [".m3u8?_HLS_msn=99", ".m3u8", "/0.ts", "/1.ts"];
        let paths = if version == "2" { &paths[..] } else { &paths[1..] };
        let mut curl = Command::new("curl");
        curl.args(["-sk", flag, "--parallel", "-w", "%{http_version} %{response_code} %{num_connects}\n"]);
        for path in paths {
            curl.args(["-o", "/dev/null", &format!("{url}{path}")]);
        }
        let output = curl.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let whole = said.lines().filter(|line| line.starts_with(&format!("{version} 200"))).count();
        assert!(output.status.success() && whole == 3, "{said}");
        // It is too far ahead to be waited for.
        assert_eq!(said.contains("2 400"), version == "2", "{said}");
    }
    let mut waits = Command::new("curl");
    waits.args(["-sk", "--http2", "-m", "60", "-w", "%{http_version} %{response_code}\n", "-o", "/dev/null"]);
    let waits =
        waits.arg(format!("{url}.m3u8?_HLS_msn=3")).stdout(std::process::Stdio::piped()).spawn().unwrap();
    until("the request is there", || origin.counts().all().viewers >= 3);
    publisher.frames(60, 25, Duration::from_millis(2));
    let output = waits.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "2 200\n");
    publisher.end();
}
