//! What RTMP players and the origin cost: CPU per client-second and memory per client, against
//! nginx-rtmp and against the origin, beside the floor of a receiver that parses nothing.
//!
//! `cargo bench -p weir --bench rtmp -- [players] [seconds] [rounds]`. Rounds of weir and floor are
//! interleaved, because the machine is shared and its speed changes from minute to minute. Only CPU
//! time is compared, never wall clock.

#[path = "support/floor.rs"]
mod floor;
mod support;

use floor::median;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use support::{Failure, KilledOnDrop, arguments};
use weir_metrics::Moment;
use weir_rtmp::{Client, ClientEvent, ClientOptions};
use weir_shard::{Context, Endpoint, Event, Session, SessionId, Shard, World, clock};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
/// The stream of the classic benchmarks: 0.235 Mbit/s, 25 + 47 messages a second.
const BITRATE: &str = "235kbps";
/// The floor's low-water mark: what weir's crowd uses for this stream.
const FLOOR_LOW_WATER: usize = 58_000;

fn main() -> Result<(), Failure> {
    let arguments = arguments();
    if arguments.first().is_some_and(|first| first == "--floor") {
        return floor(&arguments[1], arguments[2].parse()?, arguments[3].parse()?);
    }
    let number = |position: usize, default: u64| {
        arguments.get(position).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (players, seconds, rounds) = (number(0, 1_000), number(1, 12), number(2, 3));
    println!("{players} players of one {BITRATE} stream, {seconds} s, {rounds} interleaved rounds");
    println!(
        "server      who    ms CPU/client-s   kB/client   reads/client-s   server ms/client-s   server kB/client"
    );
    for server in [Server::nginx()?, Server::origin()?] {
        let publisher = publisher(&server.url(), seconds * 2 * rounds + 30)?;
        let (mut weirs, mut floors) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let played = play(&server, players, seconds)?;
            println!("{:<11} weir   {played}", server.name);
            weirs.push(played.cpu_ms);
            let received = receive(&server, players, seconds)?;
            println!("{:<11} floor  {received}", server.name);
            floors.push(received.cpu_ms);
        }
        drop(publisher);
        let (weir, floor) = (median(weirs), median(floors));
        println!(
            "{:<11} median weir {weir:.4} ms, floor {floor:.4} ms, ratio {:.2}\n",
            server.name,
            weir / floor
        );
    }
    Ok(())
}

/// What one round cost.
struct Cost {
    cpu_ms: f64,
    kilobytes: f64,
    reads: f64,
    server_cpu_ms: f64,
    server_kilobytes: f64,
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { cpu_ms, kilobytes, reads, server_cpu_ms, server_kilobytes } = self;
        write!(
            f,
            "{cpu_ms:>14.4} {kilobytes:>11.1} {reads:>16.2} {server_cpu_ms:>20.4} {server_kilobytes:>18.1}"
        )
    }
}

/// One round of `weir play`, with everything that it prints switched on.
fn play(server: &Server, players: u64, seconds: u64) -> Result<Cost, Failure> {
    let output = Command::new(WEIR)
        .args(["play", &server.url(), "--json", "-", "--no-tui", "--watch", &format!("pid={}", server.pid())])
        .args([
            "-c",
            &players.to_string(),
            "-d",
            &format!("{seconds}s"),
            "--arrival",
            "500/s",
            "--warmup",
            "3s",
        ])
        .current_dir(std::env::temp_dir())
        .stderr(Stdio::null())
        .output()?;
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let stage = &summary["workloads"][0]["stages"][0];
    let playing = stage["playing_mean"].as_f64().ok_or("no stage")?.max(1.0);
    let of = |value: &serde_json::Value| value.as_f64().unwrap_or(f64::NAN);
    Ok(Cost {
        cpu_ms: of(&stage["generator"]["cpu_percent"]) * 10.0 / playing,
        kilobytes: of(&stage["generator"]["rss_max_bytes"]) / 1e3 / playing,
        reads: of(&stage["figures"]["reads"]["per_second"]) / playing,
        server_cpu_ms: of(&stage["targets"][0]["cpu_percent"]) * 10.0 / playing,
        server_kilobytes: of(&stage["targets"][0]["rss_max_bytes"]) / 1e3 / playing,
    })
}

/// One round of the floor, in a process of its own.
fn receive(server: &Server, players: u64, seconds: u64) -> Result<Cost, Failure> {
    let [cpu_ms, reads, kilobytes] =
        floor::round(&[server.address.to_string(), players.to_string(), seconds.to_string()])?;
    Ok(Cost { cpu_ms, kilobytes, reads, server_cpu_ms: f64::NAN, server_kilobytes: f64::NAN })
}

/// Counts reads and the clients that play; the floor has no other bookkeeping.
#[derive(Default)]
struct Tally {
    reads: u64,
    playing: u64,
}

impl World for Tally {
    type Message = ();

    fn receive(&mut self, (): (), _: Moment, _: &mut Vec<SessionId>) {}
}

/// Asks for the stream like a player and then only empties its socket.
struct Floor {
    client: Option<Box<Client>>,
}

impl Session<Tally> for Floor {
    fn handle(&mut self, event: Event<'_>, context: &mut Context<'_, Tally>) {
        let mut playing = false;
        match (event, &mut self.client) {
            (Event::Connected, Some(client)) => context.send(&std::mem::take(client.output())),
            (Event::Bytes(bytes), Some(client)) => {
                let heard =
                    client.input(bytes, &mut |event| playing |= matches!(event, ClientEvent::Media(_)));
                heard.expect("a server that speaks RTMP");
                context.send(&std::mem::take(client.output()));
            }
            (Event::Bytes(_), None) => context.world.reads += 1,
            (Event::Stop, _) => context.close(),
            _ => {}
        }
        if playing {
            self.client = None;
            context.world.playing += 1;
            context.set_low_water(FLOOR_LOW_WATER);
        }
    }
}

/// Receives for `seconds` and prints CPU per client-second in ms, reads per client-second, kB per client.
fn floor(address: &str, players: u64, seconds: u64) -> Result<(), Failure> {
    let address: SocketAddr = address.parse()?;
    let options = Arc::new(ClientOptions::play(format!("rtmp://{address}/live"), "live", "bench"));
    let endpoint = Endpoint::tcp(address);
    let mut shard = Shard::new(Tally::default())?;
    let started = clock::now();
    for player in 0..players {
        let client = Some(Box::new(Client::new(options.clone(), player)));
        shard.open(&endpoint, Box::new(Floor { client }))?;
        while clock::now().since(started) < Duration::from_millis(2 * player) {
            shard.turn(started + Duration::from_millis(2 * player))?;
        }
    }
    let turn_until = |shard: &mut Shard<Tally>, end: Moment| -> Result<(), Failure> {
        while clock::now() < end {
            shard.turn(end)?;
        }
        Ok(())
    };
    turn_until(&mut shard, clock::now() + Duration::from_secs(3))?;
    let (began, cpu, reads) = (clock::now(), clock::thread_cpu(), shard.world.reads);
    turn_until(&mut shard, began + Duration::from_secs(seconds))?;
    let used = clock::thread_cpu() - cpu;
    let client_seconds = clock::now().since(began).as_secs_f64() * shard.world.playing as f64;
    let resident = std::fs::read_to_string("/proc/self/statm")?;
    let pages: f64 = resident.split_whitespace().nth(1).ok_or("statm")?.parse()?;
    println!(
        "{} {} {}",
        used.as_secs_f64() * 1e3 / client_seconds,
        (shard.world.reads - reads) as f64 / client_seconds,
        pages * 4.096 / players as f64
    );
    Ok(())
}

/// A server that this bench started, on a free loopback port.
struct Server {
    name: &'static str,
    process: KilledOnDrop,
    address: SocketAddr,
    _directory: Option<tempfile::TempDir>,
}

impl Server {
    fn nginx() -> Result<Self, Failure> {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let directory = tempfile::tempdir()?;
        let configuration = format!(
            "load_module /usr/lib/nginx/modules/ngx_rtmp_module.so;\ndaemon off; worker_processes 1; master_process off;\n\
             pid {0}/pid; error_log {0}/error.log; worker_rlimit_nofile 20000;\nevents {{ worker_connections 18000; }}\n\
             rtmp {{ server {{ listen {address}; chunk_size 4096; application live {{ live on; }} }} }}\n",
            directory.path().display()
        );
        let file = directory.path().join("nginx.conf");
        std::fs::write(&file, configuration)?;
        let process = KilledOnDrop(Command::new("nginx").arg("-c").arg(&file).stderr(Stdio::null()).spawn()?);
        wait_for(address)?;
        Ok(Self { name: "nginx-rtmp", process, address, _directory: Some(directory) })
    }

    fn origin() -> Result<Self, Failure> {
        let mut command = Command::new(WEIR);
        command.args(["origin", "--rtmp", "127.0.0.1:0"]).stdout(Stdio::piped());
        let mut process = KilledOnDrop(command.spawn()?);
        let mut line = String::new();
        BufReader::new(process.0.stdout.take().ok_or("no stdout")?).read_line(&mut line)?;
        let address = line.trim().strip_prefix("listening on rtmp://").ok_or("no address")?.parse()?;
        Ok(Self { name: "origin", process, address, _directory: None })
    }

    fn pid(&self) -> u32 {
        self.process.0.id()
    }

    fn url(&self) -> String {
        format!("rtmp://{}/live/bench", self.address)
    }
}

/// The stream's publisher, in a process of its own.
fn publisher(url: &str, seconds: u64) -> Result<KilledOnDrop, Failure> {
    let child = Command::new(WEIR)
        .args(["publish", url, "--bitrate", BITRATE, "-q", "-d", &format!("{seconds}s")])
        .current_dir(std::env::temp_dir())
        .stderr(Stdio::null())
        .spawn()?;
    std::thread::sleep(Duration::from_secs(2));
    Ok(KilledOnDrop(child))
}

fn wait_for(address: SocketAddr) -> Result<(), Failure> {
    for _ in 0..100 {
        if std::net::TcpStream::connect(address).is_ok() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(format!("nothing listens on {address}").into())
}
