//! The declaration of a figure: what its name, unit and kind are, and how two values of it add.

use serde::{Deserialize, Serialize};

/// What a figure is counted in. Keys of machine-readable output end with [`Unit::suffix`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Plain number of things.
    Count,
    /// Bytes.
    Bytes,
    /// Recorded in microseconds, printed in seconds.
    Micros,
}

impl Unit {
    /// The ending of a key in JSON and CSV, with its underscore: `_seconds`, `_bytes` or nothing.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Count => "",
            Self::Bytes => "_bytes",
            Self::Micros => "_seconds",
        }
    }

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Bytes => "bytes",
            Self::Micros => "seconds",
        }
    }

    /// What a recorded value is multiplied by to be printed.
    pub const fn scale(self) -> f64 {
        match self {
            Self::Count | Self::Bytes => 1.0,
            Self::Micros => 1e-6,
        }
    }
}

/// How values of a figure are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A number of events in the interval; intervals and shards add.
    Counter,
    /// A level at the interval's end; shards merge by [`Merge`].
    Gauge(Merge),
    /// A distribution of unsigned values.
    Spread,
    /// A distribution of signed values.
    Signed,
}

/// How the gauges of two shards become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Merge {
    /// Levels of disjoint groups of clients add.
    Sum,
    /// The highest counts.
    Max,
}

impl Merge {
    /// The level of two shards together.
    pub(crate) fn of(self, mine: u64, theirs: u64) -> u64 {
        match self {
            Self::Sum => mine.saturating_add(theirs),
            Self::Max => mine.max(theirs),
        }
    }
}

/// One figure's declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Name in outputs and thresholds, in `snake_case`, with a protocol's prefix for its own (`rtmp.acks`).
    pub name: &'static str,
    /// What it is counted in.
    pub unit: Unit,
    /// How it is kept.
    pub kind: Kind,
    /// One line: what it says.
    pub help: &'static str,
}

/// The figures of one workload: the common ones, then the protocol's own.
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    own: &'static [Figure],
}

impl Schema {
    /// The common figures and these.
    pub const fn new(own: &'static [Figure]) -> Self {
        Self { own }
    }

    /// All figures, in the order of their handles.
    pub fn figures(&self) -> impl Iterator<Item = &'static Figure> + use<> {
        crate::common::FIGURES.iter().chain(self.own)
    }

    /// The position of the figure of this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.figures().position(|figure| figure.name == name)
    }
}

/// Handle of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter(pub u16);
/// Handle of a gauge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauge(pub u16);
/// Handle of a distribution of unsigned values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread(pub u16);
/// Handle of a distribution of signed values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signed(pub u16);

/// Declares a table of figures and a handle for each.
///
/// `base` is 0 for the common table and `weir_metrics::common::FIGURES.len() as u16` for a
/// protocol's own, so that handles index the table `common ++ own`.
///
/// ```
/// weir_metrics::figures! {
///     base = weir_metrics::common::FIGURES.len() as u16;
///     pub FIGURES;
///     ACKS: Counter = "rtmp.acks", Count, "Acknowledgement messages sent";
/// }
/// assert_eq!(FIGURES[0].name, "rtmp.acks");
/// ```
#[macro_export]
macro_rules! figures {
    (base = $base:expr; $vis:vis $table:ident; $($id:ident : $kind:ident $(($merge:ident))? = $name:expr, $unit:ident, $help:literal;)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, dead_code, missing_docs)]
        #[repr(u16)]
        enum Position { $($id),* }
        $(
            #[doc = $help]
            $vis const $id: $crate::$kind = $crate::$kind($base + Position::$id as u16);
        )*
        /// Their names, for what knows figures of a finished run by them.
        $vis mod names {
            #![allow(dead_code, reason = "not every figure is asked for by its name")]
            $(
                #[doc = $help]
                pub const $id: &str = $name;
            )*
        }
        /// The declarations, in the order of their handles.
        $vis const $table: &[$crate::Figure] = &[$($crate::Figure {
            name: $name,
            unit: $crate::Unit::$unit,
            kind: $crate::Kind::$kind $(($crate::Merge::$merge))?,
            help: $help,
        }),*];
    };
}
