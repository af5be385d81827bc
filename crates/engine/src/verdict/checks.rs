//! The checks of the verdict by name, so that a person can accept what one of them finds: steal on a rented machine.

use crate::scenario::as_text::as_text;
use std::str::FromStr;
use weir_clients::meant;

/// The names of all checks, as `--accept` takes them.
pub const CHECKS: &[&str] = &[
    "generator_thread",
    "generator_pause",
    "generator_cores",
    "send_lag",
    "missed_slots",
    "local_failures",
    "keyframe_waits",
    "socket_drops",
    "unsent",
    "softirq",
    "stack_drops",
    "queue_drops",
    "conntrack_full",
    "memory_pressure",
    "thermal_throttling",
    "run_queue",
    "cpu_steal",
    "cpu_throttling",
    "host_busy",
    "clock_step",
    "lost_count",
    "generator_lost",
    "agent_lost",
    "start_skew",
];

/// The name of a check of the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckName(&'static str);

/// A text that names no check.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no check '{name}'; {}", nearest.map_or_else(
    || format!("known are {}", CHECKS.join(", ")),
    |nearest| format!("did you mean '{nearest}'?"),
))]
pub struct UnknownCheck {
    /// The text.
    name: String,
    /// The known name that was meant, if one resembles it.
    nearest: Option<&'static str>,
}

impl CheckName {
    /// As reports have it.
    pub fn name(self) -> &'static str {
        self.0
    }
}

impl FromStr for CheckName {
    type Err = UnknownCheck;

    /// Takes `cpu_steal`, `cpu-steal` and, since there is one steal only, `steal`.
    fn from_str(text: &str) -> Result<Self, UnknownCheck> {
        let name = text.trim().replace('-', "_");
        let end = format!("_{name}");
        let exact = CHECKS.iter().find(|check| **check == name);
        let mut short = CHECKS.iter().filter(|check| check.ends_with(&end));
        match (exact, short.next(), short.next()) {
            (Some(check), _, _) | (None, Some(check), None) => Ok(Self(check)),
            _ => Err(UnknownCheck { nearest: meant(&name, CHECKS.iter().copied()), name: text.to_owned() }),
        }
    }
}

as_text!(CheckName, |it| it.0, CHECKS);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_goes_by_its_name_or_the_end_of_it_if_that_says_which() {
        for text in ["cpu_steal", "cpu-steal", " steal"] {
            assert_eq!(text.parse(), Ok(CheckName("cpu_steal")));
        }
        let wrong = |text: &str| text.parse::<CheckName>().unwrap_err().to_string();
        assert_eq!(wrong("cpu_stael"), "there is no check 'cpu_stael'; did you mean 'cpu_steal'?");
        assert!(
            wrong("everything").starts_with("there is no check 'everything'; known are generator_thread, ")
        );
    }
}
