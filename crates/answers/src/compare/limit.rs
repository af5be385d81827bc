//! What a change may be: `startup.p99 > +10%`, parsed once into an expression.

use crate::table::Contrast;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use weir_engine::summary::units::FigureUnit;
use weir_metrics::{Measure, parse_quantity};

/// `figure operator change`: a regression if the figure has changed by more than that.
///
/// The figure is a name of the comparison, or a part of one between its dots, which stands for all figures that have it. The
/// change has a sign. In percent it is of the base's value, otherwise it is in the figure's unit.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeLimit {
    text: String,
    figure: String,
    is_rise: bool,
    change: Change,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    /// A share of the base's value.
    Relative(f64),
    /// In base units, of what was written.
    Absolute(f64, Measure),
}

/// What a limit came to, in one figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitResult {
    /// As it was written.
    pub expression: String,
    /// The figure.
    pub figure: String,
    /// The side that was compared with the base.
    pub side: String,
    /// What it came to.
    pub finding: LimitFinding,
}

/// What a limit comes to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitFinding {
    /// The interval lies wholly beyond it.
    Regression,
    /// It does not.
    Held,
    /// Nothing can be said: why.
    NotJudged(String),
}

/// A text that is no limit of a change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// No comparison in it.
    #[error("'{0}': no comparison; write for example 'startup.p99 > +10%'")]
    NoOperator(String),
    /// The change has no sign.
    #[error("'{0}': a change has a sign: write +10% for more than the base, -10% for less")]
    NoSign(String),
    /// The change is no quantity.
    #[error("'{text}': {source}")]
    Quantity {
        /// The limit.
        text: String,
        /// What is wrong.
        source: weir_metrics::ParseUnitError,
    },
}

impl FromStr for ChangeLimit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let text = text.trim();
        let at = text.find(['<', '>']).ok_or_else(|| LimitError::NoOperator(text.to_owned()))?;
        let (figure, rest) = (text[..at].trim(), &text[at..]);
        let change = rest[1..].trim_start_matches('=').trim();
        if figure.is_empty() || change.is_empty() {
            return Err(LimitError::NoOperator(text.to_owned()));
        }
        let unsigned = change.strip_prefix('+').or_else(|| change.starts_with('-').then_some(change));
        let number = unsigned.ok_or_else(|| LimitError::NoSign(text.to_owned()))?;
        let quantity = parse_quantity(number)
            .map_err(|source| LimitError::Quantity { text: text.to_owned(), source })?;
        let change = match quantity.measure {
            Measure::Ratio => Change::Relative(quantity.value),
            measure => Change::Absolute(quantity.value, measure),
        };
        let is_rise = rest.starts_with('>');
        Ok(Self { text: text.to_owned(), figure: figure.to_owned(), is_rise, change })
    }
}

impl ChangeLimit {
    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The figure in it.
    pub fn figure(&self) -> &str {
        &self.figure
    }

    /// Whether its unit can be that of a figure.
    pub(crate) fn fits(&self, unit: FigureUnit) -> bool {
        match self.change {
            Change::Relative(_) | Change::Absolute(_, Measure::Plain) => true,
            Change::Absolute(_, measure) => match unit {
                FigureUnit::Seconds => measure == Measure::Time,
                FigureUnit::Bytes => measure == Measure::Bytes,
                FigureUnit::BitsPerSecond => measure == Measure::BitRate,
                FigureUnit::Count | FigureUnit::Percent | FigureUnit::Ratio => false,
            },
        }
    }

    /// What it comes to; `equal` if all values of both sides are one.
    pub(crate) fn judge(&self, contrast: Option<&Contrast>, equal: bool, fewest: usize) -> LimitFinding {
        let Some(contrast) = contrast.filter(|_| fewest >= super::FEWEST_FOR_INTERVAL) else {
            let least = super::FEWEST_FOR_INTERVAL;
            return LimitFinding::NotJudged(format!("it needs {least} runs a side, and there are {fewest}"));
        };
        let (low, high, limit) = match self.change {
            Change::Absolute(limit, _) => (contrast.difference.low, contrast.difference.high, limit),
            Change::Relative(limit) => match contrast.ratio {
                Some(ratio) => (ratio.low - 1.0, ratio.high - 1.0, limit),
                None if equal => (0.0, 0.0, limit),
                None => {
                    let why = "a value is not above 0, so that there is no ratio; give the change in the figure's unit";
                    return LimitFinding::NotJudged(why.to_owned());
                }
            },
        };
        let is_beyond = if self.is_rise { low > limit } else { high < limit };
        if is_beyond { LimitFinding::Regression } else { LimitFinding::Held }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_metrics::Estimate;

    fn contrast(low: f64, high: f64) -> Contrast {
        let ratio = Estimate { mean: f64::midpoint(low, high), low, high };
        let less = |it: f64| it - 1.0;
        let difference = Estimate { mean: less(ratio.mean), low: less(low), high: less(high) };
        Contrast { difference, ratio: Some(ratio), p: 0.01 }
    }

    #[test]
    fn only_an_interval_that_lies_wholly_beyond_it_is_a_regression() {
        let judge = |text: &str, low, high| {
            text.parse::<ChangeLimit>().unwrap().judge(Some(&contrast(low, high)), false, 6)
        };
        for (text, low, high, expected) in [
            ("startup.p99 > +10%", 1.11, 1.3, LimitFinding::Regression),
            ("startup.p99 > +10%", 1.09, 1.3, LimitFinding::Held),
            ("startup.p99 > +10%", 0.5, 0.7, LimitFinding::Held),
            ("fps < -10%", 0.7, 0.89, LimitFinding::Regression),
            ("fps <= -10%", 0.7, 0.91, LimitFinding::Held),
            ("cpu.nginx > +0.2", 1.3, 1.4, LimitFinding::Regression),
            ("startup.p99 > +200ms", 1.3, 1.4, LimitFinding::Regression),
            ("startup.p99 > +200ms", 1.1, 1.4, LimitFinding::Held),
        ] {
            assert_eq!(judge(text, low, high), expected, "{text} {low} {high}");
        }
    }

    #[test]
    fn what_cannot_be_judged_is_not_held() {
        let limit: ChangeLimit = "failed.ratio > +10%".parse().unwrap();
        let few = limit.judge(Some(&contrast(2.0, 3.0)), false, 5);
        assert_eq!(few, LimitFinding::NotJudged("it needs 6 runs a side, and there are 5".to_owned()));
        let nothing = Contrast { ratio: None, ..contrast(1.0, 1.5) };
        assert!(matches!(limit.judge(Some(&nothing), false, 6), LimitFinding::NotJudged(_)));
        assert_eq!(limit.judge(Some(&nothing), true, 6), LimitFinding::Held);
    }

    #[test]
    fn a_text_that_is_no_limit_says_what_would_be() {
        let error = |text: &str| text.parse::<ChangeLimit>().unwrap_err().to_string();
        assert!(error("startup.p99").contains("write for example 'startup.p99 > +10%'"));
        assert!(error("startup.p99 > 10%").contains("a change has a sign"));
        assert!(error("startup.p99 > +ten").contains("is not a quantity"));
        assert!(error("> +10%").contains("no comparison"));
    }
}
