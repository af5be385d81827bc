//! What is asked of the target: `startup.p99 < 1s`, parsed once into an expression.

mod check;
mod judge;
mod ratio;
mod samples;
mod seconds;
mod server_load;
mod subject;
mod workloads;

pub use crate::figure_ratio::FigureRatio;
pub use check::ThresholdError;
pub use server_load::ServerLoad;

use crate::machine::growth::ServerGrowth;
use crate::scenario::as_text::as_text;
use crate::summary::units::{BaseUnit, FigureUnit};
use crate::summary::{FigureValue, Figures};
use std::str::FromStr;
use subject::Subject;
use weir_metrics::{FigureGroup, Quantity, parse_quantity};

/// `figure[.statistic] operator quantity`.
///
/// The figure is a name of `docs/method`, or a ratio that is made of several
/// (`figure_ratio.rs`), such as `failed.ratio`. The statistic is a percentile, `min`, `mean` or `max` of a distribution, `rate` for a counter a second, `mean` or
/// `max` for a level; a counter alone is its total. `drift.growth` is what viewers fall behind in a stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    text: String,
    /// What it is on, as it was written.
    name: String,
    subject: Subject,
    statistic: Option<Statistic>,
    operator: Operator,
    limit: Quantity,
    /// Positions of the workloads that are asked by default; none if a person asks it, of all that have the figure.
    default_of: Option<Vec<u16>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Less,
    LessOrEqual,
    More,
    MoreOrEqual,
    Equal,
    Unequal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Statistic {
    Count,
    Min,
    Mean,
    P50,
    P90,
    P95,
    P99,
    P999,
    Max,
    Rate,
    Ratio,
    /// How much more it is at the end of a stage than at its beginning.
    Growth,
}

/// Over what a threshold is judged, of a slice of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The slice.
    Slice,
    /// All clients up to now.
    Clients,
    /// The stage up to now, as a share of what its source has sent.
    SourceRate,
}

const OPERATORS: [(&str, Operator); 6] = [
    ("<=", Operator::LessOrEqual),
    (">=", Operator::MoreOrEqual),
    ("==", Operator::Equal),
    ("!=", Operator::Unequal),
    ("<", Operator::Less),
    (">", Operator::More),
];

const STATISTICS: [(&str, Statistic); 14] = [
    ("count", Statistic::Count),
    ("min", Statistic::Min),
    ("mean", Statistic::Mean),
    ("avg", Statistic::Mean),
    ("med", Statistic::P50),
    ("p50", Statistic::P50),
    ("p90", Statistic::P90),
    ("p95", Statistic::P95),
    ("p99", Statistic::P99),
    ("p999", Statistic::P999),
    ("max", Statistic::Max),
    ("rate", Statistic::Rate),
    ("ratio", Statistic::Ratio),
    ("growth", Statistic::Growth),
];

impl FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self, ThresholdError> {
        let (at, (sign, operator)) = OPERATORS
            .iter()
            .filter_map(|entry| text.find(entry.0).map(|at| (at, *entry)))
            .min_by_key(|(at, (sign, _))| (*at, 2 - sign.len()))
            .ok_or_else(|| ThresholdError::NoOperator(text.to_owned()))?;
        let left = text[..at].trim();
        let limit = parse_quantity(&text[at + sign.len()..])
            .map_err(|source| ThresholdError::Limit { text: text.to_owned(), source })?;
        let split = left.rsplit_once('.').and_then(|(figure, statistic)| {
            let known = STATISTICS.iter().find(|(name, _)| *name == statistic)?;
            Some((figure, known.1))
        });
        let (name, statistic) = split.map_or((left, None), |(name, statistic)| (name, Some(statistic)));
        if name.is_empty() {
            return Err(ThresholdError::NoOperator(text.to_owned()));
        }
        let subject = Subject::named(name, statistic);
        let (text, name) = (text.trim().to_owned(), name.to_owned());
        Ok(Self { text, name, subject, statistic, operator, limit, default_of: None })
    }
}

as_text!(Threshold, |it| it.text.clone(), ["startup.p99 < 1s", "failed.ratio <= 0.1%"]);

impl Threshold {
    /// Whether it is about something of its protocol of which there may be too much.
    pub(crate) fn is_about_an_excess(&self) -> bool {
        matches!(self.subject, Subject::Ratio(FigureRatio::Excess(_)))
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same, asked by default of the workloads at these positions.
    pub(crate) fn by_default(self, workloads: Vec<u16>) -> Self {
        Self { default_of: Some(workloads), ..self }
    }

    /// The same, if it is a default, for those of its workloads alone that are none of these; none if there are no others.
    pub(crate) fn without(mut self, workloads: &[u16]) -> Option<Self> {
        if let Some(of) = &mut self.default_of {
            of.retain(|workload| !workloads.contains(workload));
        }
        self.default_of.as_ref().is_none_or(|of| !of.is_empty()).then_some(self)
    }

    /// Whether it is about the time that viewers stand still, or how often.
    pub(crate) fn is_about_stalls(&self) -> bool {
        self.subject == Subject::Ratio(FigureRatio::StallFree)
            || self.subject.group() == Some(FigureGroup::Stalls)
    }

    /// Whether it is a default, used because no threshold on its figure was given.
    pub fn is_default(&self) -> bool {
        self.default_of.is_some()
    }

    /// Whether both ask for one figure, by whatever statistic. `failed.ratio` is made of `slots_failed`.
    pub fn is_about_the_same_as(&self, other: &Self) -> bool {
        let name = |it: &Self| it.name.strip_prefix("slots_").unwrap_or(&it.name).to_owned();
        name(self) == name(other)
    }

    /// Whether it asks for the figure of this name.
    pub fn is_of(&self, figure: &str) -> bool {
        self.name == figure
    }

    /// The value of the figure of clients that it is on.
    fn find<'a>(&self, figures: &'a Figures) -> Option<&'a FigureValue> {
        let Subject::Figure(name) = &self.subject else { return None };
        figures.get(name).or_else(|| {
            [BaseUnit::Bytes, BaseUnit::Seconds].into_iter().find_map(|unit| {
                let name = name.strip_suffix(unit.suffix())?;
                figures.get(name).filter(|figure| figure.unit == unit)
            })
        })
    }

    /// How much growth of the watched processes it is on, if it is on that.
    pub fn server_growth(&self) -> Option<ServerGrowth> {
        if let Subject::Growth(growth) = self.subject { Some(growth) } else { None }
    }

    /// Whether it is about the time until all clients were connected again after a restart of the server.
    pub fn is_about_restarts(&self) -> bool {
        self.subject == Subject::Reconnected
    }

    /// The figure of the watched processes that it asks for stage by stage, if it asks for one.
    pub fn server_load(&self) -> Option<&ServerLoad> {
        if let Subject::Load(load) = &self.subject { Some(load) } else { None }
    }

    /// What the value that it compares is in, of a workload or a stage with these figures.
    pub fn unit(&self, figures: &Figures) -> FigureUnit {
        match (&self.subject, self.statistic) {
            (Subject::Growth(growth), _) => growth.unit(),
            (Subject::Load(load), _) => load.unit(),
            (Subject::Reconnected, _) => FigureUnit::Seconds,
            (Subject::Ratio(_), _) | (_, Some(Statistic::Ratio)) => FigureUnit::Ratio,
            (Subject::Figure(_), Some(Statistic::Count)) => FigureUnit::Count,
            (Subject::Figure(_), _) => self.find(figures).map_or(FigureUnit::Count, |it| it.unit.into()),
        }
    }

    /// Over what a slice of a stage's window is judged.
    pub(crate) fn scope(&self) -> Scope {
        if let Subject::Ratio(ratio) = self.subject { ratio.scope() } else { Scope::Slice }
    }

    /// Whether it asks by how much viewers fall behind in a stage.
    pub fn is_about_growing_drift(&self) -> bool {
        self.statistic == Some(Statistic::Growth)
    }

    /// Whether a value satisfies it.
    pub fn holds(&self, value: f64) -> bool {
        let limit = self.limit.value;
        match self.operator {
            Operator::Less => value < limit,
            Operator::LessOrEqual => value <= limit,
            Operator::More => value > limit,
            Operator::MoreOrEqual => value >= limit,
            Operator::Equal => value == limit,
            Operator::Unequal => value != limit,
        }
    }

    /// Whether a value is farther on the wrong side than another. One that fails is worse than one that holds.
    pub fn worse(&self, a: f64, b: f64) -> bool {
        if self.holds(a) != self.holds(b) {
            return self.holds(b);
        }
        let distance = |value: f64| (value - self.limit.value).abs();
        match self.operator {
            Operator::Less | Operator::LessOrEqual => a > b,
            Operator::More | Operator::MoreOrEqual => a < b,
            Operator::Equal => distance(a) > distance(b),
            Operator::Unequal => distance(a) < distance(b),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_fails_is_worse_than_one_that_holds_whichever_comes_first() {
        for (text, failing, holding) in [
            ("lost != 0", 0.0, 500.0),
            ("lost == 0", 500.0, 0.0),
            ("lost < 3", 3.0, 2.0),
            ("lost >= 3", 2.0, 3.0),
        ] {
            let threshold: Threshold = text.parse().unwrap();
            assert!(threshold.worse(failing, holding) && !threshold.worse(holding, failing), "{text}");
            assert!(!threshold.worse(holding, holding), "{text}");
        }
        let unequal: Threshold = "lost != 10".parse().unwrap();
        assert!(unequal.worse(11.0, 20.0) && !unequal.worse(20.0, 11.0));
    }

    #[test]
    fn a_threshold_is_read_once_and_compared_in_base_units() {
        let threshold: Threshold = "startup.p99 <= 250ms".parse().unwrap();
        assert!(threshold.holds(0.25) && !threshold.holds(0.2501));
        let lost: Threshold = "ts.lost_packets==0".parse().unwrap();
        assert_eq!(lost.subject, Subject::Figure("ts.lost_packets".to_owned()));
        assert!(lost.holds(0.0));
    }
}
