//! What a message costs a subscriber: weir, mosquitto_sub, and a client on rumqttc, which are sent the same messages by the same
//! publisher through mosquitto, one after the other, forth and back.
//!
//! `cargo build --release -p weir && cargo bench -p weir-benches --bench mqtt_subscribers -- [rounds] [seconds]`: 10,000 messages a second of 128 and of 1,000 bytes, at QoS 0 and 1, over MQTT 5.
//! CPU is that of all threads of the subscriber (`/proc/PID/task/*/schedstat`) from before the first message until after the last, divided
//! by the messages; a subscriber that did not get all of them fails the bench. mosquitto_sub writes payloads to /dev/null. weir
//! takes latency, loss and order of each message; the other two count.

#[path = "../crates/weir/benches/support/mod.rs"]
mod support;

use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::{AsyncClient, Event, Incoming, MqttOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{Failure, KilledOnDrop, arguments};
use weir_testing::Mosquitto;

/// Messages a second.
const RATE: u32 = 10_000;

/// How long a subscriber may take to subscribe, and the last messages to come.
const SETTLING: Duration = Duration::from_secs(1);

/// First argument of a process of this bench that subscribes itself.
const SUBSCRIBE: &str = "subscribe";

const TOPIC: &str = "b/#";

#[derive(Clone, Copy)]
enum Subscriber {
    Weir,
    MosquittoSub,
    Rumqttc,
}

const SUBSCRIBERS: [Subscriber; 3] = [Subscriber::Weir, Subscriber::MosquittoSub, Subscriber::Rumqttc];

/// One comparison: how long payloads are, and at which quality of service.
#[derive(Clone, Copy)]
struct Case {
    bytes: u32,
    qos: u8,
    messages: u32,
}

fn main() -> Result<(), Failure> {
    let arguments = arguments();
    if let [word, port, qos, messages] = &arguments[..]
        && word == SUBSCRIBE
    {
        return subscribe(port.parse()?, qos == "1", messages.parse()?);
    }
    let number = |position: usize, usual: u32| arguments.get(position).map_or(Ok(usual), |text| text.parse());
    let (rounds, seconds) = (number(0, 4)?, number(1, 10)?);
    let directory = tempfile::tempdir()?;
    println!("bytes  QoS  CPU µs a message: weir, mosquitto_sub, rumqttc");
    for (bytes, qos) in [(128, 0), (1_000, 0), (128, 1), (1_000, 1)] {
        let case = Case { bytes, qos, messages: seconds * RATE };
        let mut used: Vec<[f64; 3]> = Vec::new();
        for round in 0..rounds {
            let mut each = [0.0; 3];
            let mut turns: Vec<_> = SUBSCRIBERS.into_iter().enumerate().collect();
            if round % 2 == 1 {
                turns.reverse();
            }
            for (position, subscriber) in turns {
                each[position] = measure(directory.path(), subscriber, case)?;
            }
            println!("{bytes:>5}  {qos:>3}  {:.2} {:.2} {:.2}", each[0], each[1], each[2]);
            used.push(each);
        }
        let ratio = |other: usize| median(used.iter().map(|each| each[other] / each[0]).collect());
        println!(
            "{bytes:>5}  {qos:>3}  median of weir's: mosquitto_sub {:.2}, rumqttc {:.2}",
            ratio(1),
            ratio(2)
        );
    }
    Ok(())
}

/// The release build of weir beside this bench, which belongs to another package.
fn weir() -> Result<PathBuf, Failure> {
    let path = std::env::current_exe()?.ancestors().nth(2).unwrap_or(Path::new(".")).join("weir");
    if path.exists() { Ok(path) } else { Err("build weir first: cargo build --release -p weir".into()) }
}

/// CPU time of a message, in microseconds.
fn measure(directory: &Path, subscriber: Subscriber, case: Case) -> Result<f64, Failure> {
    // It drops nothing, and has at most 1,000 messages in flight to each subscriber.
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 0\nmax_inflight_messages 1000");
    let port = broker.address().trim_start_matches("127.0.0.1:").parse()?;
    let (mut child, output) = start(directory, subscriber, port, case)?;
    std::thread::sleep(SETTLING);
    let before = processor_time(&child.0)?;
    publish(directory, port, case, case.messages)?;
    std::thread::sleep(SETTLING);
    let used = processor_time(&child.0)? - before;
    // The message behind those that count: subscribers that count end with it.
    publish(directory, port, case, 1)?;
    let missing = match subscriber {
        Subscriber::Weir => {
            weir_testing::interrupt(&child.0);
            child.0.wait()?;
            let text = std::fs::read(output.join("summary.json"))?;
            let summary: serde_json::Value = serde_json::from_slice(&text)?;
            summary["workloads"][0]["total"]["units"]["total"] != f64::from(case.messages + 1)
        }
        Subscriber::MosquittoSub | Subscriber::Rumqttc => !ended(&mut child.0)?,
    };
    if missing {
        return Err("a subscriber did not get all messages".into());
    }
    Ok(used * 1e6 / f64::from(case.messages))
}

/// Whether a process ends well within a while.
fn ended(child: &mut Child) -> Result<bool, Failure> {
    let began = Instant::now();
    loop {
        match child.try_wait()? {
            Some(status) => return Ok(status.success()),
            None if began.elapsed() > Duration::from_secs(5) => return Ok(false),
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// A subscriber, and where weir writes what it got.
fn start(
    directory: &Path,
    subscriber: Subscriber,
    port: u16,
    case: Case,
) -> Result<(KilledOnDrop, PathBuf), Failure> {
    let output = tempfile::tempdir_in(directory)?.keep();
    let (port_text, qos, all) = (port.to_string(), case.qos.to_string(), (case.messages + 1).to_string());
    let mut command = match subscriber {
        Subscriber::Weir => {
            let mut command = Command::new(weir()?);
            command.args(["play", &format!("mqtt://127.0.0.1:{port}/{TOPIC}"), "-q", &qos, "-d", "10m"]);
            command.args(["--no-tui", "--quiet", "-o"]).arg(&output);
            command
        }
        Subscriber::MosquittoSub => {
            let mut command = Command::new("mosquitto_sub");
            command.args(["-V", "mqttv5", "-h", "127.0.0.1", "-p", &port_text, "-q", &qos, "-t", TOPIC]);
            command.args(["-C", &all]);
            command
        }
        Subscriber::Rumqttc => {
            let mut command = Command::new(std::env::current_exe()?);
            command.args([SUBSCRIBE, &port_text, &qos, &all]);
            command
        }
    };
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    Ok((KilledOnDrop(child), output))
}

/// Publishes, and waits until all is sent.
fn publish(directory: &Path, port: u16, case: Case, count: u32) -> Result<(), Failure> {
    let url = format!("mqtt://127.0.0.1:{port}/b/{{seq}}");
    let (count, size) = (count.to_string(), format!("size:{}", case.bytes));
    let mut command = Command::new(weir()?);
    command.args(["publish", &url, "-q", &case.qos.to_string(), "--rate", &format!("{RATE}/s")]);
    command.args(["--count", &count, "--payload", &size, "--no-tui", "--quiet", "-o"]);
    command.arg(tempfile::tempdir_in(directory)?.keep());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    Ok(())
}

/// CPU time of all threads of a process so far, in seconds.
fn processor_time(process: &Child) -> Result<f64, Failure> {
    let mut nanoseconds = 0.0;
    for task in std::fs::read_dir(format!("/proc/{}/task", process.id()))? {
        let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
        nanoseconds += text.split_whitespace().next().unwrap_or_default().parse::<f64>()?;
    }
    Ok(nanoseconds * 1e-9)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        _ if values.is_empty() => f64::NAN,
        0 => (values[middle - 1] + values[middle]) / 2.0,
        _ => values[middle],
    }
}

/// Counts messages with rumqttc until all have come.
fn subscribe(port: u16, at_least_once: bool, messages: u32) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (client, mut events) = AsyncClient::new(MqttOptions::new("rumqttc", "127.0.0.1", port), 10);
        client.subscribe(TOPIC, if at_least_once { QoS::AtLeastOnce } else { QoS::AtMostOnce }).await?;
        let mut left = messages;
        while left > 0 {
            if let Event::Incoming(Incoming::Publish(_)) = events.poll().await? {
                left -= 1;
            }
        }
        Ok(())
    })
}
