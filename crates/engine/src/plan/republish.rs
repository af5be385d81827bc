//! How often a publisher stops and comes back: `every:60s`, or `every:60s,pause:1s`.

use crate::plan::lifetime::Lifetime;
use crate::scenario::as_text::as_text;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use weir_metrics::parse_duration;

/// How long a publisher is away unless said otherwise: RTMP viewers wait for two seconds after a server has told them that
/// their stream has ended, and a publisher needs some of it to begin.
const USUAL_PAUSE: Duration = Duration::from_secs(1);
/// Shortest time that is published: a publisher needs some round trips to begin.
const SHORTEST: Duration = Duration::from_secs(1);

/// A publisher that stops and comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Republish {
    /// From one beginning to the next.
    every: Duration,
    /// How much of it the publisher is away.
    pause: Duration,
}

/// A text that says of no publisher when it comes back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RepublishError {
    /// It has another form.
    #[error(
        "'{0}' does not say when a publisher comes back; write for example every:60s, or every:60s,pause:1s"
    )]
    Malformed(String),
    /// Nothing is published in between.
    #[error("'{0}' leaves less than a second to publish in; give a shorter pause, or a longer 'every'")]
    TooShort(String),
}

impl Republish {
    /// For how long it publishes at a stretch.
    pub(crate) fn life(self) -> Lifetime {
        Lifetime::Fixed(self.every - self.pause)
    }

    /// How long it is away each time.
    pub fn pause(self) -> Duration {
        self.pause
    }
}

impl FromStr for Republish {
    type Err = RepublishError;

    fn from_str(text: &str) -> Result<Self, RepublishError> {
        let malformed = || RepublishError::Malformed(text.to_owned());
        let rest = text.strip_prefix("every:").ok_or_else(malformed)?;
        let (every, pause) = match rest.split_once(",pause:") {
            Some((every, pause)) => (every, parse_duration(pause).map_err(|_| malformed())?),
            None => (rest, USUAL_PAUSE),
        };
        let every = parse_duration(every).map_err(|_| malformed())?;
        let is_published = every.checked_sub(pause).is_some_and(|rest| rest >= SHORTEST);
        if is_published { Ok(Self { every, pause }) } else { Err(RepublishError::TooShort(text.to_owned())) }
    }
}

impl fmt::Display for Republish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "every:{}s,pause:{}s", self.every.as_secs_f64(), self.pause.as_secs_f64())
    }
}

as_text!(Republish, ToString::to_string, ["every:60s", "every:60s,pause:1s"]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_publisher_comes_back_every_so_often_after_a_pause() {
        let seconds = Duration::from_secs;
        for (text, life, pause) in [
            ("every:60s", seconds(59), seconds(1)),
            ("every:1m,pause:10s", seconds(50), seconds(10)),
            ("every:2s,pause:500ms", Duration::from_millis(1_500), Duration::from_millis(500)),
        ] {
            let read: Republish = text.parse().unwrap();
            assert_eq!((read.life(), read.pause()), (Lifetime::Fixed(life), pause), "{text}");
            assert_eq!(read.to_string().parse::<Republish>().unwrap(), read);
        }
        for (text, words) in [
            ("60s", "write for example every:60s"),
            ("every:often", "every:60s,pause:1s"),
            ("every:60s,pause:long", "every:60s,pause:1s"),
            ("every:1s", "less than a second to publish in"),
            ("every:10s,pause:20s", "give a shorter pause"),
        ] {
            assert!(text.parse::<Republish>().unwrap_err().to_string().contains(words), "{text}");
        }
    }
}
