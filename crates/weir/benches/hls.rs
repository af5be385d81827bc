//! What viewers of HLS cost: CPU per client-second and memory per client, against nginx's RTMP module, which cuts segments, and against
//! the origin, beside the floor of a loop that asks for the same playlists and segments and discards them.
//!
//! `cargo bench -p weir --bench hls -- [viewers] [seconds] [rounds]`. Rounds of weir and floor are interleaved, because the machine is
//! shared and its speed changes from minute to minute. Only CPU time is compared, never wall clock.

#[path = "support/floor.rs"]
mod floor;
mod support;
#[path = "support/tally.rs"]
mod tally;

use floor::median;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;
use support::{Failure, KilledOnDrop, arguments};
use tally::Tally;
use weir_metrics::Moment;
use weir_shard::{Context, Endpoint, Event, Session, Shard, clock};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const BITRATE: &str = "1mbps";
const SEGMENT: Duration = Duration::from_secs(4);
/// Before a round is measured: three segments are there at once, and are loaded.
const WARM_UP: Duration = Duration::from_secs(6);

fn main() -> Result<(), Failure> {
    let arguments = arguments();
    if arguments.first().is_some_and(|first| first == "--floor") {
        return floor(arguments[1].parse()?, &arguments[2], arguments[3].parse()?, arguments[4].parse()?);
    }
    let number = |position: usize, usual: u64| arguments.get(position).map_or(Ok(usual), |text| text.parse());
    let (viewers, seconds, rounds) = (number(0, 1_000)?, number(1, 16)?, number(2, 3)?);
    println!("{viewers} viewers of {BITRATE} in segments of 4 s, {seconds} s, {rounds} interleaved rounds");
    println!("server       who    ms CPU/client-s   kB/client   Mbit/s   server ms/client-s");
    for server in [Server::nginx()?, Server::origin()?] {
        let publisher = server.publish((seconds + 20) * 2 * rounds + 60)?;
        let (mut weirs, mut floors) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            weirs.push(server.play(viewers, seconds)?);
            floors.push(server.receive(viewers, seconds)?);
        }
        drop(publisher);
        let (weir, floor) = (median(weirs), median(floors));
        println!(
            "{:<12} median weir {weir:.4} ms, floor {floor:.4} ms, ratio {:.2}\n",
            server.name,
            weir / floor
        );
    }
    Ok(())
}

/// A server that this bench started, on free loopback ports.
struct Server {
    name: &'static str,
    process: KilledOnDrop,
    rtmp: String,
    http: SocketAddr,
    path: &'static str,
    _directory: Option<tempfile::TempDir>,
}

impl Server {
    fn nginx() -> Result<Self, Failure> {
        let free = || TcpListener::bind("127.0.0.1:0")?.local_addr();
        let (rtmp, http, directory) = (free()?, free()?, tempfile::tempdir()?);
        let configuration = format!(
            "load_module /usr/lib/nginx/modules/ngx_rtmp_module.so;\ndaemon off; worker_processes 1; master_process off;\n\
             pid {0}/pid; error_log {0}/error.log; worker_rlimit_nofile 20000;\nevents {{ worker_connections 18000; }}\n\
             http {{ access_log off; sendfile on; keepalive_requests 100000; server {{ listen {http}; root {0}; }} }}\n\
             rtmp {{ server {{ listen {rtmp}; application live {{ live on; hls on; hls_path {0}/live; hls_fragment 4s; hls_playlist_length 40s; }} }} }}\n",
            directory.path().display()
        );
        let file = directory.path().join("nginx.conf");
        std::fs::write(&file, configuration)?;
        let process = KilledOnDrop(Command::new("nginx").arg("-c").arg(&file).stderr(Stdio::null()).spawn()?);
        until("nginx listens", || TcpStream::connect(http).is_ok())?;
        let rtmp = format!("rtmp://{rtmp}/live/bench");
        let path = "/live/bench.m3u8";
        Ok(Self { name: "nginx-rtmp", process, rtmp, http, path, _directory: Some(directory) })
    }

    fn origin() -> Result<Self, Failure> {
        let mut command = Command::new(WEIR);
        command.args(["origin", "--rtmp", "127.0.0.1:0", "--hls", "127.0.0.1:0", "--segment", "4s"]);
        let mut process = KilledOnDrop(command.stdout(Stdio::piped()).spawn()?);
        let mut lines = BufReader::new(process.0.stdout.take().ok_or("no stdout")?).lines();
        let mut address = |scheme: &str| -> Result<SocketAddr, Failure> {
            let line = lines.next().ok_or("no address")??;
            let (_, address) = line.split_once(scheme).ok_or_else(|| format!("no {scheme} in {line}"))?;
            Ok(address.split('/').next().ok_or("no address")?.trim().parse()?)
        };
        let (rtmp, http) = (address("rtmp://")?, address("http+hls://")?);
        let rtmp = format!("rtmp://{rtmp}/live/bench");
        Ok(Self { name: "origin", process, rtmp, http, path: "/live/bench.m3u8", _directory: None })
    }

    /// The stream's publisher, in a process of its own; there are four segments then.
    fn publish(&self, seconds: u64) -> Result<KilledOnDrop, Failure> {
        let child = Command::new(WEIR)
            .args([
                "publish",
                &self.rtmp,
                "--bitrate",
                BITRATE,
                "--gop",
                "2s",
                "-q",
                "-d",
                &format!("{seconds}s"),
            ])
            .current_dir(std::env::temp_dir())
            .stderr(Stdio::null())
            .spawn()?;
        std::thread::sleep(SEGMENT * 4 + Duration::from_secs(1));
        Ok(KilledOnDrop(child))
    }

    /// One round of `weir play`, with everything that it prints switched on. CPU per client-second in ms.
    fn play(&self, viewers: u64, seconds: u64) -> Result<f64, Failure> {
        let output = Command::new(WEIR)
            .args(["play", &format!("http://{}{}", self.http, self.path), "--json", "-", "--no-tui"])
            .args(["-c", &viewers.to_string(), "-d", &format!("{seconds}s"), "--arrival", "500/s"])
            .args(["--warmup", &format!("{}s", WARM_UP.as_secs())])
            .args(["--watch", &format!("pid={}", self.process.0.id())])
            .current_dir(std::env::temp_dir())
            .stderr(Stdio::null())
            .output()?;
        let summary: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let stage = &summary["workloads"][0]["stages"][0];
        let of = |value: &serde_json::Value| value.as_f64().unwrap_or(f64::NAN);
        let playing = of(&stage["playing_mean"]).max(1.0);
        let cpu = of(&stage["generator"]["cpu_percent"]) * 10.0 / playing;
        println!(
            "{:<12} weir {cpu:>16.4} {:>11.1} {:>8.0} {:>20.4}",
            self.name,
            of(&stage["generator"]["rss_max_bytes"]) / 1e3 / playing,
            of(&stage["figures"]["media"]["per_second"]) * 8.0 / 1e6,
            of(&stage["targets"][0]["cpu_percent"]) * 10.0 / playing,
        );
        Ok(cpu)
    }

    /// One round of the floor, in a process of its own.
    fn receive(&self, viewers: u64, seconds: u64) -> Result<f64, Failure> {
        let [cpu, kilobytes, bits] = floor::round(&[
            self.http.to_string(),
            self.path.to_owned(),
            viewers.to_string(),
            seconds.to_string(),
        ])?;
        println!("{:<12} floor {cpu:>15.4} {kilobytes:>11.1} {:>8.0}", self.name, bits / 1e6);
        Ok(cpu)
    }
}

fn until(what: &str, is_so: impl Fn() -> bool) -> Result<(), Failure> {
    for _ in 0..100 {
        if is_so() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(format!("not in 5 s: {what}").into())
}

/// Asks for the playlist once a segment, and then for the last segment in it.
struct Floor {
    path: String,
    /// The head of an answer, or a playlist.
    kept: Vec<u8>,
    /// Bytes of the body that are to come; `None` in a head.
    left: Option<usize>,
    is_playlist: bool,
    asked: Moment,
    last: String,
}

impl Floor {
    fn ask(&mut self, path: &str, context: &mut Context<'_, Tally>) {
        (self.is_playlist, self.left) = (path == self.path, None);
        self.kept.clear();
        context.send(format!("GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n").as_bytes());
    }

    fn ask_for_playlist(&mut self, context: &mut Context<'_, Tally>) {
        self.asked = context.now;
        let path = self.path.clone();
        self.ask(&path, context);
    }

    fn take(&mut self, mut bytes: &[u8], context: &mut Context<'_, Tally>) {
        context.world.count += bytes.len() as u64;
        if self.left.is_none() {
            self.kept.extend_from_slice(bytes);
            let Some(end) = self.kept.windows(4).position(|it| it == b"\r\n\r\n") else { return };
            let head = String::from_utf8_lossy(&self.kept[..end]).to_ascii_lowercase();
            let length = head.split("content-length:").nth(1).and_then(|it| it.split("\r\n").next());
            self.left = Some(length.and_then(|it| it.trim().parse().ok()).expect("a length"));
            bytes = &bytes[bytes.len() - (self.kept.len() - end - 4)..];
            self.kept.clear();
        }
        if self.is_playlist {
            self.kept.extend_from_slice(bytes);
        }
        let left = self.left.map_or(0, |left| left - bytes.len());
        self.left = Some(left);
        if left > 0 {
            return;
        }
        let playlist = std::mem::take(&mut self.kept);
        let playlist = String::from_utf8_lossy(&playlist);
        let last = playlist.lines().rfind(|line| self.is_playlist && !line.starts_with('#'));
        match last.filter(|last| **last != self.last) {
            Some(last) => {
                self.last = last.to_owned();
                let folder = self.path.rsplit_once('/').map_or("", |(folder, _)| folder);
                let path = format!("{folder}/{last}");
                self.ask(&path, context);
            }
            None => context.set_timer(self.asked + SEGMENT),
        }
    }
}

impl Session<Tally> for Floor {
    fn handle(&mut self, event: Event<'_>, context: &mut Context<'_, Tally>) {
        match event {
            Event::Connected | Event::Timer => self.ask_for_playlist(context),
            Event::Bytes(bytes) => self.take(bytes, context),
            Event::Stop => context.close(),
            _ => {}
        }
    }
}

/// Receives for `seconds` and prints CPU per client-second in ms, kB per client, and bits a second.
fn floor(address: SocketAddr, path: &str, viewers: u64, seconds: u64) -> Result<(), Failure> {
    let endpoint = Endpoint::tcp(address);
    let mut shard = Shard::new(Tally::default())?;
    let turn_until = |shard: &mut Shard<Tally>, end: Moment| -> Result<(), Failure> {
        while clock::now() < end {
            shard.turn(end)?;
        }
        Ok(())
    };
    let started = clock::now();
    for viewer in 0..viewers {
        let floor = Floor {
            path: path.to_owned(),
            kept: Vec::new(),
            left: None,
            is_playlist: true,
            asked: started,
            last: String::new(),
        };
        shard.open(&endpoint, Box::new(floor))?;
        turn_until(&mut shard, started + Duration::from_millis(2 * viewer))?;
    }
    turn_until(&mut shard, clock::now() + WARM_UP)?;
    let (began, cpu, bytes) = (clock::now(), clock::thread_cpu(), shard.world.count);
    turn_until(&mut shard, began + Duration::from_secs(seconds))?;
    let took = clock::now().since(began).as_secs_f64();
    let used = clock::thread_cpu() - cpu;
    let resident = std::fs::read_to_string("/proc/self/statm")?;
    let pages: f64 = resident.split_whitespace().nth(1).ok_or("statm")?.parse()?;
    println!(
        "{} {} {}",
        used.as_secs_f64() * 1e3 / took / viewers as f64,
        pages * 4.096 / viewers as f64,
        (shard.world.count - bytes) as f64 * 8.0 / took
    );
    Ok(())
}
