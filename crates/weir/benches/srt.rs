//! What SRT publishers cost: CPU per packet and memory per client, beside the floor of a sender that hands the same bytes to its
//! sockets (UDP GSO) and does nothing else.
//!
//! `cargo bench -p weir --bench srt -- [publishers] [seconds] [rounds]`. Rounds of weir, in clear and encrypted, and of the floor are
//! interleaved, because the machine is shared and its speed changes from minute to minute. Only CPU time is compared, never wall
//! clock. The floor hears nothing; publishers hear an acknowledgement every 10 ms.

#[path = "support/floor.rs"]
mod floor;
mod support;
#[path = "support/tally.rs"]
mod tally;

use floor::median;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;
use support::{Failure, KilledOnDrop, arguments};
use tally::Tally;
use weir_metrics::Moment;
use weir_shard::{Context, Event, Session, Shard, clock};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
/// Of each publisher, at 25 frames a second.
const BITRATE: &str = "2mbps";
const FRAMES: u64 = 25;
/// A packet of SRT with seven of MPEG-TS.
const PACKET: usize = 16 + 7 * 188;
/// Datagrams of a frame, sound included: 200 a second.
const DATAGRAMS: usize = 8;
const PASSPHRASE: &str = "correct-horse-battery";

fn main() -> Result<(), Failure> {
    let arguments = arguments();
    if arguments.first().is_some_and(|first| first == "--floor") {
        return floor(arguments[1].parse()?, arguments[2].parse()?, arguments[3].parse()?);
    }
    let number = |position: usize, default: u64| {
        arguments.get(position).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (publishers, seconds, rounds) = (number(0, 500), number(1, 12), number(2, 3));
    println!(
        "{publishers} publishers of {BITRATE} into weir's own origin, {seconds} s, {rounds} interleaved rounds"
    );
    println!("who        µs CPU/packet   packets/client-s   kB/client   origin µs CPU/packet   given up");
    let mut rounds_of = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for (encrypted, values) in [false, true].into_iter().zip(&mut rounds_of) {
            values.push(publish(publishers, seconds, encrypted)?);
        }
        rounds_of[2].push(send(publishers, seconds)?);
    }
    let [clear, encrypted, floor] = rounds_of.map(median);
    println!(
        "median weir {clear:.2} µs, encrypted {encrypted:.2} µs, floor {floor:.2} µs, ratio {:.2}",
        clear / floor
    );
    Ok(())
}

/// An origin of its own for each round, and its address.
fn origin(encrypted: bool) -> Result<(KilledOnDrop, SocketAddr), Failure> {
    let mut command = Command::new(WEIR);
    command.args(["origin", "--srt", "127.0.0.1:0"]).stdout(Stdio::piped());
    if encrypted {
        command.env("WEIR_SRT_PASSPHRASE", PASSPHRASE);
    }
    let mut origin = KilledOnDrop(command.spawn()?);
    let mut line = String::new();
    BufReader::new(origin.0.stdout.take().ok_or("no stdout")?).read_line(&mut line)?;
    let address = line.trim().strip_prefix("listening on srt://").ok_or("no address")?.parse()?;
    Ok((origin, address))
}

/// Runs `weir publish`, with everything that it prints switched on; its first stage, and packets that it gave up.
fn run(publishers: u64, seconds: u64, encrypted: bool) -> Result<(serde_json::Value, f64), Failure> {
    let (origin, address) = origin(encrypted)?;
    let mut command = Command::new(WEIR);
    command.args(["publish", &format!("srt://{address}?streamid=#!::r=live/s{{i}},m=publish")]);
    command.args(["--streams", &publishers.to_string(), "--bitrate", BITRATE, "--fps", &FRAMES.to_string()]);
    command.args([
        "-d",
        &format!("{seconds}s"),
        "--arrival",
        "200/s",
        "--warmup",
        "3s",
        "--json",
        "-",
        "--no-tui",
    ]);
    command.args(["--watch", &format!("pid={}", origin.0.id())]);
    if encrypted {
        command.env("WEIR_SRT_PASSPHRASE", PASSPHRASE);
    }
    let output = command.current_dir(std::env::temp_dir()).stderr(Stdio::null()).output()?;
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let workload = &summary["workloads"][0];
    let total = |name: &str| workload["total"][name]["total"].as_f64().unwrap_or(f64::NAN);
    Ok((workload["stages"][0].clone(), total("srt.send_dropped") + total("srt.send_discarded")))
}

/// One round of publishers. CPU per packet, in microseconds.
fn publish(publishers: u64, seconds: u64, encrypted: bool) -> Result<f64, Failure> {
    let of = |value: &serde_json::Value| value.as_f64().unwrap_or(f64::NAN);
    let memory = |stage: &serde_json::Value| of(&stage["generator"]["rss_max_bytes"]);
    let (one, _) = run(1, 5, encrypted)?;
    let (stage, given_up) = run(publishers, seconds, encrypted)?;
    let playing = of(&stage["playing_mean"]).max(1.0);
    let packets = of(&stage["figures"]["srt.sent"]["per_second"]).max(1.0);
    let cpu = of(&stage["generator"]["cpu_percent"]) * 1e4 / packets;
    println!(
        "{:<9} {cpu:>14.2} {:>18.1} {:>11.1} {:>22.2} {given_up:>10}",
        if encrypted { "encrypted" } else { "weir" },
        packets / playing,
        (memory(&stage) - memory(&one)) / 1e3 / (playing - 1.0).max(1.0),
        of(&stage["targets"][0]["cpu_percent"]) * 1e4 / packets,
    );
    Ok(cpu)
}

/// One round of the floor, in a process of its own.
fn send(publishers: u64, seconds: u64) -> Result<f64, Failure> {
    let (_origin, address) = origin(false)?;
    let [cpu, packets] = floor::round(&[address.to_string(), publishers.to_string(), seconds.to_string()])?;
    println!("floor     {cpu:>14.2} {packets:>18.1}");
    Ok(cpu)
}

/// Sends a frame's bytes in one call, of one socket.
struct Floor {
    to: SocketAddr,
    frame: Vec<u8>,
}

impl Session<Tally> for Floor {
    fn handle(&mut self, event: Event<'_>, context: &mut Context<'_, Tally>) {
        if matches!(event, Event::Timer | Event::Opening) {
            context.set_timer(context.now + Duration::from_nanos(1_000_000_000 / FRAMES));
            context.world.count += context.send_datagrams(self.to, &self.frame, PACKET) as u64;
        }
    }
}

/// Sends for `seconds` and prints CPU per packet in µs, and packets per client-second.
fn floor(to: SocketAddr, publishers: u64, seconds: u64) -> Result<(), Failure> {
    let mut shard = Shard::new(Tally::default())?;
    let turn_until = |shard: &mut Shard<Tally>, end: Moment| -> Result<(), Failure> {
        while clock::now() < end {
            shard.turn(end)?;
        }
        Ok(())
    };
    for _ in 0..publishers {
        // For a connection that there is not: the origin reads it and drops it.
        let frame = vec![0x7F; DATAGRAMS * PACKET];
        shard.open_datagrams(([127, 0, 0, 1], 0).into(), Box::new(Floor { to, frame }))?;
        let next = clock::now() + Duration::from_nanos(1_000_000_000 / FRAMES / publishers);
        turn_until(&mut shard, next)?;
    }
    turn_until(&mut shard, clock::now() + Duration::from_secs(1))?;
    let (began, cpu, packets) = (clock::now(), clock::thread_cpu(), shard.world.count);
    turn_until(&mut shard, began + Duration::from_secs(seconds))?;
    let used = clock::thread_cpu() - cpu;
    let packets = (shard.world.count - packets) as f64;
    println!(
        "{} {}",
        used.as_secs_f64() * 1e6 / packets.max(1.0),
        packets / clock::now().since(began).as_secs_f64() / publishers as f64,
    );
    Ok(())
}
