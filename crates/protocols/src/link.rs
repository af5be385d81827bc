//! A link of each viewer that is narrower than the machine's, as protocols with `--bandwidth` model it.

use crate::given::Given;
use clap::Args;
use std::time::Duration;
use weir_clients::WorkloadError;
use weir_clients::rtc::LinkOptions;
use weir_metrics::{BitRate, parse_duration};
use weir_setting::{BANDWIDTH, QUEUE as QUEUE_OF_LINK};

/// How narrow a viewer's link is.
#[derive(Args)]
#[command(next_help_heading = "Viewers")]
pub(crate) struct Bandwidth {
    /// Each viewer's link is as narrow as this. By HLS it reads no faster, on one connection, and `--variant auto` sees what that is worth; by
    /// WebRTC packets wait in a queue (`--queue`), or find it full, and the server is told
    #[arg(long, value_name = "RATE", value_parser = bandwidth)]
    pub(crate) bandwidth: Option<BitRate>,
}

/// What may wait for it.
#[derive(Args)]
#[command(next_help_heading = "WebRTC")]
pub(crate) struct Queue {
    /// With --bandwidth: how long packets wait in front of a viewer's link at the most; those that would wait longer are dropped, and never
    /// counted as lost [default: 200ms]
    #[arg(long, value_name = "TIME", value_parser = queue)]
    queue: Option<Duration>,
}

/// "Bottleneck queue size" of the congestion control test cases of RFC 8867, section 4.1, is 300 ms; most home routers have less.
const QUEUE: Duration = Duration::from_millis(200);

/// A link that brings less than one packet a second brings no session about.
const LEAST: f64 = 8_000.0;

/// Longer than any player waits.
const LONGEST_QUEUE: Duration = Duration::from_secs(10);

fn bandwidth(text: &str) -> Result<BitRate, String> {
    let rate = text.parse::<BitRate>().map_err(|error| error.to_string())?;
    if rate.bps() < LEAST {
        return Err("over such a link nothing is played: give 8kbps or more".to_owned());
    }
    Ok(rate)
}

fn queue(text: &str) -> Result<Duration, String> {
    let queue = parse_duration(text).map_err(|error| error.to_string())?;
    if !(Duration::from_millis(1)..=LONGEST_QUEUE).contains(&queue) {
        return Err("a queue is 1ms to 10s long".to_owned());
    }
    Ok(queue)
}

/// Whether viewers with these options have a link of their own that is narrow.
pub fn is_narrow(given: &Given) -> bool {
    !given.texts("bandwidth").is_empty()
}

/// The link of viewers to whom packets are sent.
///
/// # Errors
/// A queue in front of no link.
pub(crate) fn options(given: &Given) -> Result<Option<LinkOptions>, WorkloadError> {
    let (Bandwidth { bandwidth }, Queue { queue }) = (given.read()?, given.read()?);
    match (bandwidth, queue) {
        (None, Some(_)) => Err(WorkloadError::Options(format!(
            "{} is that of a narrow link: give {} as well",
            QUEUE_OF_LINK.beside_flag(" (`queue`)"),
            BANDWIDTH.beside_flag(" (`bandwidth`)")
        ))),
        (None, None) => Ok(None),
        (Some(rate), queue) => Ok(Some(LinkOptions { rate, queue: queue.unwrap_or(QUEUE) })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_has_a_queue_and_a_queue_a_link() {
        let given = |pairs: &[(&str, &str)]| {
            let given = pairs.iter().fold(Given::default(), |given, (name, text)| given.with(name, *text));
            options(&given).map_err(|error| error.to_string())
        };
        assert_eq!(given(&[]), Ok(None));
        let link = |queue| {
            let queue = Duration::from_millis(queue);
            Ok(Some(LinkOptions { rate: BitRate::from_kbps(2_000), queue }))
        };
        assert_eq!(given(&[("bandwidth", "2mbps")]), link(200));
        assert_eq!(given(&[("bandwidth", "2mbps"), ("queue", "1s")]), link(1_000));
        assert!(given(&[("queue", "1s")]).unwrap_err().contains("give `bandwidth`"));
        for (name, text, words) in [
            ("bandwidth", "1kbps", "give 8kbps or more"),
            ("bandwidth", "fast", "is not a bit rate"),
            ("queue", "0s", "1ms to 10s"),
            ("queue", "1m", "1ms to 10s"),
        ] {
            let wrong = given(&[("bandwidth", "2mbps"), (name, text)]).unwrap_err();
            assert!(wrong.contains(words), "{name} {text}: {wrong}");
        }
    }
}
