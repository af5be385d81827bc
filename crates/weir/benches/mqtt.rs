//! What an MQTT publisher, a subscriber and an idle connection cost weir, against mosquitto and against weir's own origin,
//! alternately; and what these two brokers cost: by the number of filters, by the number of subscribers of one message, and how
//! evenly they divide messages among those that share a subscription.
//!
//! `cargo bench -p weir --bench mqtt -- [rounds] [messages] [idle connections] [subscribers of one message]`. CPU is that of the whole process, by
//! `/proc`, divided by messages; of a subscriber the kernel's share stands apart. Memory of an idle connection is the
//! difference of two processes' resident sets, one of them with a single connection.

mod support;

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{Failure, KilledOnDrop, arguments};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// Clock ticks of `/proc/PID/stat` a second (`proc(5)`): 100 on every Linux that weir runs on.
const TICKS: f64 = 100.0;

/// What a process used until its end.
struct Used {
    user: f64,
    system: f64,
    /// Highest resident set that was seen, in bytes.
    memory: f64,
    seconds: f64,
}

#[derive(Clone, Copy)]
enum Broker {
    Mosquitto,
    Origin,
}

fn main() -> Result<(), Failure> {
    let arguments = arguments();
    let number = |position: usize, usual: u32| arguments.get(position).map_or(Ok(usual), |text| text.parse());
    let (rounds, messages, idle) = (number(0, 3)?, number(1, 500_000)?, number(2, 9_000)?);
    let subscribers = number(3, 10_000)?;
    let directory = tempfile::tempdir()?;
    println!("what        broker       messages/s   CPU µs   user µs   system µs a message");
    for _ in 0..rounds {
        for broker in [Broker::Mosquitto, Broker::Origin] {
            publish(directory.path(), broker, messages)?;
        }
    }
    for _ in 0..rounds {
        for broker in [Broker::Mosquitto, Broker::Origin] {
            subscribe(directory.path(), broker, messages)?;
        }
    }
    let at_rest = |clients| idle_memory(directory.path(), clients);
    let (one, all) = (at_rest(1)?, at_rest(idle)?);
    println!("idle        {idle} connections: {:.2} kB each", (all - one) / f64::from(idle - 1) / 1e3);
    println!("what        broker       CPU µs of the broker");
    for _ in 0..rounds {
        for broker in [Broker::Mosquitto, Broker::Origin] {
            for filters in [1, 1_000] {
                by_filters(directory.path(), broker, filters)?;
            }
        }
    }
    for _ in 0..rounds {
        for broker in [Broker::Mosquitto, Broker::Origin] {
            fan_out(directory.path(), broker, subscribers)?;
        }
    }
    for broker in [Broker::Mosquitto, Broker::Origin] {
        fairness(directory.path(), broker)?;
    }
    Ok(())
}

/// What a message costs a broker that has N filters, each of a client of its own. One of them matches.
fn by_filters(directory: &Path, broker: Broker, filters: u32) -> Result<(), Failure> {
    const PUBLISHERS: u32 = 5;
    const EACH: u32 = 10_000;
    let (running, port) = start(directory, broker)?;
    let (play, publish) =
        (format!("mqtt://127.0.0.1:{port}/f/{{client}}/+"), format!("mqtt://127.0.0.1:{port}/f/1/{{seq}}"));
    let (filters_text, publishers, each) = (filters.to_string(), PUBLISHERS.to_string(), EACH.to_string());
    let subscriber = KilledOnDrop(weir(
        directory,
        &["play", &play, "-c", &filters_text, "--arrival", "2000/s", "-d", "60s"],
    )?);
    std::thread::sleep(Duration::from_secs(3));
    let before = processor_time(&running.0)?;
    let words = ["publish", &publish, "-q", "1", "-c", &publishers, "--rate", "4000/s", "--count", &each];
    ended(weir(directory, &[&words[..], &["--payload", "size:100", "-d", "60s"]].concat())?)?;
    let used = processor_time(&running.0)? - before;
    drop(subscriber);
    let each = used * 1e6 / f64::from(PUBLISHERS * EACH);
    println!("filters     {:<10} {each:>8.2} a message with {filters} filters", name(broker));
    Ok(())
}

/// What a message costs a broker that hands it to N subscribers, and when the last of them has it.
fn fan_out(directory: &Path, broker: Broker, subscribers: u32) -> Result<(), Failure> {
    const MESSAGES: u32 = 20;
    let (running, port) = start(directory, broker)?;
    let url = format!("mqtt://127.0.0.1:{port}/one");
    let (clients, count) = (subscribers.to_string(), MESSAGES.to_string());
    let output = tempfile::tempdir_in(directory)?.keep();
    let words =
        ["play", &url, "-c", &clients, "--arrival", "2000/s", "-d", "22s", "--no-tui", "--quiet", "-o"];
    let mut command = Command::new(WEIR);
    command.args(words).arg(&output).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut subscriber = command.spawn()?;
    std::thread::sleep(Duration::from_secs(8));
    let before = processor_time(&running.0)?;
    ended(weir(directory, &["publish", &url, "--rate", "2/s", "--count", &count, "--payload", "size:100"])?)?;
    std::thread::sleep(Duration::from_secs(1));
    let used = processor_time(&running.0)? - before;
    subscriber.wait()?;
    let summary: serde_json::Value = serde_json::from_slice(&std::fs::read(output.join("summary.json"))?)?;
    let total = &summary["workloads"][0]["total"];
    let latency = |statistic: &str| total["latency"][statistic].as_f64().unwrap_or(f64::NAN) * 1e3;
    println!(
        "fan-out     {:<10} {:>8.2} a delivery to {subscribers} subscribers; {} of {} came, p50 {:.0} ms, p99 {:.0} ms, max {:.0} ms",
        name(broker),
        used * 1e6 / f64::from(MESSAGES * subscribers),
        total["units"]["total"].as_f64().unwrap_or(f64::NAN),
        MESSAGES * subscribers,
        latency("p50"),
        latency("p99"),
        latency("max")
    );
    Ok(())
}

/// How a broker divides messages among ten that share a subscription.
fn fairness(directory: &Path, broker: Broker) -> Result<(), Failure> {
    let (_running, port) = start(directory, broker)?;
    let output = tempfile::tempdir_in(directory)?.keep();
    let member = format!("  - {{play: 'mqtt://127.0.0.1:{port}/$share/g/s/#', qos: 1, duration: 5s}}\n");
    let scenario = format!(
        "workloads:\n{}  - {{publish: 'mqtt://127.0.0.1:{port}/s/{{seq}}', qos: 1, rate: 10000/s, count: 20000, delay: 1s, duration: 4s}}\nwarmup: 0s\n",
        member.repeat(10)
    );
    let file = directory.join("fairness.yaml");
    std::fs::write(&file, scenario)?;
    let mut command = Command::new(WEIR);
    command.arg("run").arg(&file).args(["--no-tui", "--quiet", "-o"]).arg(&output);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    let summary: serde_json::Value = serde_json::from_slice(&std::fs::read(output.join("summary.json"))?)?;
    let workloads = summary["workloads"].as_array().map(Vec::as_slice).unwrap_or_default();
    let units = workloads.iter().take(10).filter_map(|it| it["total"]["units"]["total"].as_f64());
    let units: Vec<f64> = units.collect();
    let (least, most) =
        units.iter().fold((f64::MAX, 0.0_f64), |(least, most), it| (least.min(*it), most.max(*it)));
    println!(
        "sharing     {:<10} {} messages among {}: {least} to {most} each",
        name(broker),
        units.iter().sum::<f64>(),
        units.len()
    );
    Ok(())
}

/// CPU time of a process so far, in seconds.
fn processor_time(process: &Child) -> Result<f64, Failure> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.id()))?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |position: usize| fields[position].parse::<f64>();
    Ok((ticks(11)? + ticks(12)?) / TICKS)
}

fn name(broker: Broker) -> &'static str {
    match broker {
        Broker::Mosquitto => "mosquitto",
        Broker::Origin => "origin",
    }
}

fn start(directory: &Path, broker: Broker) -> Result<(KilledOnDrop, u16), Failure> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut command = match broker {
        Broker::Mosquitto => {
            let file = directory.join("mosquitto.conf");
            // By default mosquitto lets a publisher with MQTT 5 have 20 messages in flight, and the publisher then sleeps and
            // wakes for each few of them.
            let lines = "allow_anonymous true\nuser root\npersistence false\nmax_queued_messages 0\nmax_inflight_messages 1000\n";
            std::fs::write(&file, format!("listener {port} 127.0.0.1\n{lines}"))?;
            let mut command = Command::new("/usr/sbin/mosquitto");
            command.arg("-c").arg(file);
            command
        }
        Broker::Origin => {
            let mut command = Command::new(WEIR);
            command.args(["origin", "--mqtt", &format!(":{port}")]);
            command
        }
    };
    let kept =
        KilledOnDrop(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
    let began = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if began.elapsed() > Duration::from_secs(20) {
            return Err("the broker does not listen".into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok((kept, port))
}

fn weir(directory: &Path, arguments: &[&str]) -> Result<Child, Failure> {
    let output = tempfile::tempdir_in(directory)?.keep();
    let mut command = Command::new(WEIR);
    command.args(arguments).args(["--no-tui", "--quiet", "-o"]).arg(output);
    Ok(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?)
}

/// Waits for the end of a process, and reads what it used before it is forgotten.
fn ended(mut child: Child) -> Result<Used, Failure> {
    let began = Instant::now();
    let mut memory = 0.0_f64;
    loop {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id()))?;
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        memory = memory.max(fields[21].parse::<f64>()? * 4_096.0);
        if fields[0] == "Z" {
            let ticks = |position: usize| fields[position].parse::<f64>().map(|ticks| ticks / TICKS);
            let (user, system) = (ticks(11)?, ticks(12)?);
            child.wait()?;
            return Ok(Used { user, system, memory, seconds: began.elapsed().as_secs_f64() });
        }
        if began.elapsed() > Duration::from_secs(180) {
            child.kill()?;
            return Err("it did not end".into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn tell(what: &str, broker: Broker, messages: u32, used: &Used) {
    let name = name(broker);
    let each = |seconds: f64| seconds * 1e6 / f64::from(messages);
    println!(
        "{what:<11} {name:<10} {:>12.0} {:>8.2} {:>9.2} {:>11.2}",
        f64::from(messages) / used.seconds,
        each(used.user + used.system),
        each(used.user),
        each(used.system)
    );
}

fn publish_arguments(port: u16, messages: u32) -> Vec<String> {
    let url = format!("mqtt://127.0.0.1:{port}/b/{{seq}}");
    let count = messages.to_string();
    let words =
        ["publish", &url, "-q", "1", "--rate", "1000000/s", "--count", &count, "--payload", "size:955"];
    words.iter().chain(&["--window", "1000", "-d", "120s"]).map(|word| (*word).to_owned()).collect()
}

fn publish(directory: &Path, broker: Broker, messages: u32) -> Result<(), Failure> {
    let (_broker, port) = start(directory, broker)?;
    let arguments = publish_arguments(port, messages);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let used = ended(weir(directory, &arguments)?)?;
    tell("publish", broker, messages, &used);
    Ok(())
}

/// A subscriber that takes what one publisher sends at a rate that both brokers keep up with.
fn subscribe(directory: &Path, broker: Broker, messages: u32) -> Result<(), Failure> {
    let (_broker, port) = start(directory, broker)?;
    let rate = 20_000;
    let messages = messages.min(rate * 10);
    let url = format!("mqtt://127.0.0.1:{port}/b/#");
    let seconds = format!("{}s", messages / rate + 3);
    let subscriber = weir(directory, &["play", &url, "-q", "1", "-d", &seconds])?;
    std::thread::sleep(Duration::from_secs(1));
    let mut arguments = publish_arguments(port, messages);
    if let Some(place) = arguments.iter_mut().find(|word| *word == "1000000/s") {
        *place = format!("{rate}/s");
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let publisher = KilledOnDrop(weir(directory, &arguments)?);
    let mut used = ended(subscriber)?;
    drop(publisher);
    used.seconds = f64::from(messages / rate);
    tell("subscribe", broker, messages, &used);
    Ok(())
}

fn idle_memory(directory: &Path, clients: u32) -> Result<f64, Failure> {
    let (_broker, port) = start(directory, Broker::Mosquitto)?;
    let url = format!("mqtt://127.0.0.1:{port}/idle");
    let clients = clients.to_string();
    let words = ["play", &url, "-c", &clients, "--arrival", "2000/s", "-d", "12s", "--keep-alive", "5s"];
    Ok(ended(weir(directory, &words)?)?.memory)
}
