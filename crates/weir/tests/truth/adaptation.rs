//! Senders of others that adapt to a viewer's narrow link, by what weir tells them of it: Chromium by transport-wide congestion control,
//! aiortc by REMB.

use crate::support::webrtc::count;
use crate::support::{Browser, KilledOnDrop, Run, play, program, shared, undisturbed};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// A WHEP server whose media is a page's in Chromium.
struct Bridge {
    port: u16,
}

/// The ends at which a page and a viewer meet.
struct Ends {
    offer: (Sender<String>, Mutex<Receiver<String>>),
    answer: (Sender<String>, Mutex<Receiver<String>>),
}

impl Bridge {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let pair = || {
            let (sender, receiver) = channel();
            (sender, Mutex::new(receiver))
        };
        let ends = Arc::new(Ends { offer: pair(), answer: pair() });
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let ends = Arc::clone(&ends);
                std::thread::spawn(move || ends.serve(stream));
            }
        });
        Self { port }
    }
}

impl Ends {
    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).is_ok_and(|length| length == 0) {
                return;
            }
        }
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("content-length").then(|| value.parse::<usize>().unwrap())
        });
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body).unwrap();
        let body = String::from_utf8(body).unwrap();
        let (status, kind, said) = match head.split_whitespace().take(2).collect::<Vec<_>>()[..] {
            ["GET", "/"] => (200, "text/html", include_str!("support/chromium_sender.html").to_owned()),
            ["GET", "/offer"] => (200, "application/sdp", self.offer.1.lock().unwrap().recv().unwrap()),
            ["POST", "/answer"] => {
                self.answer.0.send(body).unwrap();
                (200, "text/plain", String::new())
            }
            ["POST", "/whep"] => {
                self.offer.0.send(body).unwrap();
                (201, "application/sdp", self.answer.1.lock().unwrap().recv().unwrap())
            }
            _ => (404, "text/plain", String::new()),
        };
        let head = format!(
            "HTTP/1.1 {status} Said\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            said.len()
        );
        let _ = reader.get_mut().write_all((head + &said).as_bytes());
    }
}

/// What a viewer received in the median of its last seconds, in bytes, and its run.
fn kept(url: &str, options: &str) -> (f64, Run) {
    let run = play(url, &format!("-c 1 --warmup 0s --drain 500ms {options}"));
    assert_eq!(run.well(), 1, "{:?}", run.failures());
    let zeros = ["lost", "rtc.unauthentic", "rtc.malformed"];
    assert_eq!(zeros.map(|figure| run.total(figure)), [0.0; 3]);
    (run.spread("rtc.bytes_per_second")["p50"].as_f64().unwrap(), run)
}

#[test]
fn chromium_comes_down_to_a_viewers_narrow_link_by_transport_wide_feedback() {
    let _machine = shared();
    undisturbed(|| {
        let bridge = Bridge::start();
        let _page = Browser::open(&format!("http://127.0.0.1:{}/", bridge.port));
        let url = format!("whep+http://127.0.0.1:{}/whep", bridge.port);
        let (wide, _) = kept(&url, "-d 20s --codec vp8");
        let (narrow, run) = kept(&url, "-d 30s --codec vp8 --bandwidth 400kbps");
        // 50,000 bytes a second.
        assert!(wide > 100_000.0 && (17_500.0..=51_000.0).contains(&narrow), "{wide} and {narrow}");
        // It fills no queue for long: that is found by when packets come, and not by what is dropped.
        let dropped = run.total("link.dropped");
        assert!(dropped < run.total("units") / 10.0, "{dropped} dropped");
    });
}

#[test]
fn aiortc_comes_down_to_a_viewers_narrow_link_by_the_estimate_that_it_is_told() {
    let _machine = shared();
    undisturbed(|| {
        // Noise in VP8, at up to 1.5 Mbit/s.
        let mut command = program("/usr/bin/python3", "python3-aiortc");
        command.args(["-c", include_str!("support/aiortc_server.py")]);
        let mut server = KilledOnDrop::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let mut line = String::new();
        BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port: u16 = line.trim().parse().expect("aiortc; on Debian: apt install python3-aiortc");
        let url = format!("whep+http://127.0.0.1:{port}/whep");
        let (wide, _) = kept(&url, "-d 10s");
        let (narrow, run) = kept(&url, "-d 20s --bandwidth 1mbps");
        // 125,000 bytes a second.
        assert!(wide > 140_000.0 && (60_000.0..=126_000.0).contains(&narrow), "{wide} and {narrow}");
        let dropped = run.total("link.dropped");
        assert!(dropped > 0.0 && dropped < run.total("units") / 10.0, "{dropped} dropped");
        assert!(count(&run, "link.adapt_time") >= 1);
        let kept = run.spread("link.adapted_bytes_per_second")["p50"].as_f64().unwrap();
        assert!((60_000.0..=126_000.0).contains(&kept), "{kept}");
    });
}
