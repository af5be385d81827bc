//! What readers of transport streams cost with every packet looked at, and what weir's tuner server does, beside the floor of
//! readers that look at nothing.
//!
//! `cargo bench -p weir --bench ts -- [seconds] [rounds] [readers of one service]`. First eight readers of eight services,
//! then many of one. Rounds of weir and floor are interleaved, because the machine is shared and its speed changes from
//! minute to minute. Only CPU time is compared, never wall clock.

#[path = "support/floor.rs"]
mod floor;
mod support;
#[path = "support/tally.rs"]
mod tally;

use floor::median;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;
use support::{Failure, KilledOnDrop, arguments};
use tally::Tally;
use weir_metrics::Moment;
use weir_shard::{Context, Endpoint, Event, Session, Shard, clock};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
/// Of each service.
const BITRATE: &str = "15mbps";
/// Before a round is measured.
const WARM_UP: Duration = Duration::from_secs(3);

fn main() -> Result<(), Failure> {
    let arguments = arguments();
    if arguments.first().is_some_and(|first| first == "--floor") {
        return floor(arguments[1].parse()?, &arguments[2], arguments[3].parse()?, arguments[4].parse()?);
    }
    let number = |position: usize, usual: u64| arguments.get(position).map_or(Ok(usual), |text| text.parse());
    let (seconds, rounds, many) = (number(0, 12)?, number(1, 3)?, number(2, 400)?);
    println!("streams of {BITRATE}, {seconds} s, {rounds} interleaved rounds");
    println!(
        "services   readers   who    % of a core   ms CPU/reader-s   Gbit/s   lost   origin ms CPU/reader-s"
    );
    let (origin, address) = origin()?;
    let services = services(address)?;
    for (count, readers) in [(8, 8), (1, many)] {
        let (mut weirs, mut floors) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            weirs.push(play(&origin, address, count, readers, seconds)?);
            floors.push(receive(address, &services[..count], readers, seconds)?);
        }
        let (weir, floor) = (median(weirs), median(floors));
        println!("median weir {weir:.2} %, floor {floor:.2} %, ratio {:.2}\n", weir / floor);
    }
    Ok(())
}

/// A tuner server, on a free loopback port.
fn origin() -> Result<(KilledOnDrop, SocketAddr), Failure> {
    let mut command = Command::new(WEIR);
    command.args(["origin", "--http", "127.0.0.1:0", "--bitrate", BITRATE]).stdout(Stdio::piped());
    let mut origin = KilledOnDrop(command.spawn()?);
    let mut line = String::new();
    BufReader::new(origin.0.stdout.take().ok_or("no stdout")?).read_line(&mut line)?;
    let address = line.trim().strip_prefix("listening on http://").ok_or("no address")?.parse()?;
    Ok((origin, address))
}

/// Paths of the streams that it has.
fn services(address: SocketAddr) -> Result<Vec<String>, Failure> {
    let mut link = TcpStream::connect(address)?;
    link.write_all(b"GET /api/services HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    link.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
    let services: Vec<serde_json::Value> = serde_json::from_str(body)?;
    Ok(services.iter().map(|service| format!("/api/services/{}/stream", service["id"])).collect())
}

/// One round of `weir play`, with everything that it prints switched on. Percent of a core.
fn play(
    origin: &KilledOnDrop,
    address: SocketAddr,
    services: usize,
    readers: u64,
    seconds: u64,
) -> Result<f64, Failure> {
    let output = Command::new(WEIR)
        .args(["play", &format!("mirakurun+http://{address}"), "--services", &services.to_string()])
        .args(["-c", &readers.to_string(), "-d", &format!("{seconds}s"), "--arrival", "200/s"])
        .args(["--warmup", &format!("{}s", WARM_UP.as_secs()), "--json", "-", "--no-tui"])
        .args(["--watch", &format!("pid={}", origin.0.id())])
        .current_dir(std::env::temp_dir())
        .stderr(Stdio::null())
        .output()?;
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let workload = &summary["workloads"][0];
    let stage = &workload["stages"][0];
    let of = |value: &serde_json::Value| value.as_f64().unwrap_or(f64::NAN);
    let playing = of(&stage["playing_mean"]).max(1.0);
    let share = of(&stage["generator"]["cpu_percent"]);
    println!(
        "{services:>8} {playing:>9.1}   weir {share:>13.2} {:>17.3} {:>8.3} {:>6} {:>24.3}",
        share * 10.0 / playing,
        of(&stage["figures"]["media"]["per_second"]) * 8.0 / 1e9,
        of(&workload["total"]["ts.lost_packets"]["total"]),
        of(&stage["targets"][0]["cpu_percent"]) * 10.0 / playing,
    );
    Ok(share)
}

/// One round of the floor, in a process of its own.
fn receive(address: SocketAddr, services: &[String], readers: u64, seconds: u64) -> Result<f64, Failure> {
    let [share, bits] =
        floor::round(&[address.to_string(), services.join(","), readers.to_string(), seconds.to_string()])?;
    println!(
        "{:>8} {:>9.1}   floor {share:>12.2} {:>17.3} {:>8.3}",
        services.len(),
        readers as f64,
        share * 10.0 / readers as f64,
        bits / 1e9
    );
    Ok(share)
}

/// Asks for a stream and empties its socket.
struct Floor {
    path: String,
    is_new: bool,
}

impl Session<Tally> for Floor {
    fn handle(&mut self, event: Event<'_>, context: &mut Context<'_, Tally>) {
        match event {
            Event::Connected => {
                context.send(format!("GET {} HTTP/1.1\r\nHost: bench\r\n\r\n", self.path).as_bytes());
            }
            Event::Bytes(bytes) => {
                if std::mem::take(&mut self.is_new) {
                    assert!(bytes.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(bytes));
                }
                context.world.count += bytes.len() as u64;
            }
            Event::Stop => context.close(),
            _ => {}
        }
    }
}

/// Receives for `seconds` and prints percent of a core, and bits a second.
fn floor(address: SocketAddr, services: &str, readers: u64, seconds: u64) -> Result<(), Failure> {
    let endpoint = Endpoint::tcp(address);
    let mut shard = Shard::new(Tally::default())?;
    for path in services.split(',').cycle().take(readers as usize) {
        shard.open(&endpoint, Box::new(Floor { path: path.to_owned(), is_new: true }))?;
    }
    let turn_until = |shard: &mut Shard<Tally>, end: Moment| -> Result<(), Failure> {
        while clock::now() < end {
            shard.turn(end)?;
        }
        Ok(())
    };
    turn_until(&mut shard, clock::now() + WARM_UP)?;
    let (began, cpu, bytes) = (clock::now(), clock::thread_cpu(), shard.world.count);
    turn_until(&mut shard, began + Duration::from_secs(seconds))?;
    let took = clock::now().since(began).as_secs_f64();
    let used = (clock::thread_cpu() - cpu).as_secs_f64();
    println!("{} {}", used * 100.0 / took, (shard.world.count - bytes) as f64 * 8.0 / took);
    Ok(())
}
