//! Hostile clients by RTSP.

use super::{OpenConnections, Origin, ROW, Row, hears, noise, send};
use std::net::{TcpStream, UdpSocket};

/// Announces a stream of this name, and what the origin says when its track is set up as datagrams from these ports.
fn announce(origin: &Origin, name: &str, port: u16) -> (TcpStream, String) {
    let stream = origin.connect("rtsp");
    let description = "v=0\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:1\r\n";
    let length = description.len();
    let head =
        format!("ANNOUNCE rtsp://h/live/{name} RTSP/1.0\r\nCSeq: 1\r\nContent-Length: {length}\r\n\r\n");
    send(&stream, format!("{head}{description}").as_bytes());
    hears(&stream, "CSeq: 1\r\n");
    set_up(&stream, name, port);
    let said = hears(&stream, "server_port=");
    (stream, said)
}

fn set_up(stream: &TcpStream, name: &str, port: u16) {
    let transport = format!("RTP/AVP;unicast;client_port={port}-{};mode=record", port + 1);
    let request =
        format!("SETUP rtsp://h/live/{name}/1 RTSP/1.0\r\nCSeq: 2\r\nTransport: {transport}\r\n\r\n");
    send(stream, request.as_bytes());
}

/// Each of many connections has a pair of ports, and names other ones of its own again and again.
fn ports(origin: &Origin) -> OpenConnections {
    let connections = (0..200).map(|number| {
        let name = number.to_string();
        let (stream, _) = announce(origin, &name, 2_000);
        (0..200).for_each(|more| set_up(&stream, &name, 2_002 + 2 * more));
        stream
    });
    connections.collect()
}

/// A publisher whose datagrams are nothing in particular.
fn datagrams(origin: &Origin) -> OpenConnections {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (stream, said) = announce(origin, "a", socket.local_addr().unwrap().port());
    let port = said.split("server_port=").nth(1).and_then(|rest| rest.split('-').next()?.parse().ok());
    let port: u16 = port.unwrap_or_else(|| panic!("{said}"));
    send(&stream, b"RECORD rtsp://h/live/a RTSP/1.0\r\nCSeq: 3\r\n\r\n");
    hears(&stream, "CSeq: 3\r\n");
    let noise = noise(4_000);
    for number in 0..100_000_u32 {
        let [a, b, c, d] = number.wrapping_mul(2_654_435_761).to_be_bytes();
        let kind = [96, 0xE0, 200, 201, 203, 33, a, b][number as usize % 8];
        let from = usize::from(c) * 8;
        let head = [0x80, kind, c, d, a, b, 0, 0, 0, 0, 0, 9, 0x7C, d];
        let packet = [&head[..], &noise[from..from + usize::from(d) * 4]].concat();
        // What finds no room is gone.
        let _ = socket.send_to(&packet, ("127.0.0.1", port + number as u16 % 2));
    }
    vec![stream]
}

pub(super) const ROWS: &[Row] = &[
    Row { name: "RTSP: pairs of ports, and others again and again", attack: ports, ..ROW },
    Row { name: "RTSP: a publisher of datagrams that are nothing", attack: datagrams, ..ROW },
];
