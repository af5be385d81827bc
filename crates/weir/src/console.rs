//! Who looks on at the runs of a command: the live view on the terminal, and the live page.

use crate::args::RunOptions;
use crate::live::Live;
use crate::live_page::LivePage;
use crate::print::note;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use weir_engine::aggregator::Aggregator;
use weir_engine::run::{Prepared, Watcher};
use weir_engine::summary::Summary;
use weir_runner::run::Session;
use weir_runner::{AnswerSoFar, Observer, RunError};

/// What looks on.
pub(crate) struct Console<'a> {
    pub(crate) page: LivePage,
    options: &'a RunOptions,
    /// The view of the run that goes on.
    live: Option<Live>,
}

impl<'a> Console<'a> {
    /// With a live page if it was asked for; where it is has been printed.
    ///
    /// # Errors
    /// See [`LivePage::start`].
    pub(crate) fn open(options: &'a RunOptions, name: &str) -> Result<Self, RunError> {
        Ok(Self { page: LivePage::start(&options.live, name)?, options, live: None })
    }

    /// For runs that this looks on at.
    ///
    /// # Errors
    /// See [`crate::args::AgentOptions::settings`].
    pub(crate) fn session<'s>(&'s mut self, interrupt: &'s Arc<AtomicBool>) -> Result<Session<'s>, RunError> {
        Ok(Session { agents: self.options.agents.settings()?, watcher: self, interrupt })
    }
}

impl Watcher for Console<'_> {
    fn second(&mut self, second: u32, aggregator: &Aggregator) {
        self.live.iter_mut().for_each(|live| live.second(second, aggregator));
        self.page.second(second, aggregator);
    }

    fn tick(&mut self, elapsed: Duration) {
        self.live.iter_mut().for_each(|live| live.tick(elapsed));
    }

    fn lag(&mut self, agent: &str, behind: Duration) {
        self.live.iter_mut().for_each(|live| live.lag(agent, behind));
        self.page.lag(agent, behind);
    }
}

impl Observer for Console<'_> {
    fn line(&mut self, line: &str) {
        if !self.options.print.quiet {
            note(line);
        }
    }

    fn begins(&mut self, prepared: &Prepared, length: Duration) {
        self.live = Some(Live::new(length, self.options));
        self.page.begins(prepared);
    }

    fn ended(&mut self, summary: Option<&Summary>) {
        self.live.take().iter_mut().for_each(Live::clear);
        self.page.ended(summary);
    }

    fn comes_to(&mut self, answer: AnswerSoFar<'_>) {
        self.page.comes_to(answer);
    }
}
