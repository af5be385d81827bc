//! Whether some workload has the figure that a threshold is on, and whether statistic and limit fit it: known before the run.

use super::{FigureRatio, STATISTICS, ServerLoad, Statistic, Subject, Threshold};
use crate::summary::units::FigureUnit;
use weir_clients::meant;
use weir_metrics::common::names;
use weir_metrics::{Figure, Kind, Measure, Unit};
use weir_setting::named;

/// A text that is no threshold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThresholdError {
    /// No comparison in it.
    #[error("threshold '{0}': no comparison; write for example 'startup.p99 < 1s'")]
    NoOperator(String),
    /// The right side is no quantity.
    #[error("threshold '{text}': {source}")]
    Limit {
        /// The threshold.
        text: String,
        /// What is wrong.
        source: weir_metrics::ParseUnitError,
    },
    /// No workload has such a figure.
    #[error("threshold '{text}': there is no figure '{figure}'; {}", hint(.nearest.as_deref()))]
    UnknownFigure {
        /// The threshold.
        text: String,
        /// The name in it.
        figure: String,
        /// The known name that was meant, if one resembles it.
        nearest: Option<String>,
    },
    /// Workloads have the figure, and none of them ever fills it.
    #[error("threshold '{text}': no workload here can have this figure: {}", named(.instead))]
    Lacking {
        /// The threshold.
        text: String,
        /// Why, and what to ask instead, with names of settings in braces.
        instead: &'static str,
    },
    /// What follows the figure is no statistic.
    #[error("threshold '{text}': '{figure}' has no '{statistic}'; {fitting}")]
    UnknownStatistic {
        /// The threshold.
        text: String,
        /// The figure in it.
        figure: String,
        /// What follows it.
        statistic: String,
        /// What would do.
        fitting: &'static str,
    },
    /// The statistic does not fit the figure.
    #[error("threshold '{text}': '{statistic}' does not fit the figure; {fitting}")]
    UnfitStatistic {
        /// The threshold.
        text: String,
        /// The statistic in it.
        statistic: String,
        /// What would fit.
        fitting: &'static str,
    },
    /// The limit measures something else than the figure.
    #[error("threshold '{text}': '{figure}' is {measures}")]
    UnfitLimit {
        /// The threshold.
        text: String,
        /// The figure in it, with its statistic.
        figure: String,
        /// What the figure measures, and a limit that would fit.
        measures: &'static str,
    },
}

impl Threshold {
    /// Checks before the run that some workload has the figure and that the statistic fits it.
    ///
    /// # Errors
    /// Names the figure that was meant, if one resembles it, or the statistics that fit.
    pub fn check(&self, schemas: &[weir_metrics::Schema]) -> Result<(), ThresholdError> {
        let name = match &self.subject {
            Subject::Ratio(FigureRatio::Excess(it))
                if schemas.iter().all(|schema| schema.position(it.count).is_none()) =>
            {
                return Err(
                    self.no_figure(&self.name, || schemas.iter().flat_map(weir_metrics::Schema::figures))
                );
            }
            Subject::Ratio(_) => {
                return self.check_limit(&[Measure::Ratio], "a ratio; write for example 0.98 or 98%");
            }
            Subject::Growth(_) if self.statistic.is_some() => {
                return Err(self.unfit("a figure of the server takes none"));
            }
            Subject::Growth(growth) if growth.unit() == FigureUnit::Bytes => {
                return self.check_limit(&[Measure::Bytes], "bytes; write for example 100B");
            }
            Subject::Growth(_) => return self.check_limit(&[], "a number; write it without a unit"),
            Subject::Reconnected if self.statistic.is_some() => {
                return Err(self.unfit("it takes none: the longest of all restarts is meant"));
            }
            Subject::Reconnected => {
                return self.check_limit(&[Measure::Time], "a time; write for example 5s");
            }
            Subject::Load(load) => return self.check_server_load(load),
            Subject::Figure(name) => name,
        };
        let figures = || schemas.iter().flat_map(weir_metrics::Schema::figures);
        match figures().find(|figure| figure.is_called(name)) {
            Some(figure) => self.check_figure(figure),
            None => Err(self.no_figure(name, figures)),
        }
    }

    /// What is wrong with the name of a figure that is unknown.
    fn no_figure<Figures: Iterator<Item = &'static Figure>>(
        &self,
        name: &str,
        figures: impl Fn() -> Figures,
    ) -> ThresholdError {
        if let Some((front, statistic)) = name.rsplit_once('.')
            && let Some(figure) = figures().find(|figure| figure.name == front)
        {
            return ThresholdError::UnknownStatistic {
                text: self.text.clone(),
                figure: front.to_owned(),
                statistic: statistic.to_owned(),
                fitting: fitting(figure.kind),
            };
        }
        let mut unknown = self.unknown(figures().map(|figure| figure.name).chain(Subject::names()));
        if let ThresholdError::UnknownFigure { nearest: Some(nearest), .. } = &mut unknown
            && FigureRatio::named(nearest).is_some()
            && figures().all(|figure| figure.name != nearest)
        {
            nearest.push_str(".ratio");
        }
        unknown
    }

    /// Checks whether statistic and limit fit a figure of clients.
    fn check_figure(&self, figure: &Figure) -> Result<(), ThresholdError> {
        let fits = match (figure.kind, self.statistic) {
            (Kind::Counter, statistic) => {
                matches!(statistic, None | Some(Statistic::Rate | Statistic::Count))
            }
            (Kind::Gauge(_), statistic) => {
                matches!(statistic, None | Some(Statistic::Mean | Statistic::Max))
            }
            (Kind::Spread | Kind::Signed, statistic) => {
                let grows = statistic != Some(Statistic::Growth) || figure.name == names::DRIFT;
                grows && !matches!(statistic, None | Some(Statistic::Rate | Statistic::Ratio))
            }
        };
        if !fits {
            return Err(self.unfit(fitting(figure.kind)));
        }
        match (self.statistic, figure.unit) {
            (Some(Statistic::Count), _) if figure.kind != Kind::Counter => {
                self.check_limit(&[], "a number of values; write it without a unit")
            }
            (Some(Statistic::Rate), Unit::Micros) => self.check_limit(
                &[Measure::Time, Measure::Ratio],
                "seconds of each second; write for example 0.1",
            ),
            (_, Unit::Micros) => self.check_limit(&[Measure::Time], "a time; write for example 250ms or 1s"),
            (Some(Statistic::Rate), Unit::Bytes) => {
                self.check_limit(&[Measure::Bytes], "bytes a second; write for example 16kB")
            }
            (_, Unit::Bytes) => self.check_limit(&[Measure::Bytes], "bytes; write for example 16kB"),
            (Some(Statistic::Rate), Unit::Count) => {
                self.check_limit(&[Measure::Rate], "a number a second; write for example 20/s")
            }
            (_, Unit::Count) => self.check_limit(&[], "a number; write it without a unit"),
        }
    }

    /// A limit without a unit fits everything.
    fn check_limit(&self, fitting: &[Measure], measures: &'static str) -> Result<(), ThresholdError> {
        if self.limit.measure == Measure::Plain || fitting.contains(&self.limit.measure) {
            return Ok(());
        }
        let statistic = STATISTICS.iter().find(|(_, it)| Some(*it) == self.statistic);
        let figure = statistic.map_or(self.name.clone(), |(name, _)| format!("{}.{name}", self.name));
        Err(ThresholdError::UnfitLimit { text: self.text.clone(), figure, measures })
    }

    /// Checks it against totals that are known by `names` alone, where there is no run.
    ///
    /// # Errors
    /// Names the total that was meant, if one resembles it, or says that a total takes no statistic.
    pub fn check_total<'a>(
        &self,
        names: impl IntoIterator<Item = &'a str, IntoIter: Clone>,
    ) -> Result<(), ThresholdError> {
        let names = names.into_iter();
        if !names.clone().any(|name| name == self.name) {
            return Err(self.unknown(names));
        }
        match self.statistic {
            None | Some(Statistic::Count) => Ok(()),
            Some(_) => Err(self.unfit("a total takes none or count")),
        }
    }

    fn check_server_load(&self, load: &ServerLoad) -> Result<(), ThresholdError> {
        match self.statistic {
            None => {}
            Some(Statistic::Mean | Statistic::Max) if load.has_mean_and_max() => {}
            Some(_) if load.has_mean_and_max() => return Err(self.unfit("it takes none, mean or max")),
            Some(Statistic::Max) => {}
            Some(_) => return Err(self.unfit("it takes none")),
        }
        match load {
            ServerLoad::Memory => self.check_limit(&[Measure::Bytes], "bytes; write for example 500MB"),
            ServerLoad::Descriptors => self.check_limit(&[], "a number; write it without a unit"),
            ServerLoad::Cpu | ServerLoad::BusiestThread | ServerLoad::Thread(_) => {
                self.check_limit(&[Measure::Ratio], "CPU of one core; write for example 80%")
            }
        }
    }

    fn unknown<'a>(&self, names: impl Iterator<Item = &'a str>) -> ThresholdError {
        ThresholdError::UnknownFigure {
            text: self.text.clone(),
            figure: self.name.clone(),
            nearest: meant(&self.name, names).map(str::to_owned),
        }
    }

    fn unfit(&self, fitting: &'static str) -> ThresholdError {
        let statistic =
            STATISTICS.iter().find(|(_, s)| Some(*s) == self.statistic).map_or("nothing", |(name, _)| name);
        ThresholdError::UnfitStatistic { text: self.text.clone(), statistic: statistic.to_owned(), fitting }
    }
}

/// What to do about an unknown figure.
fn hint(nearest: Option<&str>) -> String {
    nearest.map_or_else(
        || "docs/method names them all".to_owned(),
        |nearest| format!("did you mean '{nearest}'?"),
    )
}

/// The statistics of a kind of figure, in words.
fn fitting(kind: Kind) -> &'static str {
    match kind {
        Kind::Counter => "a counter takes none, count or rate",
        Kind::Gauge(_) => "a level takes none, mean or max",
        Kind::Spread | Kind::Signed => {
            "a distribution takes min, mean, p50, p90, p95, p99, p999, max or count"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_metrics::Schema;

    #[test]
    fn the_servers_cpu_memory_descriptors_and_threads_can_be_asked_for() {
        let schemas = [Schema::new(&[])];
        let check =
            |text: &str| text.parse::<Threshold>().unwrap().check(&schemas).map_err(|it| it.to_string());
        for fine in [
            "server.cpu < 80%",
            "server.cpu.max <= 1.5",
            "server.memory.max < 500MB",
            "server.descriptors <= 1000",
            "server.busiest_thread < 90%",
            "thread.SW-WebRTC.cpu < 90%",
            "restart.reconnected < 5s",
        ] {
            assert_eq!(check(fine), Ok(()), "{fine}");
        }
        for (wrong, words) in [
            ("server.cpu.p99 < 80%", "it takes none, mean or max"),
            ("server.cpu < 1s", "write for example 80%"),
            ("server.memory < 80%", "bytes"),
            ("server.cpus < 80%", "did you mean 'server.cpu'?"),
            ("thread.x.cpu.p99 < 90%", "it takes none"),
            ("restart.reconnected.p99 < 5s", "the longest of all restarts"),
            ("restart.reconnected < 5%", "write for example 5s"),
            ("restart.reconnect < 5s", "did you mean 'restart.reconnected'?"),
        ] {
            let said = check(wrong).unwrap_err();
            assert!(said.contains(words), "{said}");
        }
    }

    #[test]
    fn a_wrong_threshold_says_what_would_be_right() {
        let schemas = [Schema::new(&[])];
        let check =
            |text: &str| text.parse::<Threshold>().and_then(|t| t.check(&schemas)).unwrap_err().to_string();
        assert_eq!(
            check("startupp.p99 < 1s"),
            "threshold 'startupp.p99 < 1s': there is no figure 'startupp'; did you mean 'startup'?"
        );
        assert_eq!(
            check("startup.p98 < 1s"),
            "threshold 'startup.p98 < 1s': 'startup' has no 'p98'; a distribution takes min, mean, p50, p90, p95, p99, p999, max or count"
        );
        assert!(
            check("stalls.p98 < 1").ends_with("'stalls' has no 'p98'; a counter takes none, count or rate")
        );
        assert!(check("startup < 1s").contains("p99"));
        for (wrong, right) in [("bit_rate.ratio > 1", "bitrate.ratio"), ("failed == 0", "failed.ratio")] {
            assert!(check(wrong).ends_with(&format!("did you mean '{right}'?")), "{}", check(wrong));
        }
        assert!(check("ts.nosuch == 0").ends_with("docs/method names them all"));
        assert!(check("stalls.p99 < 1").contains("a counter takes"));
        assert!(check("startup.p99").contains("no comparison"));
        assert!(
            check("startup.p99 < 1mbps").ends_with("'startup.p99' is a time; write for example 250ms or 1s")
        );
        assert!(check("media.rate > 4mbps").contains("bytes a second"));
        assert!(
            check("stalls == 0%").contains("a number") && check("bitrate.ratio > 1s").contains("a ratio")
        );
        assert!(check("messages == 3/s").contains("a number"));
        for fine in [
            "startup.p99 < 1",
            "failed.ratio <= 0.1%",
            "stalled.rate < 1%",
            "media > 1MB",
            "drift.count > 3",
            "messages.rate >= 10000/s",
        ] {
            fine.parse::<Threshold>().unwrap().check(&schemas).unwrap();
        }
        assert!(
            check("startup.p99 < soon").contains("'soon'")
                || check("startup.p99 < soon").contains("quantity")
        );
    }
}
