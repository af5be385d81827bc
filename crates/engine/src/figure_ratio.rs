//! Ratios that are made of two figures, and that thresholds can ask for: `NAME.ratio`. What they are of a run is in
//! `threshold/ratio.rs`.

use weir_metrics::common::names;
use weir_metrics::{Better, Counter, Figure, FigureGroup};
use weir_protocols::PROTOCOLS;

/// A ratio of two figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureRatio {
    /// Failed starts, of those that were planned.
    Failed,
    /// Planned starts that never began.
    Missed,
    /// Clients that played, of those that were planned and stayed for it.
    Played,
    /// Viewers that played and then got no media, of planned starts.
    Starved,
    /// Actual by expected bit rate.
    BitRate,
    /// Time that modelled players stood still, of their playing time.
    Stalled,
    /// Viewers that never stalled, of those that played.
    StallFree,
    /// Frames, by those that the source had for all planned clients.
    Frames,
    /// Units that are missing, of those that should have come.
    Lost,
    /// Frames that came out of decoders without damage, of those that were handed in.
    Decoded,
    /// A counter of one protocol, by the one that its excess is held against.
    Excess(ExcessRatio),
}

/// What a protocol declares as an excess if it is too much: a counter beside another, by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExcessRatio {
    /// The counter that is held against another.
    pub(crate) count: &'static str,
    pub(crate) beside: &'static str,
}

impl ExcessRatio {
    /// That of the counter of this name.
    fn named(name: &str) -> Option<Self> {
        let of =
            |schema: weir_metrics::Schema, counter: Counter| schema.figures().nth(usize::from(counter.0));
        let name_of = |figure: &'static Figure| figure.name;
        let all = PROTOCOLS.iter().flat_map(|it| it.excesses.iter().map(move |excess| (it.schema, excess)));
        let mut named = all.filter_map(|(schema, excess)| {
            let count = of(schema, excess.counter).map(name_of)?;
            Some(Self { count, beside: of(schema, excess.beside).map(name_of)? })
        });
        named.find(|it| it.count == name)
    }
}

impl FigureRatio {
    /// Those of all protocols.
    pub const ALL: [Self; 10] = [
        Self::Failed,
        Self::Missed,
        Self::Played,
        Self::Starved,
        Self::BitRate,
        Self::Stalled,
        Self::StallFree,
        Self::Frames,
        Self::Lost,
        Self::Decoded,
    ];

    /// What stands before `.ratio`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Missed => "missed",
            Self::Played => names::PLAYED,
            Self::Starved => names::STARVED,
            Self::BitRate => "bitrate",
            Self::Stalled => names::STALLED,
            Self::StallFree => "stall_free",
            Self::Frames => names::FRAMES,
            Self::Lost => names::LOST,
            Self::Decoded => names::DECODED,
            Self::Excess(excess) => excess.count,
        }
    }

    /// What it is called in tables of runs; empty if it stands only in lists.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Failed => "Failed",
            Self::Lost => "Lost",
            _ => "",
        }
    }

    /// The ratio of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let of_all = Self::ALL.into_iter().find(|ratio| ratio.name() == name);
        of_all.or_else(|| ExcessRatio::named(name).map(Self::Excess))
    }

    /// The group of the figures that it is made of.
    pub(crate) const fn group(self) -> FigureGroup {
        match self {
            Self::Failed | Self::Missed | Self::Played => FigureGroup::Connection,
            Self::Starved => FigureGroup::Starvation,
            Self::BitRate => FigureGroup::Expected,
            Self::Stalled => FigureGroup::Stalls,
            Self::StallFree => FigureGroup::Playout,
            Self::Frames => FigureGroup::Pictures,
            Self::Lost => FigureGroup::Loss,
            Self::Decoded => FigureGroup::Decoding,
            Self::Excess(_) => FigureGroup::Own,
        }
    }

    /// Which way it is better.
    pub(crate) const fn better(self) -> Better {
        match self {
            Self::Failed | Self::Missed | Self::Starved | Self::Stalled | Self::Lost | Self::Excess(_) => {
                Better::Lower
            }
            Self::Played | Self::BitRate | Self::StallFree | Self::Frames | Self::Decoded => Better::Higher,
        }
    }
}
