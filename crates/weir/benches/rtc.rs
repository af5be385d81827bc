//! What WebRTC viewers and the origin cost: CPU per packet and memory per client, beside the floor of a receiver that
//! reads datagrams and parses nothing.
//!
//! `cargo bench -p weir --bench rtc -- [viewers] [seconds] [rounds]`. Rounds of weir and floor are interleaved, because
//! the machine is shared and its speed changes from minute to minute. Only CPU time is compared, never wall clock.

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
/// 1 Mbit/s at 30 frames a second, sound of Opus included: packets as the origin cuts them.
const BITRATE: &str = "1mbps";
const FRAMES: u64 = 30;
/// What a frame of this rate is: one small packet with the clock stamp, and four of the picture.
const FRAME: [usize; 2] = [90, 4 * 1_060];

fn main() -> Result<(), Failure> {
    let arguments = arguments();
    if arguments.first().is_some_and(|first| first == "--floor") {
        return floor(arguments[1].parse()?, arguments[2].parse()?);
    }
    let number = |position: usize, default: u64| {
        arguments.get(position).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (viewers, seconds, rounds) = (number(0, 200), number(1, 12), number(2, 3));
    println!(
        "{viewers} viewers of one {BITRATE} stream of {FRAMES} fps, {seconds} s, {rounds} interleaved rounds"
    );
    println!(
        "who    µs CPU/packet   ms CPU/client-s   packets/client-s   kB/client   origin µs CPU/packet   lost"
    );
    let origin = Origin::start()?;
    let _publisher = publisher(&origin.rtmp, seconds * 2 * rounds + 60)?;
    let (mut weirs, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        weirs.push(play(&origin, viewers, seconds)?);
        floors.push(receive(viewers, seconds)?);
    }
    let (weir, floor) = (median(weirs), median(floors));
    println!("median weir {weir:.2} µs, floor {floor:.2} µs, ratio {:.2}", weir / floor);
    Ok(())
}

/// One round of `weir play`, with everything that it prints switched on. CPU per packet, in microseconds.
fn play(origin: &Origin, viewers: u64, seconds: u64) -> Result<f64, Failure> {
    let url = format!("whep+{}/live/bench", origin.http);
    let output = Command::new(WEIR)
        .args(["play", &url, "--json", "-", "--no-tui", "--watch", &format!("pid={}", origin.process.0.id())])
        .args(["-c", &viewers.to_string(), "-d", &format!("{seconds}s")])
        .args(["--arrival", "100/s", "--warmup", "3s"])
        .current_dir(std::env::temp_dir())
        .stderr(Stdio::null())
        .output()?;
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let stage = &summary["workloads"][0]["stages"][0];
    let of = |value: &serde_json::Value| value.as_f64().unwrap_or(f64::NAN);
    let playing = of(&stage["playing_mean"]).max(1.0);
    let packets = of(&stage["figures"]["units"]["per_second"]).max(1.0);
    let cpu = of(&stage["generator"]["cpu_percent"]) * 1e4 / packets;
    println!(
        "weir  {cpu:>14.2} {:>17.3} {:>18.1} {:>11.1} {:>22.2} {:>6}",
        cpu * packets / playing / 1e3,
        packets / playing,
        of(&stage["generator"]["rss_max_bytes"]) / 1e3 / playing,
        of(&stage["targets"][0]["cpu_percent"]) * 1e4 / packets,
        of(&summary["workloads"][0]["total"]["lost"]["total"]),
    );
    Ok(cpu)
}

/// One round of the floor, in a process of its own.
fn receive(viewers: u64, seconds: u64) -> Result<f64, Failure> {
    let [cpu, packets] = floor::round(&[viewers.to_string(), seconds.to_string()])?;
    println!("floor {cpu:>14.2} {:>17.3} {packets:>18.1}", cpu * packets / 1e3);
    Ok(cpu)
}

/// Empties its socket.
struct Floor;

impl Session<Tally> for Floor {
    fn handle(&mut self, event: Event<'_>, context: &mut Context<'_, Tally>) {
        match event {
            Event::Datagrams(mut batch) => {
                while batch.take_next().is_some() {
                    context.world.count += 1;
                }
            }
            Event::Stop => context.close(),
            _ => {}
        }
    }
}

/// Sends what it is to.
struct Blaster(Vec<SocketAddr>);

impl Session<Tally> for Blaster {
    fn handle(&mut self, event: Event<'_>, context: &mut Context<'_, Tally>) {
        if matches!(event, Event::Timer | Event::Opening) {
            context.set_timer(context.now + Duration::from_nanos(1_000_000_000 / FRAMES));
            let [first, rest] = FRAME.map(|length| vec![0x80_u8; length]);
            for to in &self.0 {
                context.send_datagram(*to, &first);
                context.send_datagrams(*to, &rest, rest.len() / 4);
            }
        }
    }
}

/// Receives for `seconds` and prints CPU per packet in µs, and packets per client-second.
fn floor(viewers: u64, seconds: u64) -> Result<(), Failure> {
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut shard = Shard::new(Tally::default())?;
    let mut places = Vec::new();
    for _ in 0..viewers {
        places.push(shard.open_datagrams(local, Box::new(Floor))?.1);
    }
    std::thread::spawn(move || {
        let Ok(mut sender) = Shard::new(Tally::default()) else { return };
        let _blaster = sender.open_datagrams(local, Box::new(Blaster(places)));
        while sender.turn(clock::now() + Duration::from_secs(1)).is_ok() {}
    });
    let turn_until = |shard: &mut Shard<Tally>, end: Moment| -> Result<(), Failure> {
        while clock::now() < end {
            shard.turn(end)?;
        }
        Ok(())
    };
    turn_until(&mut shard, clock::now() + Duration::from_secs(1))?;
    let (began, cpu, packets) = (clock::now(), clock::thread_cpu(), shard.world.count);
    turn_until(&mut shard, began + Duration::from_secs(seconds))?;
    let used = clock::thread_cpu() - cpu;
    let packets = (shard.world.count - packets) as f64;
    println!(
        "{} {}",
        used.as_secs_f64() * 1e6 / packets.max(1.0),
        packets / clock::now().since(began).as_secs_f64() / viewers as f64,
    );
    Ok(())
}

/// The origin, on free loopback ports.
struct Origin {
    process: KilledOnDrop,
    rtmp: String,
    http: String,
}

impl Origin {
    fn start() -> Result<Self, Failure> {
        let child = Command::new(WEIR)
            .args(["origin", "--rtmp", "127.0.0.1:0", "--rtc", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()?;
        let mut process = KilledOnDrop(child);
        let (mut rtmp, mut http) = (None, None);
        for line in BufReader::new(process.0.stdout.take().ok_or("no stdout")?).lines() {
            let line = line?;
            let Some(url) = line.strip_prefix("listening on ") else { break };
            if url.starts_with("rtmp://") {
                rtmp = Some(url.to_owned());
            } else if let Some(rest) = url.strip_prefix("whep+") {
                http = Some(rest.to_owned());
                break;
            }
        }
        Ok(Self { process, rtmp: rtmp.ok_or("no RTMP")?, http: http.ok_or("no WHEP")? })
    }
}

/// The stream's publisher, in a process of its own.
fn publisher(url: &str, seconds: u64) -> Result<KilledOnDrop, Failure> {
    let child = Command::new(WEIR)
        .args(["publish", &format!("{url}/live/bench"), "--bitrate", BITRATE, "--audio-codec", "opus"])
        .args(["-q", "--fps", &FRAMES.to_string(), "-d", &format!("{seconds}s")])
        .current_dir(std::env::temp_dir())
        .stderr(Stdio::null())
        .spawn()?;
    std::thread::sleep(Duration::from_secs(2));
    Ok(KilledOnDrop(child))
}
