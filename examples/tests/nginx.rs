//! nginx with its RTMP module, as it would be released: is what we promise of it still true?

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;
use weir_runner::{Capacity, Run, RunError, Summary};

/// An nginx on a port of its own; it ends with the test.
struct Nginx {
    child: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Nginx {
    /// With this many connections at the most.
    fn start(connections: u32) -> std::io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let file = folder.path().join("nginx.conf");
        std::fs::write(&file, configuration(folder.path(), connections, port))?;
        let log = folder.path().join("error.log");
        let child = Command::new("/usr/sbin/nginx").arg("-c").arg(&file).arg("-e").arg(&log).spawn()?;
        let nginx = Self { child, port, _folder: folder };
        for _ in 0..1_000 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok(nginx);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(std::io::Error::other("nginx listens nowhere after 10 s"))
    }

    fn url(&self) -> String {
        format!("rtmp://127.0.0.1:{}/live/a", self.port)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn configuration(folder: &Path, connections: u32, port: u16) -> String {
    format!(
        "load_module /usr/lib/nginx/modules/ngx_rtmp_module.so; daemon off; master_process off; pid {}/pid;
         events {{ worker_connections {connections}; }}
         rtmp {{ server {{ listen 127.0.0.1:{port}; application live {{ live on; }} }} }}",
        folder.display()
    )
}

/// Runs it once more where something else had the machine.
fn believed(run: &Run) -> Result<Summary, RunError> {
    for _ in 1..3 {
        let summary = run.clone().run()?;
        if summary.can_be_believed() {
            return Ok(summary);
        }
    }
    run.clone().run()
}

#[test]
fn twenty_viewers_have_all_of_the_stream() -> Result<(), RunError> {
    let nginx = Nginx::start(200).expect("nginx and libnginx-mod-rtmp are installed");
    let run = Run::publish(nginx.url())
        .option("bitrate", "500kbps")
        .hold(Duration::from_secs(8))
        .and_play(nginx.url())
        .clients(20)
        .delay(Duration::from_secs(2))
        .hold(Duration::from_secs(5))
        .threshold("bitrate.ratio >= 90%")?;
    believed(&run)?.assert_passed();
    Ok(())
}

#[test]
fn it_carries_as_many_viewers_as_it_has_connections_for() -> Result<(), RunError> {
    // Of 40, one is the publisher's and one the listener's: 38 are left.
    let nginx = Nginx::start(40).expect("nginx and libnginx-mod-rtmp are installed");
    let stream =
        Run::publish(nginx.url()).option("bitrate", "235kbps").option("gop", "500ms").hold(Duration::ZERO);
    let viewers = stream.and_play(nginx.url()).delay(Duration::from_secs(1));
    let search = Capacity::of(viewers).slice(Duration::from_secs(1)).budget(Duration::from_secs(100));
    let mut found = search.clone().find()?;
    if found.answer.bounds.lower.is_none() {
        // Something else had the machine all the while.
        found = search.find()?;
    }
    let bounds = &found.answer.bounds;
    assert!(bounds.lower.is_some_and(|carried| (10..=38).contains(&carried)), "{bounds:?}");
    // The climb goes from 10 by way of 20 to 40.
    assert!(bounds.upper.is_some_and(|refused| refused <= 40), "{bounds:?}");
    Ok(())
}
