//! What a threshold can ask of the watched processes: CPU, memory, descriptors and threads, stage by stage.

use crate::summary::ProcessLoad;
use crate::summary::units::FigureUnit;

/// A figure of a watched process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerLoad {
    /// `server.cpu`: its CPU, 1 for one core.
    Cpu,
    /// `server.memory`: its resident memory, in bytes.
    Memory,
    /// `server.descriptors`: its open files.
    Descriptors,
    /// `server.busiest_thread`: how much its fullest thread ran or waited for a core, 1 for all of the time.
    BusiestThread,
    /// `thread.NAME.cpu`: the same of threads of a name.
    Thread(String),
}

impl ServerLoad {
    /// Those that have one name each, and their names.
    const NAMED: [(&'static str, Self); 4] = [
        ("server.cpu", Self::Cpu),
        ("server.memory", Self::Memory),
        ("server.descriptors", Self::Descriptors),
        ("server.busiest_thread", Self::BusiestThread),
    ];

    /// The names, as suggestions for misspelt ones.
    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        Self::NAMED.iter().map(|(name, _)| *name).chain(["thread.NAME.cpu"])
    }

    /// The figure of a name.
    pub(super) fn named(name: &str) -> Option<Self> {
        if let Some((_, load)) = Self::NAMED.iter().find(|(it, _)| *it == name) {
            return Some(load.clone());
        }
        let thread = name.strip_prefix("thread.")?.strip_suffix(".cpu")?;
        (!thread.is_empty()).then(|| Self::Thread(thread.to_owned()))
    }

    /// What it is in.
    pub(super) fn unit(&self) -> FigureUnit {
        match self {
            Self::Memory => FigureUnit::Bytes,
            Self::Descriptors => FigureUnit::Count,
            Self::Cpu | Self::BusiestThread | Self::Thread(_) => FigureUnit::Ratio,
        }
    }

    /// Whether it has a mean and a highest second; the others have one value a window.
    pub(super) fn has_mean_and_max(&self) -> bool {
        matches!(self, Self::Cpu | Self::Memory)
    }

    /// Its value over a window, in base units; the mean, or that of the highest second. None where it was not read.
    pub(super) fn value(&self, load: &ProcessLoad, highest: bool) -> Option<f64> {
        match self {
            Self::Cpu if highest => Some(load.cpu_percent_max / 100.0),
            Self::Cpu => Some(load.cpu_percent / 100.0),
            Self::Memory if highest => Some(load.rss_max_bytes as f64),
            Self::Memory => Some(load.rss_mean_bytes),
            Self::Descriptors => load.descriptors_max.map(|it| it as f64),
            Self::BusiestThread => busiest(load, |_| true),
            Self::Thread(name) => busiest(load, |thread| thread == name),
        }
    }
}

fn busiest(load: &ProcessLoad, is_asked: impl Fn(&str) -> bool) -> Option<f64> {
    let threads = load.threads.iter().filter(|it| is_asked(&it.name));
    threads.map(|it| it.cpu_percent_busiest / 100.0).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::ThreadLoad;

    #[test]
    fn a_process_is_asked_by_names_and_a_thread_by_its_own() {
        let thread = |name: &str, busiest: f64| ThreadLoad {
            name: name.to_owned(),
            threads: 2,
            cpu_percent: busiest * 1.5,
            cpu_percent_busiest: busiest,
            waited_percent_busiest: Some(5.0),
        };
        let load = ProcessLoad {
            cpu_percent: 120.0,
            cpu_percent_max: 180.0,
            rss_max_bytes: 2_000,
            rss_mean_bytes: 1_500.0,
            threads: vec![thread("SW-WebRTC", 80.0), thread("main.loop", 40.0)],
            ..ProcessLoad::default()
        };
        let of = |name: &str, highest| ServerLoad::named(name).and_then(|it| it.value(&load, highest));
        assert_eq!((of("server.cpu", false), of("server.cpu", true)), (Some(1.2), Some(1.8)));
        assert_eq!((of("server.memory", false), of("server.memory", true)), (Some(1_500.0), Some(2_000.0)));
        assert_eq!(
            (of("server.busiest_thread", false), of("thread.SW-WebRTC.cpu", false)),
            (Some(0.8), Some(0.8))
        );
        assert_eq!((of("thread.main.loop.cpu", false), of("thread.nosuch.cpu", false)), (Some(0.4), None));
        assert_eq!((of("server.descriptors", false), ServerLoad::named("thread..cpu")), (None, None));
    }
}
