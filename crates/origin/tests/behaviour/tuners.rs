//! A tuner server's ordinary life: what it offers, what it plays, and when.

use crate::peers::{TEST_TIMEOUT, identity, until};
use crate::readers::{PACKET, Reader, address, report, serve, services, tuner, tuners, wrongs};
use serde_json::json;
use std::io::{Read, Write};
use std::process::Command;
use std::time::{Duration, Instant};
use weir_origin::{ANY_PORT, ChannelType, HTTP, Origin, OriginConfig, Patience, Service, Tuners};
use weir_ts::Counts;

/// What a command printed; it must have succeeded.
fn output(command: &mut Command) -> (Vec<u8>, String) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {errors}");
    (output.stdout, errors)
}

fn url(origin: &Origin, path: &str) -> String {
    format!("http://{}{path}", address(origin))
}

#[test]
fn a_service_plays_in_real_time_at_its_rate_and_without_fault() {
    for (rate, path) in [(15_000_000, "/1.ts"), (1_000_000, "/1.ts?chunked=0"), (40_000_000, "/1.ts")] {
        let origin = tuner(rate, &[]);
        let began = Instant::now();
        let mut reader = Reader::get(address(&origin), path);
        assert_eq!(reader.status(), Some(200));
        assert!(reader.head.contains("Content-Type: video/MP2T"), "{}", reader.head);
        assert_eq!(reader.head.contains("chunked"), !path.contains("chunked=0"), "{}", reader.head);
        let two_seconds = 2 * rate as usize / 8 / PACKET;
        reader.packets(two_seconds);
        // Two seconds are no whole number of packets.
        let media = Duration::from_secs_f64((two_seconds * PACKET * 8) as f64 / rate as f64);
        assert!(began.elapsed() >= media, "a tuner is never ahead of its time");
        assert_eq!(wrongs(&reader.body), Counts::default(), "{:?}", report(&reader.body).findings);
        let report = report(&reader.body);
        let by_clock = report.bit_rate.unwrap();
        assert!((by_clock / rate as f64 - 1.0).abs() < 1e-4, "{by_clock}");
        assert_eq!(report.services[0].name, "weir GR 1");
        assert!(report.counts.null_packets > 0);
    }
}

/// Reads one answer a little at a time, for three times as long as a peer may take for a request, then the rest, and asks
/// again. Whether that was answered, and the longest that it did nothing meanwhile.
fn reads_slowly_and_asks_again(origin: &Origin, request: Duration) -> (bool, Duration) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    // What its kernel has room for is acknowledged at once.
    socket.set_recv_buffer_size(8 << 10).unwrap();
    socket.connect(&address(origin).into()).unwrap();
    let mut stream = std::net::TcpStream::from(socket);
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream.write_all(b"GET /api/services HTTP/1.1\r\n\r\n").unwrap();
    let mut heard = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    let began = Instant::now();
    let (mut last, mut longest) = (began, Duration::ZERO);
    while !is_whole(&heard) {
        let is_slow = began.elapsed() < 3 * request;
        std::thread::sleep(if is_slow { request / 40 } else { Duration::ZERO });
        let n = stream.read(&mut buffer[..if is_slow { 1 << 10 } else { 64 << 10 }]).unwrap_or(0);
        longest = longest.max(last.elapsed());
        last = Instant::now();
        if n == 0 {
            return (false, longest);
        }
        heard.extend_from_slice(&buffer[..n]);
    }
    assert!(began.elapsed() > 3 * request, "the answer is not long enough to be read slowly");
    let _ = stream.write_all(b"GET /api/version HTTP/1.1\r\n\r\n");
    let is_answered = stream.read(&mut buffer).is_ok_and(|n| buffer[..n].starts_with(b"HTTP/1.1 200"));
    (is_answered, longest)
}

/// Whether a whole answer is there.
fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
    body.len() >= length.parse().unwrap()
}

#[test]
fn who_reads_a_long_answer_slowly_may_ask_again() {
    let request = Duration::from_millis(400);
    let patience = Patience { request, ..Patience::default() };
    let services = services(3_000, 1_000_000);
    let tuners = Tuners { services, ..Tuners::default() };
    let origin = serve(OriginConfig { tuners, patience, ..OriginConfig::default() });
    // On a busy machine the reader may itself be held up for longer than it may take: that shows nothing.
    let disturbed = |longest: Duration| longest > request / 2;
    let answered = (0..20).any(|_| {
        let (answered, longest) = reads_slowly_and_asks_again(&origin, request);
        assert!(answered || disturbed(longest), "ended though it never paused for longer than {longest:?}");
        answered
    });
    assert!(answered);
}

#[test]
fn the_api_has_the_field_names_of_mirakurun() {
    let mut offered = services(2, 1_000_000);
    offered.push(Service::numbered(1, ChannelType::Bs, offered[0].material.clone()));
    let origin = tuners(Tuners { services: offered, ..Tuners::default() }, &[]);
    let get = |path: &str| Reader::get(address(&origin), path).json();
    let version = get("/api/version");
    assert!(version["current"].is_string() && version["latest"].is_string());
    let status = get("/api/status");
    assert!(status["time"].as_u64().unwrap() > 1_600_000_000_000);
    assert_eq!(status["streamCount"], json!({ "tunerDevice": 0, "tsFilter": 0, "decoder": 0 }));
    let first = json!({
        "id": 6_528_101_001_u64,
        "serviceId": 1_001,
        "networkId": 65_281,
        "transportStreamId": 1_001,
        "name": "weir GR 1",
        "type": 1,
        "logoId": -1,
        "hasLogoData": false,
        "remoteControlKeyId": 1,
        "epgReady": false,
        "channel": { "type": "GR", "channel": "13" },
    });
    let all = get("/api/services");
    assert_eq!(all.as_array().unwrap().len(), 3);
    assert_eq!(all[0], first);
    assert_eq!(get("/api/services/6528101001"), first);
    assert_eq!(get("/api/services?channel.type=BS&serviceId=2001").as_array().unwrap().len(), 1);
    let of_channel = json!({
        "id": 6_528_101_001_u64,
        "serviceId": 1_001,
        "networkId": 65_281,
        "transportStreamId": 1_001,
        "name": "weir GR 1",
    });
    let channel = json!({ "type": "GR", "channel": "13", "name": "weir GR 1", "services": [of_channel] });
    assert_eq!(get("/api/channels")[0], channel);
    assert_eq!(get("/api/channels/GR").as_array().unwrap().len(), 2);
    assert_eq!(get("/api/channels/GR/13"), channel);
    assert_eq!(get("/api/channels/GR/13/services")[0], first);
    for missing in ["/api/services/1", "/api/channels/GR/99", "/api/nothing", "/9.ts", "/"] {
        let reader = Reader::get(address(&origin), missing);
        assert_eq!(reader.status(), Some(404), "{missing}");
        assert_eq!(reader.json(), json!({ "code": 404, "reason": "Not Found", "errors": [] }));
    }
}

#[test]
fn every_path_of_a_stream_leads_to_it() {
    let origin = tuners(Tuners { services: services(2, 1_000_000), ..Tuners::default() }, &[]);
    for path in [
        "/api/services/6528101002/stream?decode=1",
        "/api/channels/GR/14/stream",
        "/api/channels/GR/14/services/1002/stream?decode=1",
        "/2.ts",
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nX-Mirakurun-Priority: 128\r\nUser-Agent: test\r\n\r\n");
        let mut reader = Reader::ask(address(&origin), &request);
        assert_eq!(reader.status(), Some(200), "{path}");
        let user = format!("X-Mirakurun-Tuner-User-ID: {}", reader.local());
        assert!(reader.head.contains(&user), "{}", reader.head);
        reader.packets(200);
        assert_eq!(report(&reader.body).services[0].name, "weir GR 2", "{path}");
        let head = Reader::ask(address(&origin), &request.replace("GET", "HEAD"));
        assert_eq!((head.status(), head.body.len()), (Some(200), 0), "{path}");
    }
    assert_eq!(origin.counts().viewers.len(), 4, "who asks for a head only is no reader");
}

#[test]
fn readers_of_a_service_share_one_stream_over_all_workers() {
    let tuners = Tuners { services: services(1, 8_000_000), ..Tuners::default() };
    let origin = serve(OriginConfig { tuners, workers: 3, ..OriginConfig::default() });
    let mut readers: Vec<_> = (0..20).map(|_| Reader::get(address(&origin), "/1.ts")).collect();
    for _ in 0..40 {
        readers.iter_mut().for_each(Reader::step);
    }
    for reader in &mut readers {
        assert_eq!(reader.status(), Some(200));
        reader.packets(3_000);
        assert_eq!(wrongs(&reader.body), Counts::default());
    }
    // Each began at a packet of its own; from there on, all were sent the same.
    let first = readers.iter().map(|reader| reader.body.clone()).max_by_key(Vec::len).unwrap();
    let mark = &first[1_500 * PACKET..1_510 * PACKET];
    let place = |body: &[u8]| body.windows(mark.len()).position(|part| part == mark);
    for reader in &readers {
        let at = place(&reader.body).expect("the same ten packets");
        assert_eq!(at % PACKET, 0);
        let common = (first.len() - 1_500 * PACKET).min(reader.body.len() - at);
        assert!(first[1_500 * PACKET..][..common] == reader.body[at..][..common]);
    }
    let counts = origin.counts();
    assert_eq!(counts.stream("/1.ts").unwrap().publications, 1);
    assert_eq!(counts.present(), 20);
}

#[test]
fn a_tuner_opens_with_its_first_reader_and_closes_behind_its_last() {
    let origin = tuner(2_000_000, &[]);
    for times in 1..=3 {
        let mut readers: Vec<_> = (0..3).map(|_| Reader::get(address(&origin), "/1.ts")).collect();
        readers.iter_mut().for_each(|reader| reader.packets(100));
        let counts = origin.counts();
        let stream = counts.stream("/1.ts").unwrap();
        assert_eq!((stream.publications, stream.live), (times, true));
        let status = Reader::get(address(&origin), "/api/status").json();
        assert_eq!(status["streamCount"]["tsFilter"], 3);
        drop(readers);
        until("the tuner is closed", || !origin.counts().stream("/1.ts").unwrap().live);
    }
}

#[test]
fn counts_are_exact_to_the_packet_and_the_byte() {
    for path in ["/1.ts", "/1.ts?chunked=0"] {
        let origin = tuner(10_000_000, &["close unit=5001"]);
        let mut reader = Reader::get(address(&origin), path);
        reader.until_end();
        assert_eq!(reader.body.len(), 5_000 * PACKET);
        let counts = origin.counts();
        let truth = counts.viewer(reader.local()).unwrap();
        assert_eq!((truth.sent.transport, truth.sent.units()), (5_000, 5_000));
        assert_eq!(truth.sent.payload_bytes, 5_000 * PACKET as u64);
        assert_eq!(truth.link_bytes, reader.received);
        assert_eq!((truth.skipped, truth.dropped.transport), (0, 0));
    }
}

#[test]
fn ffmpeg_and_ffprobe_have_nothing_to_say() {
    let origin = tuners(Tuners { services: services(1, 6_000_000), ..Tuners::default() }, &[]);
    for path in ["/api/services/6528101001/stream?decode=1", "/1.ts?chunked=0"] {
        let url = url(&origin, path);
        let (found, errors) =
            output(Command::new("ffprobe").args(["-v", "warning", "-of", "csv=p=0"]).args([
                "-show_entries",
                "stream=codec_name,width:program_tags=service_name",
                &url,
            ]));
        let found = String::from_utf8(found).unwrap();
        assert_eq!(errors, "", "{path}");
        assert!(
            found.contains("h264,1280") && found.contains("aac") && found.contains("weir GR 1"),
            "{found}"
        );
        let decode = ["-nostdin", "-v", "warning", "-i", &url, "-t", "3", "-f", "null", "-"];
        assert_eq!(output(Command::new("ffmpeg").args(decode)).1, "", "{path}");
    }
}

#[test]
fn curl_gets_what_the_counts_say() {
    let origin = tuner(8_000_000, &["close unit=8001"]);
    let directory = tempfile::tempdir().unwrap();
    for (number, path) in [(1, "/1.ts?chunked=0"), (2, "/api/channels/GR/13/stream")] {
        let file = directory.path().join("curl.ts");
        let status = Command::new("curl")
            .args(["-sN", "--max-time", "20", "-H", "X-Mirakurun-Priority: 0", "-o"])
            .arg(&file)
            .arg(url(&origin, path))
            .status()
            .unwrap();
        // A body in the chunked coding that ends without its last chunk was cut: 18 says so.
        assert!(matches!(status.code(), Some(0 | 18)), "{status:?}");
        let stream = std::fs::read(&file).unwrap();
        assert_eq!(stream.len(), 8_000 * PACKET);
        assert_eq!(wrongs(&stream), Counts::default());
        assert_eq!(origin.counts().viewers[number - 1].sent.transport, 8_000);
    }
    let (found, _) = output(Command::new("curl").args(["-sf", &url(&origin, "/api/services")]));
    let found: serde_json::Value = serde_json::from_slice(&found).unwrap();
    assert_eq!(found[0]["channel"]["type"], "GR");
}

#[test]
fn curl_reads_over_tls() {
    let directory = tempfile::tempdir().unwrap();
    let identity = identity(directory.path());
    let chain = identity.chain.clone();
    let tuners = Tuners { services: services(1, 4_000_000), ..Tuners::default() };
    let faults = vec!["close unit=2001".parse().unwrap()];
    let config = OriginConfig { tuners, faults, ..OriginConfig::default() };
    let origin = Origin::start(&config.listening_secure(&HTTP, ANY_PORT, identity)).unwrap();
    let port = origin.address("https").unwrap().port();
    let output = Command::new("curl")
        .args(["-sN", "--max-time", "20", "--cacert", chain.to_str().unwrap()])
        .arg(format!("https://localhost:{port}/1.ts?chunked=0"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout.len(), 2_000 * PACKET);
    assert_eq!(wrongs(&output.stdout), Counts::default());
}

#[test]
fn a_connection_asks_again_and_again() {
    let origin = tuner(2_000_000, &[]);
    let many = "GET /api/version HTTP/1.1\r\n\r\n".repeat(5) + "GET /1.ts HTTP/1.1\r\n\r\n";
    let mut reader = Reader::ask(address(&origin), &many);
    let began = Instant::now();
    while reader.body.len() < 2_000 && began.elapsed() < TEST_TIMEOUT {
        reader.step();
    }
    let rest = String::from_utf8_lossy(&reader.body).into_owned();
    assert_eq!(rest.matches("\"current\"").count(), 5);
    assert_eq!(rest.matches("video/MP2T").count(), 1);
}

#[test]
fn a_file_is_looped_without_a_break_at_its_own_rate() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("two seconds.ts");
    // Two seconds of a service, stored.
    let source = tuner(4_000_000, &["close unit=5320"]);
    let mut stored = Reader::get(address(&source), "/1.ts");
    stored.until_end();
    std::fs::write(&file, &stored.body).unwrap();
    let offered = vec![Service::stored(1, &file).unwrap()];
    assert_eq!((&*offered[0].name, offered[0].service_id), ("weir GR 1", 1_001));
    let origin = tuners(Tuners { services: offered, ..Tuners::default() }, &[]);
    let began = Instant::now();
    let mut reader = Reader::get(address(&origin), "/api/channels/SKY/CH1/stream");
    reader.packets(3 * 5_319);
    let seconds = began.elapsed().as_secs_f64();
    assert!(seconds > 5.9, "{seconds}");
    let counts = wrongs(&reader.body);
    let continuity = (counts.gap_events, counts.illegal_duplicates, counts.legal_duplicates, counts.resyncs);
    assert_eq!(continuity, (0, 0, 0, 0));
    assert_eq!((counts.pcr_discontinuities, counts.pts_jumps), (0, 0), "{:?}", report(&reader.body).findings);
}
