//! What there is to know of a protocol: the value that each of them has, and what a workload is made of.

use crate::given::Given;
use crate::group::Group;
use crate::served_stream::ServedStream;
use crate::unfilled::{INGESTER, Unfilled};
use std::time::Duration;
use weir_clients::mqtt::RunMessages;
use weir_clients::{Column, Placeholders, PlayOptions, PublishOptions, Scheme, Workload, WorkloadError};
use weir_metrics::{BitRate, Counter, Recorder, Schema, grouped};
use weir_origin::Server;
use weir_setting::named;

/// A protocol.
#[derive(Debug)]
pub struct Protocol {
    /// The schemes of its URLs, with their ports, and which of them are TLS.
    pub schemes: &'static [Scheme],
    /// What may stand in braces in its URLs.
    pub placeholders: Placeholders,
    /// Schemes of others whose URLs are of this protocol if their path ends so.
    pub suffix: Option<(&'static [Scheme], &'static str)>,
    /// Whether a server can send a client of a plain URL on to another that is reached over TLS.
    pub redirects: bool,
    /// The figures of its clients: the common ones and its own.
    pub schema: Schema,
    /// What its viewers leave behind when they end: the columns of [`weir_clients::ClientRecord::numbers`].
    pub columns: &'static [Column],
    /// Totals of its clients that are worth a warning.
    pub excesses: &'static [Excess],
    /// What counts its datagrams, if its units are something else.
    pub datagrams: Option<DatagramCounts>,
    /// How it is played.
    pub play: Option<Play>,
    /// How it is published.
    pub publish: Option<Publish>,
    /// The options of a workload that saves its messages, if it has messages.
    pub ingest: Option<&'static [Group]>,
    /// How `weir origin` serves it.
    pub serve: Option<Serve>,
}

/// What counts the datagrams of a protocol.
#[derive(Clone, Copy, Debug)]
pub struct DatagramCounts {
    /// Those that have media, in either direction; those that should have come and did not are among them.
    pub with_media: &'static [Counter],
    /// Those that were sent and never acknowledged, whatever became of them; `None` where nothing is acknowledged.
    pub given_up: Option<Counter>,
}

/// A total that is worth a warning of its own, and no failure, if it is more than a part of another.
#[derive(Clone, Copy, Debug)]
pub struct Excess {
    /// What is counted.
    pub counter: Counter,
    /// What it is held against.
    pub beside: Counter,
    /// How much of that is still no reason to warn.
    pub above: f64,
    /// How much of that makes a run invalid, of what weir itself did not do. Less of it degrades the run, in place of a warning.
    pub invalid_from: Option<f64>,
    /// What is counted and what to look at, with both numbers as `{count}` and `{beside}`, and names of settings in braces.
    pub words: &'static str,
}

/// An excess that is weir's own doing.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnExcess {
    /// What was counted, as a part of what it is held against.
    pub share: f64,
    /// The part that makes a run invalid.
    pub limit: f64,
    /// What was counted.
    pub words: String,
}

impl Excess {
    /// The warning on these totals, if they are worth one.
    pub(crate) fn warning(&self, totals: &Recorder) -> Option<String> {
        if self.invalid_from.is_some() { None } else { self.said(totals) }
    }

    /// What it says of the run by these totals, if it is weir's own doing.
    pub(crate) fn own(&self, totals: &Recorder) -> Option<OwnExcess> {
        let (limit, words) = (self.invalid_from?, self.said(totals)?);
        let (count, beside) = (totals.counter(self.counter) as f64, totals.counter(self.beside) as f64);
        // Of all that was to be done: what was not is not in what it is held against.
        let share = count / (count + beside).max(1.0);
        Some(OwnExcess { share, limit, words })
    }

    fn said(&self, totals: &Recorder) -> Option<String> {
        let (count, beside) = (totals.counter(self.counter), totals.counter(self.beside));
        let is_excess = count as f64 > beside as f64 * self.above;
        let numbers = || self.words.replace("{count}", &grouped(count)).replace("{beside}", &grouped(beside));
        let words = || named(&numbers());
        is_excess.then(words)
    }
}

/// How `weir origin` serves a protocol.
#[derive(Clone, Copy, Debug)]
pub struct Serve {
    /// What listens; several protocols may have the same.
    pub server: &'static Server,
    /// What the option says that names the address to listen at.
    pub help: &'static str,
    /// Whether it serves what is published by RTMP, which is then listened for as well.
    pub needs_publishers: bool,
}

/// How a protocol is played.
#[derive(Debug)]
pub struct Play {
    /// The options of viewers.
    pub options: &'static [Group],
    /// What viewers with these options are asked by default, written as thresholds, beside what every client is asked.
    pub asked: fn(&Given, &Circumstances<'_>) -> Vec<&'static str>,
    /// Figures that viewers with these options never fill.
    pub unfilled: fn(&Given) -> &'static [Unfilled],
    /// What viewers of a stream are asked that the run itself publishes at their URL: pictures, and sound if it has some.
    /// A server takes a codec that it cannot handle, and shows nothing of it.
    pub shown: Option<[&'static str; 2]>,
    /// How many messages publishers must have sent, while subscribers were there, for one to have come to these; none where that is
    /// not known, or nothing need come. A broker that denies one of them, and does not say so, passes nothing on.
    pub least_published: Option<fn(&Load<'_>, &Load<'_>) -> Option<u32>>,
    /// Whether the server is asked what there is to play; a workload without a number of clients has one for each.
    pub discovers: bool,
    /// Whether viewers load ahead of what they show: a server that is a little too slow is not seen before that is used up.
    pub loads_ahead: bool,
    /// How weir's own origin serves viewers a stream, by which it is measured what one costs; `None` where that is not measured.
    pub served: Option<ServedStream>,
    /// How many viewers there are for each URL if nothing says how many.
    pub clients: fn(&Given) -> u32,
    /// Makes viewers.
    pub make: Make<PlayOptions>,
}

/// How a protocol is published.
#[derive(Debug)]
pub struct Publish {
    /// The options of publishers.
    pub options: &'static [Group],
    /// What each publisher with these options sends.
    pub output: fn(&Given, u64) -> Output,
    /// What publishers with these options are asked by default, written as thresholds, beside what every client is asked; and
    /// whether the scenario restarts servers, which cuts links.
    pub asked: fn(&Given, bool) -> Vec<&'static str>,
    /// Figures that publishers never fill.
    pub unfilled: &'static [Unfilled],
    /// Makes publishers.
    pub make: Make<PublishOptions>,
}

/// What a scenario says of its workloads beside the options of one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Circumstances<'a> {
    /// The URLs of the workload.
    pub urls: &'a [String],
    /// Whether the scenario restarts servers, which cuts links.
    pub restarts: bool,
    /// The options of its publishers of the same protocol.
    pub publishers: &'a [&'a Given],
    /// Whether several processes make the load, so that publishers may be in others.
    pub is_distributed: bool,
    /// Whether some of its clients leave before its end.
    pub members_leave: bool,
    /// Whether the scenario publishes pictures itself, by whatever protocol, to a host that it plays from.
    pub publishes_pictures: bool,
}

/// A workload by what is known before it is made.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    /// Its URLs.
    pub urls: &'a [String],
    /// Its options.
    pub given: &'a Given,
}

/// Makes a workload. Resolves names, so it may take a while.
pub type Make<Options> = fn(Making<'_, Options>) -> Result<Workload, WorkloadError>;

/// What a workload is made of.
#[derive(Debug)]
pub struct Making<'a, Options> {
    /// Its URLs, with `{i}` expanded.
    pub urls: &'a [String],
    /// What all protocols have.
    pub options: Options,
    /// What only this one has, and options that it shares with some.
    pub given: &'a Given,
    /// What is known of the run.
    pub run: &'a RunContext,
}

/// What a run passes to the workloads that are made for it.
#[derive(Clone, Debug, Default)]
pub struct RunContext {
    /// The seed of everything random.
    pub seed: u64,
    /// The time for goodbyes at the end.
    pub drain: Duration,
    /// What its MQTT clients share.
    pub messages: RunMessages,
}

/// What a publisher sends, by its options.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Output {
    /// How much.
    pub bit_rate: Option<BitRate>,
    /// The time between two frames, in seconds.
    pub frame_time: Option<f64>,
    /// Whether there is sound in it, where that is known.
    pub sound: bool,
    /// How many messages a second, if it sends messages.
    pub messages_per_second: Option<f64>,
    /// After how many messages it ends by itself.
    pub count: Option<u64>,
    /// How long it takes for these at its rate.
    pub about: Option<Duration>,
    /// Whether the peer acknowledges each message.
    pub acknowledged: bool,
}

/// What a workload does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// A workload that plays.
    Play,
    /// A workload that publishes.
    Publish,
    /// A workload that saves messages.
    Ingest,
}

impl Verb {
    /// As the command line has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Play => "play",
            Self::Publish => "publish",
            Self::Ingest => "ingest",
        }
    }
}

impl Protocol {
    /// The options that a workload of this verb has; `None` if the protocol has no such workload.
    pub fn options(&self, verb: Verb) -> Option<&'static [Group]> {
        match verb {
            Verb::Play => self.play.as_ref().map(|play| play.options),
            Verb::Publish => self.publish.as_ref().map(|publish| publish.options),
            Verb::Ingest => self.ingest,
        }
    }

    /// Figures that a workload of this verb never fills with these options.
    pub fn unfilled(&self, verb: Verb, given: &Given) -> &'static [Unfilled] {
        match verb {
            Verb::Play => self.play.as_ref().map_or(&[], |play| (play.unfilled)(given)),
            Verb::Publish => self.publish.as_ref().map_or(&[], |publish| publish.unfilled),
            Verb::Ingest => INGESTER,
        }
    }

    /// Its options for all verbs.
    pub fn groups(&self) -> impl Iterator<Item = &'static Group> + use<> {
        let verbs = [Verb::Play, Verb::Publish, Verb::Ingest].map(|verb| self.options(verb));
        verbs.into_iter().flatten().flatten()
    }

    /// Its schemes as a sentence has them.
    pub(crate) fn named(&self) -> String {
        let schemes = self.schemes.iter().map(|scheme| format!("{}://", scheme.name));
        schemes.collect::<Vec<_>>().join(" and ")
    }
}
