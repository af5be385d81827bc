//! Datagrams that a socket of weir's own has no room for are this machine's doing, and no server's.

use crate::support::{KilledOnDrop, Run, Wire, shared, start_measuring, weir};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// Starts `weir origin` for SRT at the other end of the wire; returns when it listens.
fn far_end(wire: &Wire) -> KilledOnDrop {
    let mut command = weir();
    command.args(["origin", "--srt", "10.231.0.2:9000"]);
    let mut origin = KilledOnDrop::start(wire.at(1, &command).stdout(Stdio::piped()));
    let mut lines = BufReader::new(origin.0.stdout.take().unwrap());
    lines.read_line(&mut String::new()).unwrap();
    origin
}

fn publish(wire: &Wire, bitrate: &str) -> Run {
    let mut command = weir();
    let url = "srt://10.231.0.2:9000?streamid=#!::r=live/a,m=publish";
    command.args(["publish", url, "-c", "1", "-d", "6s", "--warmup", "1s", "--bitrate", bitrate]);
    start_measuring(&mut wire.at(0, &command)).finish()
}

fn reason<'a>(run: &'a Run, check: &str) -> Option<&'a Value> {
    run.summary["verdict"]["reasons"].as_array().unwrap().iter().find(|it| it["check"] == check)
}

#[test]
fn what_a_full_socket_does_not_send_makes_a_run_invalid_and_fails_no_server() {
    let _machine = shared();
    // What does not fit through the wire waits in the socket, until its 8 MiB at the most are full: more than a second of it.
    let wire = Wire::queued(5);
    let _origin = far_end(&wire);
    let healthy = publish(&wire, "2mbps");
    // 98: the machine was busy.
    assert!([0, 98].contains(&healthy.code), "{}", healthy.err);
    for figure in ["socket_drops", "srt.send_discarded", "srt.send_dropped"] {
        assert_eq!(healthy.total(figure), 0.0, "{figure}");
    }
    let full = publish(&wire, "40mbps");
    assert!(full.total("socket_drops") > 100.0, "{}", full.total("socket_drops"));
    assert_eq!(full.summary["verdict"]["state"], "invalid", "{:#}", full.summary["verdict"]);
    let said = reason(&full, "socket_drops").unwrap();
    let text = said["text"].as_str().unwrap();
    assert!(text.contains("never left"), "{text}");
    // What was given up before the first datagram was refused lay in the socket.
    assert_eq!(reason(&full, "unsent").unwrap()["state"], "invalid");
    let (discarded, dropped) = (full.total("srt.send_discarded"), full.total("srt.send_dropped"));
    assert!(discarded > 100.0, "{discarded}");
    assert_eq!(dropped, 0.0);
    let thresholds = full.summary["thresholds"].as_array().unwrap();
    let failed: Vec<_> = thresholds.iter().filter(|threshold| threshold["passed"] == false).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn what_a_queue_behind_the_socket_drops_is_said() {
    let _machine = shared();
    // What waits for longer than 50 ms is dropped by the queue, to which the socket has given all of it.
    let wire = Wire::limited(5);
    let _origin = far_end(&wire);
    // The origin acknowledges what it has given up itself, so that publishers give up nothing.
    let said = |run: &Run| {
        let warnings = run.summary["warnings"].as_array().unwrap();
        warnings.iter().any(|text| text.as_str().unwrap().contains("SndbufErrors"))
    };
    let healthy = publish(&wire, "2mbps");
    assert_eq!((healthy.total("socket_drops"), healthy.total("srt.send_dropped")), (0.0, 0.0));
    assert!(!said(&healthy) && reason(&healthy, "queue_drops").is_none(), "{}", healthy.err);
    let full = publish(&wire, "20mbps");
    assert_eq!(full.total("socket_drops"), 0.0);
    assert!(said(&full) || reason(&full, "queue_drops").is_some(), "{:#}", full.summary["warnings"]);
    assert!(full.total("srt.reported_missing") > 100.0);
}
