//! What the tests stand on: planned starts, a shard with clients, nginx with its RTMP module.
#![allow(dead_code, unreachable_pub)]

pub mod dialogue;
pub mod transport;

use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use weir_clients::{Ending, PlannedStart, ShardRecorder, Turn, Workload};
use weir_metrics::Recorder;
use weir_shard::{SessionId, Shard, clock};
use weir_testing::free_port;

/// A shard on the test's own thread, with one recorder a workload.
pub struct Bench<'w> {
    pub shard: Shard<ShardRecorder>,
    workloads: Vec<&'w Workload>,
    running: Vec<SessionId>,
}

impl<'w> Bench<'w> {
    pub fn new(workloads: Vec<&'w Workload>) -> Self {
        let shard = ShardRecorder::new(workloads.iter().map(|workload| workload.schema)).keeping_endings();
        Self { shard: Shard::new(shard).unwrap(), workloads, running: Vec::new() }
    }

    /// Starts clients now; the sessions of those whose link could be begun.
    pub fn start(&mut self, workload: u16, clients: std::ops::Range<u32>) -> Vec<SessionId> {
        let mut started = Vec::new();
        for client in clients {
            let now = clock::now();
            let planned = PlannedStart { client, workload, cell: workload, at: now, turn: Turn::default() };
            let made = self.workloads[usize::from(workload)];
            let session = made.start(planned, now, &mut self.shard.world);
            started.extend(self.shard.open(made.endpoint(client), session));
        }
        self.running.extend(&started);
        started
    }

    pub fn run(&mut self, span: Duration) {
        let end = clock::now() + span;
        while clock::now() < end {
            self.shard.turn(end).unwrap();
        }
    }

    /// Turns until `done` says so; fails the test after `limit`.
    pub fn run_until(
        &mut self,
        limit: Duration,
        what: &str,
        mut done: impl FnMut(&mut ShardRecorder) -> bool,
    ) {
        let end = clock::now() + limit;
        while !done(&mut self.shard.world) {
            if clock::now() >= end {
                let (ended, remarks) = (self.shard.world.take_ended(), self.shard.world.take_failures());
                panic!("not in {limit:?}: {what}; ended: {ended:?}; {remarks:?}");
            }
            self.shard.turn(clock::now() + Duration::from_millis(20)).unwrap();
        }
    }

    /// Stops all clients; their figures, and how the planned starts ended.
    pub fn stop(mut self) -> (Vec<Recorder>, Vec<(PlannedStart, Ending)>, ShardRecorder) {
        for id in std::mem::take(&mut self.running) {
            self.shard.stop(id);
        }
        assert!(self.shard.is_empty());
        let mut shard = self.shard.world;
        (shard.take_figures(), shard.take_ended(), shard)
    }
}

/// nginx with libnginx-mod-rtmp on a free port, ended with the test.
pub struct Nginx {
    child: Child,
    pub port: u16,
    _directory: tempfile::TempDir,
}

impl Nginx {
    /// Starts it with an application `live` that has these directives as well.
    pub fn start(directives: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let port = free_port();
        let path = directory.path().display();
        let module = "/usr/lib/nginx/modules/ngx_rtmp_module.so";
        assert!(
            std::path::Path::new(module).exists(),
            "{module} is missing; apt-get install nginx libnginx-mod-rtmp"
        );
        let configuration = format!(
            "load_module {module};
             daemon off; worker_processes 1; pid {path}/pid; error_log {path}/error.log notice;
             events {{ worker_connections 4096; }}
             rtmp {{ access_log off; server {{ listen 127.0.0.1:{port}; chunk_size 4096;
                 application live {{ live on; {directives} }}
             }} }}"
        );
        let file = directory.path().join("nginx.conf");
        std::fs::write(&file, configuration).unwrap();
        let child = Command::new("/usr/sbin/nginx")
            .arg("-c")
            .arg(&file)
            .arg("-e")
            .arg(directory.path().join("start.log"))
            .stdin(Stdio::null())
            .spawn()
            .expect("nginx is missing; apt-get install nginx libnginx-mod-rtmp");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let patience = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(patience.elapsed() < Duration::from_secs(60), "nginx does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { child, port, _directory: directory }
    }

    pub fn url(&self, stream: &str) -> String {
        format!("rtmp://127.0.0.1:{}/live/{stream}", self.port)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // TERM lets the master end its workers; KILL would orphan them.
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let _ = self.child.wait();
    }
}
