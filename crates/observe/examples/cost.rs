//! What a sample costs: `cargo run --release -p weir-observe --example cost`.
//!
//! Watches a child process that holds threads and connections. CPU time of the sampling thread, median of
//! 100 samples, by the part that is watched; the clock that is passed in makes costly readings due, or not.

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use weir_observe::{Sampler, Watch};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let hard = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: hard, maximum: hard })?;
    if let Some(threads) = std::env::args().nth(1) {
        return target(threads.parse()?);
    }
    println!("threads  connections  host and weir  + target  + connections and census");
    for (threads, connections) in [(1, 0), (20, 0), (20, 1_000), (20, 8_000), (200, 0)] {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(threads.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        let port: u16 = line.trim().parse()?;
        let streams = (0..connections).map(|_| TcpStream::connect(("127.0.0.1", port)));
        let streams = streams.collect::<std::io::Result<Vec<_>>>()?;

        let mut nothing = Sampler::new([])?;
        let bare = median(|_| drop(nothing.sample(0)));
        let mut sampler = Sampler::new([Watch::Pid(child.id())])?;
        sampler.sample(0);
        let cheap = median(|_| drop(sampler.sample(0)));
        let dear = median(|round| drop(sampler.sample((round + 1) * 1_000_000_000_000)));
        let [bare, cheap, dear] = [bare, cheap, dear].map(|cost| cost.as_micros());
        println!("{threads:7}  {connections:11}  {bare:10} µs  {cheap:5} µs  {dear:21} µs");
        drop(streams);
        child.kill()?;
        child.wait()?;
    }
    Ok(())
}

/// The child: `threads` threads, and a listener that keeps what it accepts.
fn target(threads: usize) -> Result<()> {
    for _ in 1..threads {
        std::thread::spawn(|| {
            loop {
                std::thread::park();
            }
        });
    }
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?.port());
    let streams: Vec<_> = listener.incoming().collect();
    drop(streams);
    Ok(())
}

/// The median CPU time of 100 rounds.
fn median(mut work: impl FnMut(u64)) -> Duration {
    let cpu = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let mut costs: Vec<Duration> = (0..100)
        .map(|round| {
            let before = cpu();
            work(round);
            cpu() - before
        })
        .collect();
    costs.sort_unstable();
    costs[costs.len() / 2]
}
