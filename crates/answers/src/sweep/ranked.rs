//! What the variants of a sweep are ranked by, and which values of it are better.

use crate::table::TableRun;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_engine::declared::better_if_asked;
use weir_engine::scenario::LoadKind;
use weir_engine::summary::units::FigureUnit;
use weir_metrics::Better;

/// What variants are ranked by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ranked {
    /// `capacity`, `cpu_per_client`, or the name of a figure of runs.
    pub by: Rank,
    /// The same in words: `viewers`, `CPU a client`, `Startup p99`.
    pub title: String,
    /// What it is measured in.
    pub unit: FigureUnit,
    /// Which values are better.
    pub better: Better,
}

/// What variants are ranked by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rank {
    /// How much they carry.
    Capacity(LoadKind),
    /// CPU of what is watched for each client.
    CpuPerClient,
    /// A figure of runs.
    Figure(String),
}

impl Ranked {
    /// By what each variant carries.
    pub fn by_capacity(kind: LoadKind, noun: &str) -> Self {
        Self {
            by: Rank::Capacity(kind),
            title: noun.to_owned(),
            unit: FigureUnit::Count,
            better: Better::Higher,
        }
    }

    /// By the CPU of what is watched for each client.
    pub fn by_cpu_per_client() -> Self {
        Self {
            by: Rank::CpuPerClient,
            title: "CPU a client".to_owned(),
            unit: FigureUnit::Percent,
            better: Better::Lower,
        }
    }

    /// By a figure of runs.
    pub fn by_figure(name: &str) -> Self {
        Self {
            by: Rank::Figure(name.to_owned()),
            title: name.to_owned(),
            unit: FigureUnit::Count,
            better: better_if_asked(name),
        }
    }

    /// Whether it is how much variants carry, which is searched for.
    pub fn is_capacity(&self) -> bool {
        matches!(self.by, Rank::Capacity(_))
    }

    /// What it is of a run.
    pub(super) fn of(&self, run: &TableRun) -> Option<f64> {
        match &self.by {
            Rank::Capacity(_) => None,
            Rank::CpuPerClient => run.cpu_percent_per_client,
            Rank::Figure(name) => run.figures.get(name).copied(),
        }
    }

    /// Whether one value is better than another.
    pub(super) fn is_better(&self, one: f64, other: f64) -> bool {
        match self.better {
            Better::Higher => one > other,
            Better::Lower => one < other,
        }
    }
}
