//! How long a client stays before another comes in its place: `30s`, or `exp:30s`.

use crate::scenario::as_text::as_text;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use weir_metrics::parse_duration;

/// Shortest mean: a client needs some round trips to say anything at all, and a thread starts some ten thousand a second.
const SHORTEST: Duration = Duration::from_millis(100);
/// Shortest life that is drawn, so that a place's clients come to an end.
const LEAST: Duration = Duration::from_millis(1);

/// For how long a client stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// Each for this long.
    Fixed(Duration),
    /// Exponentially distributed with this mean: whether a client leaves in the next second does not depend on how long it
    /// has been there, so that clients come and go at an even rate.
    Exponential(Duration),
}

/// A text that is no lifetime.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LifetimeError {
    /// It is no time.
    #[error("'{0}' is not a client lifetime; write for example 30s, or exp:30s for lives with that mean")]
    Malformed(String),
    /// No client can get an answer within it.
    #[error("'{0}' is too short a life; give 100ms at least")]
    TooShort(String),
}

impl Lifetime {
    /// The mean.
    pub fn mean(self) -> Duration {
        match self {
            Self::Fixed(life) | Self::Exponential(life) => life,
        }
    }

    /// One client's life.
    pub(crate) fn draw(self, random: &mut fastrand::Rng) -> Duration {
        match self {
            Self::Fixed(life) => life,
            // The inverse of the distribution function 1 − e^(−t/mean), of a number in (0, 1].
            Self::Exponential(mean) => mean.mul_f64(-(1.0 - random.f64()).ln()).max(LEAST),
        }
    }
}

impl FromStr for Lifetime {
    type Err = LifetimeError;

    fn from_str(text: &str) -> Result<Self, LifetimeError> {
        let (of, time): (fn(Duration) -> Self, _) = match text.strip_prefix("exp:") {
            Some(mean) => (Self::Exponential, mean),
            None => (Self::Fixed, text),
        };
        let time = parse_duration(time).map_err(|_| LifetimeError::Malformed(text.to_owned()))?;
        if time < SHORTEST { Err(LifetimeError::TooShort(text.to_owned())) } else { Ok(of(time)) }
    }
}

impl fmt::Display for Lifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if matches!(self, Self::Exponential(_)) { "exp:" } else { "" };
        write!(f, "{kind}{}s", self.mean().as_secs_f64())
    }
}

as_text!(Lifetime, ToString::to_string, ["30s", "exp:30s"]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_a_time_or_the_mean_of_many() {
        for (text, life) in [
            ("30s", Lifetime::Fixed(Duration::from_secs(30))),
            ("exp:1500ms", Lifetime::Exponential(Duration::from_millis(1_500))),
        ] {
            let read: Lifetime = text.parse().unwrap();
            assert_eq!(read, life);
            assert_eq!(read.to_string().parse::<Lifetime>().unwrap(), life);
        }
        for (text, words) in
            [("soon", "write for example 30s"), ("exp:", "exp:30s"), ("exp:5ms", "100ms at least")]
        {
            assert!(text.parse::<Lifetime>().unwrap_err().to_string().contains(words), "{text}");
        }
    }

    #[test]
    fn exponential_lives_have_their_mean_and_their_spread() {
        let mut random = fastrand::Rng::with_seed(7);
        let life = Lifetime::Exponential(Duration::from_secs(30));
        let lives: Vec<f64> = (0..10_000).map(|_| life.draw(&mut random).as_secs_f64()).collect();
        let mean = lives.iter().sum::<f64>() / 10_000.0;
        let deviation = (lives.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / 10_000.0).sqrt();
        // Three standard errors of the mean of 10,000 values.
        assert!((mean - 30.0).abs() < 0.9, "{mean}");
        assert!((deviation - 30.0).abs() < 1.5, "{deviation}");
    }
}
