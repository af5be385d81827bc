//! What a threshold is on: found by its name once, when the threshold is read.

use super::{FigureRatio, ServerLoad, Statistic};
use crate::declared::{self, RECONNECTED};
use crate::machine::growth::ServerGrowth;
use weir_metrics::{FigureGroup, common::names};

/// Another name of `units`, of those who count messages.
const MESSAGES: &str = "messages";

/// What a threshold is on.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Subject {
    /// A ratio of two figures.
    Ratio(FigureRatio),
    /// How the watched processes grow.
    Growth(ServerGrowth),
    /// What the watched processes use, stage by stage.
    Load(ServerLoad),
    /// The time until all clients were connected again after a restart of the server.
    Reconnected,
    /// A figure of clients, or a total of `weir check`: by its name, or by its key in machine-readable output.
    Figure(String),
}

impl Subject {
    /// What is called so.
    pub(super) fn named(name: &str, statistic: Option<Statistic>) -> Self {
        if let Some(ratio) = FigureRatio::named(name).filter(|_| statistic == Some(Statistic::Ratio)) {
            return Self::Ratio(ratio);
        }
        if let Some(growth) = ServerGrowth::ALL.into_iter().find(|it| it.name() == name) {
            return Self::Growth(growth);
        }
        if let Some(load) = ServerLoad::named(name) {
            return Self::Load(load);
        }
        match name {
            _ if name == RECONNECTED.name => Self::Reconnected,
            MESSAGES => Self::Figure(names::UNITS.to_owned()),
            _ => Self::Figure(name.to_owned()),
        }
    }

    /// The names that are no figure's of clients, as suggestions for misspelt ones.
    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        let ratios = FigureRatio::ALL.into_iter().map(FigureRatio::name);
        let growth = ServerGrowth::ALL.into_iter().map(ServerGrowth::name);
        ratios.chain(growth).chain(ServerLoad::names()).chain([RECONNECTED.name])
    }

    /// The group of the figure, or of those that the ratio is made of; none of what is no figure of clients.
    pub(super) fn group(&self) -> Option<FigureGroup> {
        match self {
            Self::Ratio(ratio) => Some(ratio.group()),
            Self::Figure(name) => declared::figure(name).map(|figure| figure.group),
            Self::Growth(_) | Self::Load(_) | Self::Reconnected => None,
        }
    }
}
