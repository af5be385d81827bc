//! Hostile servers, each for one of weir's clients: the run ends as runs end, in time, and has cost little.

pub(crate) mod http2;

use crate::process::Process;
use crate::rtmp::{handshake, message};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_rtmp::message::MessageKind;
use weir_rtmp::server::{Server, ServerEvent, ServerOptions};

/// A server, and the command of weir that meets it.
struct Row {
    name: &'static str,
    /// What weir is told; `PORT` stands for the server's.
    arguments: &'static [&'static str],
    /// What the server does with one connection.
    serve: fn(&mut TcpStream) -> std::io::Result<()>,
    /// What weir says if there is nothing to run: the exit code is another one then.
    says: &'static str,
    /// MiB of memory, and processor time.
    memory: u64,
    processor: Duration,
}

/// How runs end in good order: passed, target died, invalid, thresholds failed.
const ENDINGS: [i32; 4] = [0, 97, 98, 99];

const ROW: Row = Row {
    name: "",
    arguments: &[],
    serve: |_| Ok(()),
    says: "",
    memory: 128,
    processor: Duration::from_secs(10),
};

fn run(row: &Row) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let arguments: Vec<String> = row.arguments.iter().map(|it| it.replace("PORT", &port)).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut process = Process::start(&arguments);
    let over = AtomicBool::new(false);
    let (mut memory, mut processor, mut code) = (0, Duration::ZERO, None);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let Ok((mut stream, _)) = listener.accept() else {
                    std::thread::sleep(Duration::from_millis(5));
                    continue;
                };
                stream.set_nonblocking(false).unwrap();
                let span = Some(Duration::from_secs(1));
                stream.set_read_timeout(span).and_then(|()| stream.set_write_timeout(span)).unwrap();
                let over = &over;
                scope.spawn(move || {
                    // The client goes when it likes.
                    let _ = (row.serve)(&mut stream);
                    while !over.load(Ordering::Relaxed) {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                });
            }
        });
        let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            code = process.wait(|spent| {
                memory = memory.max(spent.memory);
                processor = processor.max(spent.processor);
            });
        }));
        over.store(true, Ordering::Relaxed);
        waited.unwrap_or_else(|_| panic!("{}: see above", row.name));
    });
    println!("{}: {memory} MiB, {processor:?}, {code:?}", row.name);
    let err = process.err();
    let is_ending = code.is_some_and(|code| ENDINGS.contains(&code));
    let has_said = !row.says.is_empty() && code.is_some() && err.contains(row.says);
    assert!(is_ending || has_said, "{}: {code:?}: {err}", row.name);
    assert!(!err.contains("panicked"), "{}: {err}", row.name);
    assert!(memory <= row.memory, "{}: {memory} MiB of {}", row.name, row.memory);
    assert!(processor <= row.processor, "{}: {processor:?} of {:?}", row.name, row.processor);
}

/// Writes the same again and again until the client ends the connection or takes nothing for a second.
fn flood(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    loop {
        stream.write_all(bytes)?;
    }
}

fn garbage(stream: &mut TcpStream) -> std::io::Result<()> {
    let noise: Vec<u8> = (0..1_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    flood(stream, &noise)
}

/// Reads the head of a request, and its body if its length is given.
fn request(stream: &mut TcpStream) -> std::io::Result<String> {
    let (mut heard, mut buffer) = (Vec::new(), vec![0; 65_536]);
    loop {
        let n = stream.read(&mut buffer)?;
        heard.extend_from_slice(&buffer[..n]);
        let text = String::from_utf8_lossy(&heard).into_owned();
        if n == 0 || text.contains("\r\n\r\n") {
            return Ok(text);
        }
    }
}

fn answer(stream: &mut TcpStream, status: &str, fields: &str, body: &[u8]) -> std::io::Result<()> {
    let length = body.len();
    stream.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{fields}\r\n").as_bytes())?;
    stream.write_all(body)
}

fn http_head(stream: &mut TcpStream) -> std::io::Result<()> {
    request(stream)?;
    stream.write_all(b"HTTP/1.1 200 OK\r\n")?;
    flood(stream, &b"a: b\r\n".repeat(10_000))
}

fn http_zeros(stream: &mut TcpStream) -> std::io::Result<()> {
    request(stream)?;
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: video/MP2T\r\n\r\n")?;
    flood(stream, &[0; 65_536])
}

/// Chunks of one byte, each with an extension as long as may be.
fn http_chunks(stream: &mut TcpStream) -> std::io::Result<()> {
    request(stream)?;
    stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
    stream.write_all(&b"1;x\r\nG\r\n".repeat(200_000))?;
    stream.write_all(b"FFFFFFFFFFFFFFFF\r\n")?;
    flood(stream, &[0x47; 65_536])
}

fn redirect(stream: &mut TcpStream) -> std::io::Result<()> {
    let head = request(stream)?;
    let path = head.split(' ').nth(1).unwrap_or("/").to_owned();
    answer(stream, "302 Found", &format!("Location: {path}x\r\n"), b"")
}

fn redirect_nowhere(stream: &mut TcpStream) -> std::io::Result<()> {
    request(stream)?;
    answer(stream, "302 Found", "Location: file:///etc/passwd\r\n", b"")
}

fn endless_json(stream: &mut TcpStream) -> std::io::Result<()> {
    request(stream)?;
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")?;
    flood(stream, &b"[".repeat(100_000))
}

/// The RTMP dialogue up to the consent to play.
fn rtmp_consent(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut server = Server::new(ServerOptions::default(), 1);
    let mut buffer = vec![0; 65_536];
    let mut consented = false;
    while !consented {
        let n = stream.read(&mut buffer)?;
        if n == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let (mut connects, mut id) = (false, None);
        let outcome = server.input(&buffer[..n], &mut |event| match event {
            ServerEvent::Connect(_) => connects = true,
            ServerEvent::Play { message_stream_id, .. } | ServerEvent::Publish { message_stream_id, .. } => {
                id = Some((message_stream_id, matches!(event, ServerEvent::Play { .. })));
            }
            _ => {}
        });
        outcome.map_err(std::io::Error::other)?;
        if connects {
            server.accept_connect();
        }
        match id {
            Some((id, true)) => server.accept_play(id),
            Some((id, false)) => server.accept_publish(id),
            None => {}
        }
        consented = id.is_some();
        stream.write_all(&std::mem::take(server.output()))?;
    }
    Ok(())
}

fn rtmp_short_messages(stream: &mut TcpStream) -> std::io::Result<()> {
    rtmp_consent(stream)?;
    stream.write_all(&message(6, MessageKind::Video, 0, &[0x17], 4_096))?;
    flood(stream, &[0xC6, 0x17].repeat(50_000))
}

/// Beginnings of long messages on chunk streams without number.
fn rtmp_unfinished(stream: &mut TcpStream) -> std::io::Result<()> {
    rtmp_consent(stream)?;
    for chunk_stream_id in 10..70 {
        let bytes = message(chunk_stream_id, MessageKind::DataAmf0, 0, &vec![0; 4 << 20], 4_096);
        stream.write_all(&bytes[..12 + 4_096])?;
    }
    flood(stream, &handshake())
}

/// A head without an end.
fn rtsp_head(stream: &mut TcpStream) -> std::io::Result<()> {
    request(stream)?;
    stream.write_all(b"RTSP/1.0 200 OK\r\nCSeq: 1\r\n")?;
    flood(stream, &b"a: b\r\n".repeat(10_000))
}

/// A description of 4 GB.
fn rtsp_body(stream: &mut TcpStream) -> std::io::Result<()> {
    request(stream)?;
    stream.write_all(b"RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n")?;
    request(stream)?;
    stream.write_all(
        b"RTSP/1.0 200 OK\r\nCSeq: 2\r\nContent-Type: application/sdp\r\nContent-Length: 4294967296\r\n\r\n",
    )?;
    flood(stream, &b"a=b\r\n".repeat(10_000))
}

/// A description, and behind it lines of one that never ends.
fn rtsp_lines(stream: &mut TcpStream) -> std::io::Result<()> {
    request(stream)?;
    stream.write_all(b"RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n")?;
    request(stream)?;
    stream.write_all(
        b"RTSP/1.0 200 OK\r\nCSeq: 2\r\nContent-Type: application/sdp\r\nContent-Length: 5\r\n\r\nv=0\r\n",
    )?;
    flood(stream, &b"m=video 0 RTP/AVP 96\r\n".repeat(10_000))
}

/// A picture in packets without end.
fn rtsp_picture(stream: &mut TcpStream) -> std::io::Result<()> {
    const DESCRIPTION: &str = "v=0\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:1\r\n";
    request(stream)?;
    stream.write_all(b"RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n")?;
    request(stream)?;
    let length = DESCRIPTION.len();
    let head = format!(
        "RTSP/1.0 200 OK\r\nCSeq: 2\r\nContent-Type: application/sdp\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(DESCRIPTION.as_bytes())?;
    for number in 3..5 {
        request(stream)?;
        stream.write_all(format!("RTSP/1.0 200 OK\r\nCSeq: {number}\r\nSession: 1\r\n\r\n").as_bytes())?;
    }
    let mut packets = Vec::new();
    for number in 0..=u16::MAX {
        packets.extend([b'$', 0, 0, 112, 0x80, 96]);
        packets.extend(number.to_be_bytes());
        packets.extend([0; 8]);
        packets.extend([0x7C, if number == 0 { 0x85 } else { 0x05 }]);
        packets.extend([0x55; 98]);
    }
    flood(stream, &packets)
}

/// Takes a publisher by UDP at a port that is not there, and floods it with what looks like reports.
fn rtsp_datagrams(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut port = None;
    for number in 1.. {
        let asked = request(stream)?;
        let named = asked.split("client_port=").nth(1).and_then(|rest| rest.split('-').next()?.parse().ok());
        port = named.or(port);
        let transport = "Transport: RTP/AVP;unicast;source=192.0.2.1;server_port=9-10;mode=record\r\n";
        let answer = format!("RTSP/1.0 200 OK\r\nCSeq: {number}\r\nSession: 1\r\n{transport}\r\n");
        stream.write_all(answer.as_bytes())?;
        if asked.starts_with("RECORD") {
            break;
        }
    }
    let (socket, port) = (UdpSocket::bind("127.0.0.1:0")?, port.unwrap_or(9_u16));
    for number in 0..200_000_u32 {
        let [a, b, c, d] = number.wrapping_mul(2_654_435_761).to_be_bytes();
        let report = [0x80 | a & 31, 201, b & 1, c, 0, 0, 0, 1, d, c, b, a];
        let _ = socket.send_to(&report.repeat(usize::from(b)), ("127.0.0.1", port));
    }
    Ok(())
}

/// Takes a publisher and never reads what it sends.
fn rtmp_deaf(stream: &mut TcpStream) -> std::io::Result<()> {
    rtmp_consent(stream)?;
    std::thread::sleep(Duration::from_secs(3));
    Ok(())
}

fn socket_upgrade(stream: &mut TcpStream) -> std::io::Result<()> {
    let head = request(stream)?;
    let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name).map(str::trim));
    let key = field("Sec-WebSocket-Key:").unwrap_or_default();
    let accept = weir_rtc::signalling::websocket::accept(key);
    stream.write_all(
        format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {accept}\r\n\r\n"
        )
        .as_bytes(),
    )
}

/// A message in frames of one byte, beyond the longest.
fn socket_continuations(stream: &mut TcpStream) -> std::io::Result<()> {
    socket_upgrade(stream)?;
    stream.write_all(&[0x01, 1, b'{'])?;
    flood(stream, &[0x00, 1, b' '].repeat(50_000))
}

fn socket_bad_offer(stream: &mut TcpStream) -> std::io::Result<()> {
    socket_upgrade(stream)?;
    let text = br#"{"command":"offer","id":1,"peer_id":0,"code":200,"sdp":{"type":"offer","sdp":"v=0"}}"#;
    stream.write_all(&[0x81, text.len() as u8])?;
    stream.write_all(text)
}

fn whep_bad_answer(stream: &mut TcpStream) -> std::io::Result<()> {
    request(stream)?;
    answer(stream, "201 Created", "Content-Type: application/sdp\r\nLocation: /x\r\n", &[b'v'; 60_000])
}

/// Lets the client in, and takes what it subscribes to.
fn mqtt_consent(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut buffer = vec![0; 4_096];
    stream.read(&mut buffer).map(drop)?;
    // CONNACK of MQTT 5.
    stream.write_all(&[0x20, 3, 0, 0, 0])
}

/// A message of 256 MB of which almost nothing comes.
fn mqtt_announced(stream: &mut TcpStream) -> std::io::Result<()> {
    mqtt_consent(stream)?;
    stream.write_all(&[0x30, 0xFF, 0xFF, 0xFF, 0x7F, 0, 1, b'a', 0])?;
    stream.write_all(&[0; 1_000])
}

fn mqtt_garbage(stream: &mut TcpStream) -> std::io::Result<()> {
    mqtt_consent(stream)?;
    garbage(stream)
}

/// Takes a publisher's messages and acknowledges none.
fn mqtt_deaf(stream: &mut TcpStream) -> std::io::Result<()> {
    mqtt_consent(stream)?;
    std::thread::sleep(Duration::from_secs(3));
    Ok(())
}

/// INFO, whose JSON never ends.
fn nats_introduction(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"INFO {")?;
    flood(stream, &b"\"a\": 1, ".repeat(10_000))
}

macro_rules! play {
    ($url:literal) => {
        &["play", $url, "-c", "2", "-d", "2s", "--warmup", "0s", "--timeout", "1s", "--no-tui", "-o", "run"]
    };
}

macro_rules! publish {
    ($url:literal) => {
        &[
            "publish",
            $url,
            "-c",
            "2",
            "-d",
            "2s",
            "--warmup",
            "0s",
            "--timeout",
            "1s",
            "--no-tui",
            "-o",
            "run",
        ]
    };
}

const RTMP: Row = Row { arguments: play!("rtmp://127.0.0.1:PORT/live/a"), ..ROW };
const TS: Row = Row { arguments: play!("http://127.0.0.1:PORT/1.ts"), ..ROW };
const OVEN: Row = Row { arguments: play!("ws://127.0.0.1:PORT/app/a"), ..ROW };
const WHEP: Row = Row { arguments: play!("whep+http://127.0.0.1:PORT/live/a"), ..ROW };
const RTSP: Row = Row { arguments: play!("rtsp://127.0.0.1:PORT/live/a"), ..ROW };
const MQTT: Row = Row { arguments: play!("mqtt://127.0.0.1:PORT/a"), ..ROW };

const ROWS: &[Row] = &[
    Row { name: "RTMP: garbage", serve: garbage, ..RTMP },
    Row { name: "RTMP: silence", ..RTMP },
    Row { name: "RTMP: messages of one byte", serve: rtmp_short_messages, ..RTMP },
    Row { name: "RTMP: sixty messages that are never ended", serve: rtmp_unfinished, ..RTMP },
    Row {
        name: "RTMP: a server that reads nothing of what is published",
        arguments: publish!("rtmp://127.0.0.1:PORT/live/a"),
        serve: rtmp_deaf,
        ..ROW
    },
    Row { name: "RTSP: garbage", serve: garbage, ..RTSP },
    Row { name: "RTSP: a head that never ends", serve: rtsp_head, ..RTSP },
    Row { name: "RTSP: a description of 4 GB", serve: rtsp_body, ..RTSP },
    Row { name: "RTSP: a description that goes on behind its end", serve: rtsp_lines, ..RTSP },
    Row { name: "RTSP: a picture that never ends", serve: rtsp_picture, ..RTSP },
    Row {
        name: "RTSP: a flood of reports to a publisher by UDP",
        arguments: &[
            "publish",
            "rtsp://127.0.0.1:PORT/live/a",
            "--transport",
            "udp",
            "-c",
            "2",
            "-d",
            "2s",
            "--warmup",
            "0s",
            "--timeout",
            "1s",
            "--no-tui",
            "-o",
            "run",
        ],
        serve: rtsp_datagrams,
        ..ROW
    },
    Row { name: "HTTP: a head that never ends", serve: http_head, ..TS },
    Row { name: "HTTP: zeros for a transport stream", serve: http_zeros, ..TS },
    Row { name: "HTTP: chunks of one byte, and one of 16 EiB", serve: http_chunks, ..TS },
    Row { name: "HTTP: redirects without end", serve: redirect, ..TS },
    Row { name: "HTTP: a redirect to a file", serve: redirect_nowhere, ..TS },
    Row {
        name: "Mirakurun: JSON without end",
        arguments: &[
            "play",
            "mirakurun+http://127.0.0.1:PORT",
            "--services",
            "8",
            "-d",
            "2s",
            "--no-tui",
            "-o",
            "run",
        ],
        serve: endless_json,
        says: "/api/services: ",
        ..ROW
    },
    Row { name: "OvenMediaEngine: a message in frames of one byte", serve: socket_continuations, ..OVEN },
    Row { name: "OvenMediaEngine: a malformed offer", serve: socket_bad_offer, ..OVEN },
    Row { name: "OvenMediaEngine: garbage", serve: garbage, ..OVEN },
    Row { name: "WHEP: an answer that is no description", serve: whep_bad_answer, ..WHEP },
    Row {
        name: "WHIP: garbage",
        arguments: publish!("whip+http://127.0.0.1:PORT/live/a/whip"),
        serve: garbage,
        ..ROW
    },
    Row { name: "MQTT: garbage", serve: mqtt_garbage, ..MQTT },
    Row { name: "MQTT: a message of 256 MB that does not come", serve: mqtt_announced, ..MQTT },
    Row {
        name: "NATS: an introduction without end",
        arguments: &["agents", "--nats", "nats://127.0.0.1:PORT"],
        serve: nats_introduction,
        says: "is one there?",
        ..ROW
    },
    Row {
        name: "MQTT: a broker that reads nothing of what is published",
        arguments: publish!("mqtt://127.0.0.1:PORT/a"),
        serve: mqtt_deaf,
        ..ROW
    },
];

#[test]
fn hostile_servers_end_a_run_in_good_order_and_cost_it_little() {
    crate::all(ROWS, |row| row.name, run);
}
