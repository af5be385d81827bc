//! Over HTTP, and to the peer of background streams.

use super::{OpenConnections, Origin, ROW, Row, ends, send};

fn endless_head(origin: &Origin) -> OpenConnections {
    for scheme in ["http", "whep+http"] {
        let stream = origin.connect(scheme);
        send(&stream, b"GET / HTTP/1.1\r\n");
        while send(&stream, &b"a: b\r\n".repeat(10_000)) {}
        ends(&stream);
    }
    OpenConnections::new()
}

/// Requests, one behind the other, whose answers nobody reads.
fn unread_answers(origin: &Origin) -> OpenConnections {
    for scheme in ["http", "whep+http"] {
        let stream = origin.connect(scheme);
        let requests = b"GET /api/services HTTP/1.1\r\n\r\n".repeat(10_000);
        let taken = (0..200).take_while(|_| send(&stream, &requests)).count();
        assert!(taken < 200, "60 MB of requests were taken");
    }
    OpenConnections::new()
}

/// A reader that reads nothing of its stream.
fn standing_reader(origin: &Origin) -> OpenConnections {
    let streams: Vec<_> = (0..50).map(|_| origin.connect("http")).collect();
    streams.iter().for_each(|stream| {
        send(stream, b"GET /1.ts HTTP/1.1\r\n\r\n");
    });
    std::thread::sleep(std::time::Duration::from_secs(2));
    streams
}

fn bulk_line(origin: &Origin) -> OpenConnections {
    let stream = origin.connect("bulk");
    send(&stream, &[b'x'; 1 << 20]);
    ends(&stream);
    OpenConnections::new()
}

pub(super) const ROWS: &[Row] = &[
    Row { name: "HTTP: a head that never ends", attack: endless_head, ..ROW },
    Row { name: "HTTP: requests whose answers nobody reads", attack: unread_answers, ..ROW },
    Row { name: "HTTP: fifty readers that stand still", attack: standing_reader, ..ROW },
    Row { name: "bulk: a malformed request", attack: bulk_line, ..ROW },
];
