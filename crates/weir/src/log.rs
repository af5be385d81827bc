//! The clients' dialogues with servers on stderr, to find out what goes wrong: `-vv`, or `WEIR_LOG`.

use crate::args::Verb;
use std::sync::atomic::{AtomicBool, Ordering};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use weir_runner::{ErrorKind, RunError};

/// What can be shown: the steps that every client takes, and the dialogues of protocols. The libraries that weir uses
/// have targets of their own, and may say there what is secret: those are never shown.
const TARGETS: [&str; 5] = ["client", "http", "mqtt", "rtc", "rtmp"];

/// Where to say what is to be shown.
const VARIABLE: &str = "WEIR_LOG";

static IS_ON: AtomicBool = AtomicBool::new(false);

/// Whether dialogues go to stderr, where nothing may be drawn over itself then.
pub(crate) fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// Begins to show what `WEIR_LOG` asks for, or else `-vv`.
pub(crate) fn begin(verb: &Verb) -> Result<(), RunError> {
    let verbose = match verb {
        Verb::Play(args) => args.run.verbose,
        Verb::Publish(args) => args.run.verbose,
        Verb::Run(args) => args.run.verbose,
        Verb::Capacity(args) => args.run.verbose,
        Verb::Sweep(args) => args.run.verbose,
        Verb::Demo(args) => args.run.verbose,
        _ => 0,
    };
    let asked = match std::env::var_os(VARIABLE).filter(|text| !text.is_empty()) {
        Some(text) => {
            targets(&text.to_string_lossy()).map_err(|cause| RunError::new(ErrorKind::Usage, cause))?
        }
        None if verbose > 1 => Targets::new().with_targets(TARGETS.map(|name| (name, LevelFilter::DEBUG))),
        None => return Ok(()),
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        // The subscriber would report that the terminal is closed, to the closed terminal.
        .log_internal_errors(false)
        .with_timer(tracing_subscriber::fmt::time::uptime());
    tracing_subscriber::registry().with(lines).with(asked).init();
    IS_ON.store(true, Ordering::Relaxed);
    Ok(())
}

/// Reads what is asked for: a level for all, or `TARGET=LEVEL` by commas.
fn targets(text: &str) -> Result<Targets, String> {
    let usage = || {
        format!(
            "{VARIABLE}={text}: give a level (debug, off), or a level each for some of {} by commas: rtc=debug,client=debug",
            TARGETS.join(", ")
        )
    };
    let asked: Targets = text.parse().map_err(|_| usage())?;
    if asked.iter().any(|(name, _)| !TARGETS.contains(&name)) {
        return Err(usage());
    }
    let level = |name| {
        let own = asked.iter().find(|(asked, _)| *asked == name).map(|(_, level)| level);
        (name, own.or(asked.default_level()).unwrap_or(LevelFilter::OFF))
    };
    Ok(Targets::new().with_targets(TARGETS.map(level)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    #[test]
    fn what_is_asked_for_is_shown_and_nothing_of_libraries() {
        for (text, rtc, rtmp, library) in [
            ("debug", true, true, false),
            ("rtc=debug", true, false, false),
            ("info,rtmp=debug", false, true, false),
            ("off", false, false, false),
            ("", false, false, false),
        ] {
            let targets = targets(text).unwrap();
            let shown = ["rtc", "rtmp", "rustls"].map(|name| targets.would_enable(name, &Level::DEBUG));
            assert_eq!(shown, [rtc, rtmp, library], "{text}");
        }
        for wrong in ["rtcc=debug", "rtc=loud", "rtc=debug,=", "weir::x=debug"] {
            assert!(targets(wrong).unwrap_err().starts_with("WEIR_LOG="), "{wrong}");
        }
    }
}
