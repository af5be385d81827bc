//! A child process that does what it is told: this very test executable, started again under a name of its
//! own, taking commands on its standard input.

use std::fmt::Display;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{env, thread};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use tempfile::TempDir;
use weir_observe::{Sampler, Watch};

/// A running puppet; it ends when it is dropped.
pub(crate) struct Puppet {
    child: Child,
    replies: mpsc::Receiver<String>,
    name: String,
    directory: TempDir,
    grandchildren: Vec<u32>,
}

impl Puppet {
    pub(crate) fn start() -> Self {
        Self::start_by(&[])
    }

    /// Starts another one of the same name, which is not of its family.
    pub(crate) fn twin(&self) -> Self {
        Self::start_named(&[], self.name.clone())
    }

    /// Starts a puppet through another program, as `unshare --net` is.
    pub(crate) fn start_by(wrapper: &[&str]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("pup{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Self::start_named(wrapper, name)
    }

    fn start_named(wrapper: &[&str], name: String) -> Self {
        let directory = tempfile::tempdir().unwrap();
        symlink(env::current_exe().unwrap(), directory.path().join(&name)).unwrap();
        let (child, replies) = start(wrapper, &directory, &name);
        Self { child, replies, name, directory, grandchildren: Vec::new() }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn sampler(&self) -> Sampler {
        Sampler::new([Watch::Pid(self.pid())]).unwrap()
    }

    /// Sends a command and waits until it is done.
    pub(crate) fn tell(&mut self, command: impl Display) -> String {
        writeln!(self.child.stdin.as_mut().unwrap(), "{command}").unwrap();
        self.replies.recv_timeout(Duration::from_secs(60)).expect("the puppet answers")
    }

    /// Lets the puppet listen on a port that has no connections of a listener before it, and returns that port.
    pub(crate) fn listen(&mut self, address: &str) -> u16 {
        let port = weir_testing::free_port();
        self.tell(format_args!("listen {address} {port}"));
        port
    }

    /// Lets the puppet start a process of its own, and returns its pid.
    pub(crate) fn bear_child(&mut self) -> u32 {
        let pid = self.tell("bear").parse().unwrap();
        self.grandchildren.push(pid);
        pid
    }

    /// Ends the puppet, and leaves its children alone.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again, under the same name.
    pub(crate) fn restart(&mut self) {
        (self.child, self.replies) = start(&[], &self.directory, &self.name);
    }
}

impl Drop for Puppet {
    fn drop(&mut self) {
        // Both fail if it has ended, which is as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
        for pid in self.grandchildren.drain(..) {
            kill(pid);
        }
    }
}

pub(crate) fn kill(pid: u32) {
    let pid = Pid::from_raw(pid.try_into().unwrap()).unwrap();
    let _ = kill_process(pid, Signal::KILL);
}

fn start(wrapper: &[&str], directory: &TempDir, name: &str) -> (Child, mpsc::Receiver<String>) {
    let program = directory.path().join(name);
    let mut command = match wrapper {
        [] => Command::new(program),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
    };
    command.args(["--exact", "puppet::stage", "--ignored", "--nocapture", "--test-threads=1"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let (sender, replies) = mpsc::channel();
    thread::spawn(move || {
        // The test harness of the child prints lines of its own.
        for line in output.lines().map_while(Result::ok) {
            if let Some((_, reply)) = line.split_once("reply: ") {
                let _ = sender.send(reply.to_owned());
            }
        }
    });
    assert_eq!(replies.recv_timeout(Duration::from_secs(60)).unwrap(), "ready");
    (child, replies)
}

/// The puppet's side. Started by [`Puppet`] only.
#[test]
#[ignore = "the child process of the other tests"]
fn stage() {
    let mut memory = Vec::new();
    println!("reply: ready");
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        let reply = match words[..] {
            ["burn", name, share, seconds] => burn(name, share.parse().unwrap(), seconds.parse().unwrap()),
            ["touch", mebibytes] => {
                memory.push(vec![1u8; mebibytes.parse::<usize>().unwrap() << 20]);
                memory.len().to_string()
            }
            ["listen", address, port] => listen(address, port.parse().unwrap()),
            ["nap", times] => {
                (0..times.parse().unwrap()).for_each(|_: u32| thread::sleep(Duration::from_millis(1)));
                times.to_owned()
            }
            ["open", files] => {
                let open = |_: u32| std::mem::forget(std::fs::File::open("/dev/null").unwrap());
                (0..files.parse().unwrap()).for_each(open);
                files.to_owned()
            }
            ["bear"] => bear(),
            ["starve", pid] => starve(pid.parse().unwrap()),
            ["exit"] => std::process::exit(0),
            _ => panic!("unknown command {line}"),
        };
        println!("reply: {reply}");
    }
}

/// Burns a share of a core on a thread of this name, and says how much CPU time that thread and this
/// process used for it. The thread stays, so that it can be seen.
fn burn(name: &str, share: f64, seconds: f64) -> String {
    let (sender, receiver) = mpsc::channel();
    let process = cpu_seconds(ClockId::ProcessCPUTime);
    let burner = move || {
        let start = Instant::now();
        while start.elapsed().as_secs_f64() < seconds {
            let slice = Instant::now();
            while slice.elapsed() < Duration::from_secs_f64(0.02 * share) {
                std::hint::spin_loop();
            }
            thread::sleep(Duration::from_secs_f64(0.02 * (1.0 - share)));
        }
        sender.send(cpu_seconds(ClockId::ThreadCPUTime)).unwrap();
        loop {
            thread::park();
        }
    };
    thread::Builder::new().name(name.to_owned()).spawn(burner).unwrap();
    let thread = receiver.recv().unwrap();
    format!("{thread} {}", cpu_seconds(ClockId::ProcessCPUTime) - process)
}

fn cpu_seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Listens, and accepts everything.
fn listen(address: &str, port: u16) -> String {
    let listener = TcpListener::bind((address, port)).unwrap();
    thread::spawn(move || listener.incoming().collect::<Vec<_>>());
    port.to_string()
}

/// Starts a process that outlives this one by a minute at most.
fn bear() -> String {
    Command::new("sleep").arg("60").spawn().unwrap().id().to_string()
}

/// Watches a process, then with no descriptor left, then as before, and says what it saw.
fn starve(pid: u32) -> String {
    let mut sampler = Sampler::new([Watch::Pid(pid)]).unwrap();
    let mut samples = vec![sampler.sample(0)];
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(0), ..limit }).unwrap();
    samples.push(sampler.sample(100_000_000_000));
    setrlimit(Resource::Nofile, limit).unwrap();
    samples.push(sampler.sample(200_000_000_000));
    serde_json::to_string(&samples).unwrap()
}
