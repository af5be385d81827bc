//! What a player costs: CPU of one shard per client-second, reads and memory.
//!
//! `cargo run --release -p weir-clients --example player_cost -- rtmp://host/app/stream 1000 20`
//! plays a stream that someone else publishes; `publish URL` publishes 235 kbit/s, 25 frames a second.

use std::time::Duration;
use weir_clients::{
    BitRate, MaterialOptions, PlannedStart, PlayOptions, PublishOptions, RtmpOptions, ShardRecorder, Turn,
    rtmp,
};
use weir_metrics::common::{
    ACTIVE, FAILED, LATENCY, PLAYING, READS, RECEIVED, SEND_LAG, STALLS, STARTUP, UNITS,
};
use weir_shard::{Shard, clock};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (publishes, arguments) = match arguments.split_first() {
        Some((verb, rest)) if verb == "publish" => (true, rest),
        _ => (false, &arguments[..]),
    };
    let [url, rest @ ..] = arguments else { panic!("give a URL, a number of players, and seconds") };
    let number = |at: usize, otherwise: u32| rest.get(at).map_or(otherwise, |text| text.parse().unwrap());
    let (clients, seconds) = (number(0, if publishes { 1 } else { 500 }), number(1, 20));
    let urls = [url.clone()];
    let workload = if publishes {
        let MaterialOptions::Synthetic { frame_rate, gop, audio_bit_rate, audio_codec, seed, .. } =
            MaterialOptions::default()
        else {
            unreachable!("the default is synthetic")
        };
        let bit_rate = BitRate::from_kbps(235);
        let resolution = (320, 180);
        let material = MaterialOptions::Synthetic {
            bit_rate,
            frame_rate,
            gop,
            resolution,
            audio_bit_rate,
            audio_codec,
            seed,
        };
        rtmp::publish(
            &urls,
            &PublishOptions { material, ..PublishOptions::default() },
            &RtmpOptions::default(),
        )
        .unwrap()
    } else {
        // Witnesses read each message; their share shows in the cost. 0: the first four only.
        rtmp::play(
            &urls,
            &PlayOptions { witness_every: number(2, 200), ..PlayOptions::default() },
            &RtmpOptions::default(),
        )
        .unwrap()
    };
    let mut shard = Shard::new(ShardRecorder::new([workload.schema])).unwrap();
    let memory = resident();
    for client in 0..clients {
        let now = clock::now();
        let planned = PlannedStart { client, workload: 0, cell: 0, at: now, turn: Turn::default() };
        let session = workload.start(planned, now, &mut shard.world);
        let _ = shard.open(workload.endpoint(client), session);
        shard.turn(now + Duration::from_micros(500)).unwrap();
    }
    let warm = clock::now() + Duration::from_secs(5);
    while clock::now() < warm {
        shard.turn(warm).unwrap();
    }
    let startup = shard.world.take_figures().remove(0);
    let (cpu, began) = (clock::thread_cpu(), clock::now());
    let end = began + Duration::from_secs(seconds.into());
    while clock::now() < end {
        shard.turn(end).unwrap();
    }
    let span = clock::now().since(began).as_secs_f64();
    let cpu = (clock::thread_cpu() - cpu).as_secs_f64();
    let figures = shard.world.take_figures().remove(0);
    let playing = figures.gauge(PLAYING) as f64;
    let each = |total: u64| total as f64 / playing / span;
    println!("playing {playing} of {clients}, active {}", figures.gauge(ACTIVE));
    println!("failed {} + {}", startup.counter(FAILED), figures.counter(FAILED));
    for (failure, count) in startup.failures().chain(figures.failures()) {
        println!("  {count} {}", failure.key());
    }
    for remark in shard.world.take_failures().iter().take(5) {
        println!("  client {}: {} {}", remark.planned.client, remark.failure.key(), remark.words);
    }
    println!("startup p99 {} ms", startup.spread(STARTUP).value_at_quantile(0.99) / 1_000);
    println!(
        "cpu {:.1} µs a client-second, {:.1} % of a core",
        cpu * 1e6 / playing / span,
        cpu * 100.0 / span
    );
    println!(
        "a client-second: {:.2} reads, {:.1} messages, {:.0} bytes; {} stalls",
        each(figures.counter(READS)),
        each(figures.counter(UNITS)),
        each(figures.counter(RECEIVED)),
        figures.counter(STALLS)
    );
    println!("latency p50 {} µs", figures.signed(LATENCY).value_at_quantile(0.5));
    println!("send lag p99 {} µs", figures.spread(SEND_LAG).value_at_quantile(0.99));
    println!("memory {:.1} kB a client", resident().saturating_sub(memory) as f64 / f64::from(clients) / 1e3);
}

/// Resident bytes of this process.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4_096
}
