//! What to watch: the value of `--watch`. Knows the text only; finding the processes is `target`'s work.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Which processes to watch. Written `name=nginx`, `name=nginx+`, `pid=123` or `port=1935`, in JSON too.
///
/// ```
/// # use weir_observe::Watch;
/// let watch: Watch = "port=1935".parse()?;
/// assert_eq!(watch, Watch::Port(1935));
/// assert_eq!(watch.to_string(), "port=1935");
/// # Ok::<(), weir_observe::WatchError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub enum Watch {
    /// The one server with this name: its processes, and their children. The name is compared with `comm` (15 bytes
    /// at most, `/proc/PID/comm`) and with the last path component of `argv[0]` (`/proc/PID/cmdline`). Of several
    /// servers the one that listens on the load's port is meant.
    Name(String),
    /// Every process with this name, and their children, however many servers they are: `name=nginx+`.
    Every(String),
    /// This process and its children. A later process that is given the same pid is not taken for it.
    Pid(u32),
    /// The processes that hold a TCP socket listening on this port, and their children.
    Port(u16),
}

/// The text was not a [`Watch`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WatchError {
    /// There is no `=`, or the word before it is not one of the three.
    #[error("cannot watch `{0}`: write name=nginx, pid=123 or port=1935")]
    UnknownKind(String),
    /// The name is empty, or a path.
    #[error("cannot watch the name `{0}`: give the program's base name, as in name=nginx")]
    BadName(String),
    /// The pid is not a number from 1 up.
    #[error("cannot watch pid `{0}`: give a process id from 1 up, as `pidof` prints it")]
    BadPid(String),
    /// The port is not a number from 1 to 65535.
    #[error("cannot watch port `{0}`: give a TCP port from 1 to 65535 that the server listens on")]
    BadPort(String),
}

impl FromStr for Watch {
    type Err = WatchError;

    fn from_str(text: &str) -> Result<Self, WatchError> {
        let Some((kind, value)) = text.split_once('=') else {
            return Err(WatchError::UnknownKind(text.to_owned()));
        };
        match kind {
            "name" if value.is_empty() || value.contains('/') => Err(WatchError::BadName(value.to_owned())),
            "name" => Ok(match value.strip_suffix('+') {
                Some(name) if !name.is_empty() => Self::Every(name.to_owned()),
                _ => Self::Name(value.to_owned()),
            }),
            "pid" => match value.parse() {
                Ok(pid) if pid > 0 && i32::try_from(pid).is_ok() => Ok(Self::Pid(pid)),
                _ => Err(WatchError::BadPid(value.to_owned())),
            },
            "port" => match value.parse() {
                Ok(port) if port > 0 => Ok(Self::Port(port)),
                _ => Err(WatchError::BadPort(value.to_owned())),
            },
            _ => Err(WatchError::UnknownKind(text.to_owned())),
        }
    }
}

impl fmt::Display for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "name={name}"),
            Self::Every(name) => write!(f, "name={name}+"),
            Self::Pid(pid) => write!(f, "pid={pid}"),
            Self::Port(port) => write!(f, "port={port}"),
        }
    }
}

impl TryFrom<String> for Watch {
    type Error = WatchError;

    fn try_from(text: String) -> Result<Self, WatchError> {
        text.parse()
    }
}

impl From<Watch> for String {
    fn from(watch: Watch) -> Self {
        watch.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_reads_back_as_it_was_written() {
        for watch in [
            Watch::Name("tokio =x".into()),
            Watch::Every("nginx".into()),
            Watch::Name("+".into()),
            Watch::Pid(1),
            Watch::Port(65535),
        ] {
            assert_eq!(watch.to_string().parse(), Ok(watch));
        }
    }

    #[test]
    fn it_is_a_string_in_json_and_in_the_schema() {
        let watch = Watch::Port(1935);
        assert_eq!(serde_json::to_string(&watch).unwrap(), "\"port=1935\"");
        assert_eq!(serde_json::from_str::<Watch>("\"port=1935\"").unwrap(), watch);
        assert!(serde_json::from_str::<Watch>("\"port=x\"").unwrap_err().to_string().contains("1 to 65535"));
        assert_eq!(schemars::schema_for!(Watch).get("type").unwrap(), "string");
    }

    #[test]
    fn a_bad_text_is_told_what_is_accepted() {
        for text in ["", "nginx", "Name=x", "tcp=1"] {
            assert_eq!(text.parse::<Watch>(), Err(WatchError::UnknownKind(text.into())));
        }
        for text in ["name=", "name=/usr/sbin/nginx"] {
            assert!(matches!(text.parse::<Watch>(), Err(WatchError::BadName(_))), "{text}");
        }
        for text in ["pid=0", "pid=-1", "pid=x", "pid=4294967296", "pid=3000000000"] {
            assert!(matches!(text.parse::<Watch>(), Err(WatchError::BadPid(_))), "{text}");
        }
        for text in ["port=0", "port=65536", "port=rtmp"] {
            assert!(matches!(text.parse::<Watch>(), Err(WatchError::BadPort(_))), "{text}");
        }
        let error = "nginx".parse::<Watch>().unwrap_err().to_string();
        assert!(error.contains("name=") && error.contains("pid=") && error.contains("port="), "{error}");
    }
}
