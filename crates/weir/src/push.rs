//! `--push-metrics`: where metrics are sent, and as what.

use crate::print::note;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use weir_http::{Http, HttpAddress, HttpError, shown_text};
use weir_live::{Board, Push, Pusher};
use weir_runner::machine::trust;
use weir_runner::{ErrorKind, RunError};

/// Where Prometheus takes what it is sent, below its address.
const WRITE: &str = "api/v1/write";

/// A line that a terminal shows when nothing is drawn on it any more.
pub(crate) type Late = Arc<Mutex<Option<String>>>;

/// Sends a board's metrics to this URL from now on. What goes wrong is a line on stderr, or on a terminal, which a run draws on,
/// in `late`.
///
/// # Errors
/// It is no URL, or the system has no certificates or thread.
pub(crate) fn pusher(url: &str, board: Arc<Board>, late: Late) -> Result<Pusher, RunError> {
    let address = address(url)?;
    let http = Http::new(&address, &trust(false, None))
        .map_err(|error| RunError::new(ErrorKind::Usage, format!("--push-metrics {address}: {error}")))?;
    let machine = rustix::system::uname();
    let machine = machine.nodename().to_string_lossy().into_owned();
    let labels = [("job", "weir"), ("instance", machine.as_str())];
    let place = address.to_string();
    let send = move |push: Push| http.send(&address, &push.head, &push.body).map_err(words);
    let warn = move |error: &str| {
        let line = format!("weir: note: --push-metrics {place}: {error}; the run does not wait for it");
        if std::io::stderr().is_terminal() {
            *late.lock().unwrap_or_else(PoisonError::into_inner) = Some(line);
        } else {
            note(line);
        }
    };
    Pusher::start(board, &labels, send, warn)
        .map_err(|error| RunError::new(ErrorKind::Internal, format!("--push-metrics: {error}")))
}

fn address(url: &str) -> Result<HttpAddress, RunError> {
    let address = HttpAddress::parse(url).ok_or_else(|| {
        let line = format!(
            "--push-metrics '{}' is no URL of a server; write http://127.0.0.1:9090/{WRITE}",
            shown_text(url)
        );
        RunError::new(ErrorKind::Usage, line)
    })?;
    Ok(if address.is_bare() { address.below(WRITE) } else { address })
}

/// What is wrong, and where Prometheus is what answers, what to do.
fn words(error: HttpError) -> String {
    match error {
        HttpError::Status { status: 404, .. } => {
            "HTTP status 404 (not found): check the path; a Prometheus takes metrics at /api/v1/write if it was started with \
             --web.enable-remote-write-receiver"
                .to_owned()
        }
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_a_path_is_a_prometheus() {
        let shown = |url: &str| address(url).unwrap().to_string();
        assert_eq!(shown("http://h:9090"), "http://h:9090/api/v1/write");
        assert_eq!(shown("https://me:secret@h/api/v1/push"), "https://h/api/v1/push");
    }

    #[test]
    fn what_is_no_url_is_one_line_without_its_secrets() {
        let Err(failure) = address("htp://me:s3cr3t@h") else { panic!("it is no URL of a server") };
        let line = failure.to_string();
        assert!(line.starts_with("--push-metrics 'htp://h' is no URL of a server; write http://"), "{line}");
    }
}
