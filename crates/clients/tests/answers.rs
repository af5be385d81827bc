//! Servers that ask and ask, and read none of the answers: no client keeps answers without bound for them.

mod bench;

use bench::Bench;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use weir_clients::{MqttOptions, PlayOptions, RtcOptions, RtmpOptions, mqtt, rtc, rtmp};
use weir_rtc::signalling::websocket::accept;
use weir_rtmp::{Server, ServerEvent, ServerOptions};
use weir_shard::clock;

/// Bytes of questions: more than the kernels hold of questions and answers.
const FLOOD: usize = 40 << 20;

/// What a server does with what it has read so far, until there is nothing to do but to ask.
type Greet = Box<dyn FnMut(&[u8]) -> (Vec<u8>, bool)>;

/// Lets a player in, then asks it `question` again and again. How many bytes of questions were taken of it.
fn taken(scheme: &str, mut greet: Greet, question: &[u8]) -> usize {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("{scheme}://{}/live/a", listener.local_addr().unwrap());
    let (urls, options) = ([url], PlayOptions::default());
    let players = match scheme {
        "rtmp" => rtmp::play(&urls, &options, &RtmpOptions::default()),
        "mqtt" => mqtt::play(&urls, &options, &MqttOptions::default()),
        _ => rtc::oven(&urls, &options, &RtcOptions::default()),
    };
    let players = players.unwrap();
    let mut bench = Bench::new(vec![&players]);
    bench.start(0, 0..1);
    let mut link: Option<TcpStream> = None;
    let (mut greeted, mut taken) = (false, 0);
    let questions = question.repeat(FLOOD.div_ceil(question.len()));
    let begin = clock::now();
    let mut asked = 0;
    while asked < 4_000 {
        bench.shard.turn(clock::now()).unwrap();
        let Some(link) = &mut link else {
            link = listener.accept().ok().map(|(link, _)| link);
            if let Some(link) = &link {
                link.set_nonblocking(true).unwrap();
            }
            assert!(clock::now().since(begin).as_secs() < 20, "it does not come");
            continue;
        };
        if greeted {
            asked += 1;
            taken += link.write(&questions[taken..]).unwrap_or(0);
            continue;
        }
        let mut heard = [0; 4_096];
        match link.read(&mut heard) {
            Ok(length) => {
                let (answer, done) = greet(&heard[..length]);
                link.write_all(&answer).unwrap();
                greeted = done;
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        assert!(clock::now().since(begin).as_secs() < 20, "it is not let in");
    }
    taken
}

#[test]
fn mqtt_releases_of_messages_that_never_were_are_not_answered_without_bound() {
    let mut packets = 0;
    let greet: Greet = Box::new(move |bytes| {
        packets += 1;
        match packets {
            // CONNACK.
            1 => (vec![0x20, 3, 0, 0, 0], false),
            // SUBACK: the packet identifier stands behind two bytes of fixed header.
            _ => (vec![0x90, 4, bytes[2], bytes[3], 0, 0], true),
        }
    });
    // PUBREL, to which PUBCOMP says that the identifier is not known.
    let taken = taken("mqtt", greet, &[0x62, 2, 0, 1]);
    assert!(taken < FLOOD, "{taken}");
}

#[test]
fn rtmp_pings_are_not_answered_without_bound() {
    let mut server = Server::new(ServerOptions::default(), 7);
    let mut playing = false;
    let greet: Greet = Box::new(move |bytes| {
        let (mut connect, mut play) = (false, None);
        server
            .input(bytes, &mut |event| match event {
                ServerEvent::Connect(_) => connect = true,
                ServerEvent::Play { message_stream_id, .. } => play = Some(message_stream_id),
                _ => {}
            })
            .unwrap();
        if connect {
            server.accept_connect();
        }
        if let Some(message_stream_id) = play {
            server.accept_play(message_stream_id);
            playing = true;
        }
        (std::mem::take(server.output()), playing)
    });
    // A whole chunk of the connection's own stream each: user control 6, PingRequest.
    let ping = [2, 0, 0, 0, 0, 0, 6, 4, 0, 0, 0, 0, 0, 6, 1, 2, 3, 4];
    let taken = taken("rtmp", greet, &ping);
    assert!(taken < FLOOD, "{taken}");
}

#[test]
fn websocket_pings_are_not_answered_without_bound() {
    let mut request = String::new();
    let greet: Greet = Box::new(move |bytes| {
        request.push_str(&String::from_utf8_lossy(bytes));
        if !request.ends_with("\r\n\r\n") {
            return (Vec::new(), false);
        }
        let key = request.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("sec-websocket-key").then(|| value.trim().to_owned())
        });
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {}\r\n\r\n",
            accept(&key.unwrap())
        );
        (answer.into_bytes(), true)
    });
    // As long as a control frame may be.
    let ping = [&[0x89, 125][..], &[7; 125]].concat();
    let taken = taken("ws", greet, &ping);
    assert!(taken < FLOOD, "{taken}");
}
