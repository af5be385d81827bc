//! The declaration of a figure: what its name, unit and kind are, how two values of it add, which way it is better, and which
//! others it is of one group with.

use crate::FigureGroup;
use schemars::JsonSchema;
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

/// Which values of a figure are the better ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Small ones.
    Lower,
    /// Large ones.
    Higher,
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
    /// What clients have to do so that they record it.
    pub group: FigureGroup,
    /// Which way it is better; none if a change of it is neither better nor worse, such as that of a number of messages.
    pub better: Option<Better>,
    /// What it is called in tables of runs; none if it stands only in lists.
    pub title: Option<&'static str>,
    /// One line: what it says.
    pub help: &'static str,
}

impl Figure {
    /// What a declaration begins with: a counter without a name.
    #[doc(hidden)]
    pub const fn of(group: FigureGroup, better: Option<Better>, title: Option<&'static str>) -> Self {
        Self { name: "", unit: Unit::Count, kind: Kind::Counter, group, better, title, help: "" }
    }

    /// Whether it goes by this name: its own, or its key in machine-readable output, which ends with its unit.
    pub fn is_called(&self, name: &str) -> bool {
        name.strip_prefix(self.name).is_some_and(|rest| rest.is_empty() || rest == self.unit.suffix())
    }

    /// Whether each client gives one value of it, when it begins.
    pub fn is_of_each_client(&self) -> bool {
        self.kind == Kind::Spread
            && matches!(self.group, FigureGroup::Connection | FigureGroup::Request | FigureGroup::FirstMedia)
    }
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
/// protocol's own, so that handles index the table `common ++ own`. Between the unit and the line that says what it is may
/// stand, in this order, the figure's [`FigureGroup`](crate::FigureGroup) ([`Own`](crate::FigureGroup::Own) otherwise), which way it is better, and
/// its title in tables of runs.
///
/// ```
/// weir_metrics::figures! {
///     base = weir_metrics::common::FIGURES.len() as u16;
///     pub FIGURES;
///     ACKS: Counter = "rtmp.acks", Count, "Acknowledgement messages sent";
///     DELAY: Spread = "rtmp.delay", Micros, [Latency, Lower, "Delay"], "from a request to its answer";
/// }
/// assert_eq!((FIGURES[0].name, FIGURES[1].title), ("rtmp.acks", Some("Delay")));
/// ```
#[macro_export]
macro_rules! figures {
    (base = $base:expr; $vis:vis $table:ident; $($id:ident : $kind:ident $(($merge:ident))? = $name:expr, $unit:ident, $([$($of:tt)*],)? $help:literal;)*) => {
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
            ..$crate::figures!(@of $($($of)*)?)
        }),*];
    };
    (@of) => { $crate::figures!(@of Own) };
    (@of $group:ident) => { $crate::Figure::of($crate::FigureGroup::$group, None, None) };
    (@of $group:ident, $better:ident) => {
        $crate::Figure::of($crate::FigureGroup::$group, Some($crate::Better::$better), None)
    };
    (@of $group:ident, $title:literal) => { $crate::Figure::of($crate::FigureGroup::$group, None, Some($title)) };
    (@of $group:ident, $better:ident, $title:literal) => {
        $crate::Figure::of($crate::FigureGroup::$group, Some($crate::Better::$better), Some($title))
    };
}
