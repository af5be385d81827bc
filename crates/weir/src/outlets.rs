//! `--live` and `--push-metrics`: where a run can be seen while it goes on. Without these flags nothing is started, and
//! nothing here costs anything.

use crate::listen::listen_address;
use crate::print::note;
use crate::push::{Late, pusher};
use clap::{Args, ValueHint};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use weir_live::{Board, Listener, Look, Part, Pusher};
use weir_report::{page_script, page_style};
use weir_runner::{ErrorKind, RunError};

/// How long weir waits at its end for the receiver of the last metrics.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// What can be seen of a run while it goes on.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "While it runs")]
pub(crate) struct LiveOptions {
    /// Show the report as it grows on a page, whose address is printed, and answer Prometheus there under /metrics; a port
    /// alone is on 127.0.0.1 [default address: a free port of 127.0.0.1]
    #[arg(long, value_name = "[HOST]:PORT", num_args = 0..=1, require_equals = true,
          default_missing_value = "127.0.0.1:0", value_parser = listen_address)]
    pub(crate) live: Option<SocketAddr>,
    /// Send the same metrics to a server every 5 s and at the end, by Prometheus' remote write: http://127.0.0.1:9090 for a
    /// Prometheus, which takes them with --web.enable-remote-write-receiver
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) push_metrics: Option<String>,
}

/// A listener, a receiver of metrics, or both.
pub(crate) struct Outlets {
    board: Arc<Board>,
    listener: Option<Listener>,
    pusher: Option<Pusher>,
    late: Late,
}

impl Outlets {
    /// Those that were asked for, if any; where the page is has been printed.
    ///
    /// # Errors
    /// The address is taken, or the URL is malformed.
    pub(crate) fn open(options: &LiveOptions, name: &str) -> Result<Option<Self>, RunError> {
        let board = Arc::<Board>::default();
        let late = Late::default();
        let push = |url| pusher(url, board.clone(), late.clone());
        let pusher = options.push_metrics.as_deref().map(push).transpose()?;
        let listener = options.live.map(|address| listen(address, name, board.clone())).transpose()?;
        let is_asked_for = pusher.is_some() || listener.is_some();
        Ok(is_asked_for.then_some(Self { board, listener, pusher, late }))
    }

    /// What metrics are made of.
    pub(crate) fn board(&self) -> &Board {
        &self.board
    }

    /// Sends metrics now: a run has begun.
    pub(crate) fn push(&self) {
        self.pusher.iter().for_each(Pusher::push);
    }

    /// Whether somebody looks at the page who has seen all that there is.
    pub(crate) fn wants_body(&self) -> bool {
        self.listener.as_ref().is_some_and(Listener::wants_body)
    }

    /// The page's body is what `render` makes, on the listener's thread.
    pub(crate) fn show(&self, render: impl FnOnce() -> Vec<Part> + Send + 'static) {
        if let Some(listener) = &self.listener {
            listener.show(render);
        }
    }

    /// All is over, and this is how. The last metrics are on their way when this returns.
    pub(crate) fn end(&self, words: &str) {
        self.listener.iter().for_each(|listener| listener.end(words));
        self.pusher.iter().for_each(Pusher::push_last);
    }
}

impl Drop for Outlets {
    fn drop(&mut self) {
        if let Some(pusher) = self.pusher.take() {
            pusher.finish(CLOSE_TIMEOUT);
        }
        let late = self.late.lock().unwrap_or_else(PoisonError::into_inner).take();
        late.into_iter().for_each(note);
    }
}

fn listen(address: SocketAddr, name: &str, board: Arc<Board>) -> Result<Listener, RunError> {
    let title = format!("weir live · {name}");
    let look = Look { title: &title, style: page_style(), script: page_script() };
    let listener = Listener::start(address, look, board)
        .map_err(|error| RunError::new(ErrorKind::Usage, format!("--live {error}")))?;
    // A closed terminal shows no error either.
    note(format_args!("live: {}", listener.page()));
    Ok(listener)
}

/// `--live ADDR` as `--live=ADDR`, so that a URL behind a bare `--live` stays a URL. What looks like an address is joined
/// though it is not a URL, so that the error names `--live` and not the URL.
pub(crate) fn live_address_joined(arguments: Vec<OsString>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::new();
    for argument in arguments {
        let is_address = argument.to_str().is_some_and(looks_like_address);
        match joined.last_mut() {
            Some(last) if is_address && *last == "--live" => {
                last.push("=");
                last.push(argument);
            }
            _ => joined.push(argument),
        }
    }
    joined
}

/// Whether it is a port, or ends with one and is no URL.
fn looks_like_address(text: &str) -> bool {
    let port = text.rsplit_once(':').map_or(text, |(_, port)| port);
    !text.contains('/') && !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_behind_live_is_its_own_and_a_url_is_not() {
        let joined = |text: &str| live_address_joined(text.split(' ').map(OsString::from).collect());
        assert_eq!(joined("play --live :9100 rtmp://h/a/b"), ["play", "--live=:9100", "rtmp://h/a/b"]);
        assert_eq!(joined("play --live 19453 rtmp://h/a/b"), ["play", "--live=19453", "rtmp://h/a/b"]);
        assert_eq!(joined("play --live [::]:9100"), ["play", "--live=[::]:9100"]);
        assert_eq!(joined("play --live somehost:9100"), ["play", "--live=somehost:9100"]);
        assert_eq!(joined("play --live rtmp://h/a/b"), ["play", "--live", "rtmp://h/a/b"]);
        assert_eq!(joined("play --live rtmp://h:1935"), ["play", "--live", "rtmp://h:1935"]);
        assert_eq!(joined("run --live load.yaml"), ["run", "--live", "load.yaml"]);
        assert_eq!(joined("--live --live"), ["--live", "--live"]);
    }
}
