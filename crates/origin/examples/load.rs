//! Measures an origin in another process: `load ADDRESS PID VIEWERS SECONDS [SERVICES]`. Publishes 0.235 Mbit/s
//! in 68 messages a second, plays it, and prints the process's CPU per viewer-second and memory per viewer. With
//! SERVICES it reads that number of services of a tuner server instead, in turn, and looks at no byte.

use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_metrics::Moment;
use weir_rtmp::message::MediaKind;
use weir_rtmp::{Client, ClientEvent, ClientOptions, flv};
use weir_shard::{Context, Endpoint, Event, Session, SessionId, Shard, World, clock};

/// What the viewers count together.
#[derive(Default)]
struct UnitCounts {
    playing: usize,
    bytes: u64,
    messages: u64,
}

impl World for UnitCounts {
    type Message = Infallible;

    fn receive(&mut self, message: Infallible, _: Moment, _: &mut Vec<SessionId>) {
        match message {}
    }
}

struct Viewer(Client);

impl Session<UnitCounts> for Viewer {
    fn handle(&mut self, event: Event<'_>, context: &mut Context<'_, UnitCounts>) {
        if let Event::Bytes(bytes) = event {
            context.world.bytes += bytes.len() as u64;
            let world = &mut *context.world;
            let mut plays = false;
            let heard = self.0.input(bytes, &mut |event| match event {
                ClientEvent::Playing => plays = true,
                ClientEvent::Media(_) => world.messages += 1,
                _ => {}
            });
            if let Err(error) = heard {
                eprintln!("{error}");
                return context.close();
            }
            if plays {
                context.world.playing += 1;
                context.set_low_water(16 * 1024);
            }
        }
        let words = std::mem::take(self.0.output());
        if !words.is_empty() {
            context.send(&words);
        }
        if let Event::Closed { failure, words } = event {
            eprintln!("{failure:?} {words}");
        }
    }
}

/// A reader of a service, by its number.
struct Reader(usize, bool);

impl Session<UnitCounts> for Reader {
    fn handle(&mut self, event: Event<'_>, context: &mut Context<'_, UnitCounts>) {
        match event {
            Event::Connected => {
                context.set_low_water(16 * 1024);
                context
                    .send(format!("GET /{}.ts?decode=1 HTTP/1.1\r\nHost: weir\r\n\r\n", self.0).as_bytes());
            }
            Event::Bytes(bytes) => {
                if !std::mem::replace(&mut self.1, true) {
                    context.world.playing += 1;
                }
                context.world.bytes += bytes.len() as u64;
            }
            Event::Closed { failure, words } => eprintln!("{failure:?} {words}"),
            _ => {}
        }
    }
}

fn publish(address: SocketAddr) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    let url = format!("rtmp://{address}/live");
    let mut client = Client::new(ClientOptions::publish(url, "live", "load"), 7);
    let mut begun = false;
    let mut buffer = [0; 65_536];
    while !begun {
        stream.write_all(&std::mem::take(client.output()))?;
        let n = stream.read(&mut buffer)?;
        client
            .input(&buffer[..n], &mut |event| begun |= matches!(event, ClientEvent::Publishing))
            .map_err(std::io::Error::other)?;
    }
    let began = Instant::now();
    let mut payload = Vec::new();
    flv::avc_sequence_header(&[1, 100, 0, 30, 255], &mut payload);
    client.send(MediaKind::Video, 0, &payload).map_err(std::io::Error::other)?;
    // 25 video and 43 audio messages a second, 432 bytes each on average.
    for n in 0_u32.. {
        let at = Duration::from_secs(1) * n / 68;
        std::thread::sleep(at.saturating_sub(began.elapsed()));
        payload.clear();
        let kind = if n % 68 * 25 % 68 < 25 { MediaKind::Video } else { MediaKind::Audio };
        match kind {
            MediaKind::Video => flv::avc_frame(n % 136 < 3, 0, &[9; 855], &mut payload),
            _ => payload.extend([0xAF; 180]),
        }
        client.send(kind, at.as_millis() as u32, &payload).map_err(std::io::Error::other)?;
        stream.write_all(&std::mem::take(client.output()))?;
    }
    Ok(())
}

/// CPU seconds, of all threads, and resident kilobytes of a process.
fn process(pid: u32) -> std::io::Result<(f64, f64)> {
    let cpu = std::fs::read_dir(format!("/proc/{pid}/task"))?
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok())
        .filter_map(|line| line.split(' ').next()?.parse::<f64>().ok())
        .sum::<f64>();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
    Ok((cpu / 1e9, memory.and_then(|kb| kb.parse().ok()).unwrap_or_default()))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let (words, services) = match &words[..] {
        [words @ .., services] if words.len() == 4 => (words, services.parse::<usize>()?),
        words => (words, 0),
    };
    let [address, pid, viewers, seconds] = words else {
        return Err("load ADDRESS PID VIEWERS SECONDS [SERVICES]".into());
    };
    let address: SocketAddr = address.parse()?;
    let (pid, viewers, seconds) = (pid.parse()?, viewers.parse::<usize>()?, seconds.parse()?);
    if services == 0 {
        std::thread::spawn(move || publish(address));
    }
    std::thread::sleep(Duration::from_secs(3));
    let (_, empty) = process(pid)?;
    let mut shard = Shard::new(UnitCounts::default())?;
    let options = Arc::new(ClientOptions::play(format!("rtmp://{address}/live"), "live", "load"));
    let endpoint = Endpoint::tcp(address);
    for n in 0..viewers {
        let session: Box<dyn Session<UnitCounts>> = if services > 0 {
            Box::new(Reader(n % services + 1, false))
        } else {
            Box::new(Viewer(Client::new(options.clone(), n as u64)))
        };
        shard.open(&endpoint, session)?;
        if n % 100 == 99 {
            shard.turn(clock::now() + Duration::from_millis(20))?;
        }
    }
    let settled = clock::now() + Duration::from_secs(4);
    while clock::now() < settled || shard.world.playing < viewers {
        shard.turn(clock::now() + Duration::from_millis(100))?;
        if clock::now() > settled + Duration::from_secs(30) {
            return Err(format!("only {} of {viewers} play", shard.world.playing).into());
        }
    }
    shard.world = UnitCounts { playing: shard.world.playing, ..UnitCounts::default() };
    let ((cpu, _), own, began) = (process(pid)?, process(std::process::id())?.0, Instant::now());
    let end = clock::now() + Duration::from_secs(seconds);
    while clock::now() < end {
        shard.turn(end)?;
    }
    let ((cpu_then, memory), own_then) = (process(pid)?, process(std::process::id())?.0);
    let took = began.elapsed().as_secs_f64();
    let share = |cpu: f64| cpu * 1_000.0 / took / viewers as f64;
    let UnitCounts { bytes, messages, .. } = shard.world;
    println!(
        "{viewers} viewers: {:.4} ms CPU a viewer-second, {:.1} kB a viewer ({memory:.0} kB in all); each \
         {:.3} Mbit/s, {:.1} messages/s; the load itself {:.4} ms",
        share(cpu_then - cpu),
        (memory - empty) / viewers as f64,
        bytes as f64 * 8.0 / 1e6 / took / viewers as f64,
        messages as f64 / took / viewers as f64,
        share(own_then - own),
    );
    Ok(())
}
