//! The whole of it: connections to the broker, one after the other, and the threads that decode and save.
//!
//! Whatever a store does, it does on a thread of its own: one that does not answer is left behind when the time for the last commit is
//! over. What it had not said to be committed was not acknowledged.

use crate::column::Table;
use crate::counts::{Counts, Totals};
use crate::decode::Decode;
use crate::error::StoreError;
use crate::exchange::exchange;
use crate::gaps::{DropCause, Missing};
use crate::gather::{Bounds, Gatherer};
use crate::inbox::Inbox;
use crate::receive::{ConnectionEnd, Receiver, ReceiverOptions, ReceiverState, SaverMessage};
use crate::retry::{BACK_OFF, pause};
use crate::store::{Destination, Durability, Store};
use crate::store_thread::{
    GRACE, OPENING, POLL_INTERVAL, Step, StoreThread, ThreadOutcome, Waiting, on_a_thread,
};
use crate::writer::{Finish, Writer};
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use weir_mqtt::client::{Acknowledging, Session as MqttSession};
use weir_mqtt::{ClientOptions, MAX_PACKET_SIZE, Qos};
use weir_shard::{Endpoint, MessageSender, Shard, clock};
use weir_web::SocketRequest;

/// A connection that lasted so long was a good one: the next wait is a short one again.
const STEADY: Duration = Duration::from_secs(10);

/// How long the last commit may take once it is time to stop, unless something else is said: a commit takes milliseconds, and seconds on
/// a disk that is busy.
pub const DRAIN: Duration = Duration::from_secs(10);

/// Room that a packet needs beside its payload: topic, properties, a mark.
const AROUND_PAYLOAD: usize = 128 * 1024;

/// Where messages come from.
#[derive(Debug)]
pub struct Source {
    /// The way to the broker.
    pub endpoint: Endpoint,
    /// The WebSocket that carries packets, if one does.
    pub socket: Option<Arc<SocketRequest>>,
    /// What to subscribe to.
    pub filter: String,
    /// How the broker is called in a message: without user and password.
    pub name: String,
    /// Version, name, credentials, keep-alive, clean start, session expiry and receive maximum; the rest is set here.
    pub options: ClientOptions,
    /// Quality of service of the subscription.
    pub qos: Qos,
    /// Whether the session ends when this ingester is told to stop, however long it would outlive a connection that breaks.
    pub ends_session: bool,
}

impl Source {
    /// Whether the subscription is shared with other clients (MQTT 5 section 4.8.2).
    pub fn is_shared(&self) -> bool {
        self.filter.starts_with("$share/")
    }

    /// Why the broker has most likely dropped what is missing, after all this.
    pub fn drop_cause(&self, totals: &Totals) -> DropCause {
        DropCause::likely(self.qos == Qos::AtMostOnce, totals.sessions_lost).after(totals.reconnects)
    }
}

/// What is to be done.
#[derive(Debug)]
pub struct IngestSettings {
    /// Where messages come from.
    pub source: Source,
    /// Where rows go.
    pub destination: Destination,
    /// What of a commit is on the disk when its messages are acknowledged.
    pub durability: Durability,
    /// The table's name.
    pub table: String,
    /// Records of a batch, at most.
    pub batch: usize,
    /// How long the first record of a batch waits for others, at most.
    pub linger: Duration,
    /// Records, dead letters included, after which there are enough.
    pub count: Option<u64>,
    /// The largest payload that is taken, in bytes.
    pub max_message: usize,
    /// Bytes that may wait to be saved; one read and one message more are taken.
    pub queue: usize,
    /// Whether a broker and a store that are away at the start are waited for, as they are later.
    pub waits: bool,
}

/// Why it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// There were as many records as were asked for.
    Enough,
    /// It was asked to stop.
    Stopped,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Why it ended; or the line that says what went wrong.
    pub ended: Result<Ended, String>,
    /// Whether that is that a broker or a database was never there.
    pub is_unanswered: bool,
    /// What was counted.
    pub totals: Totals,
    /// Which messages are missing in the publishers' numbers.
    pub missing: Missing,
    /// Why the broker has most likely dropped them.
    pub cause: DropCause,
}

/// What could not be begun.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// The store.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The options cannot be said in a CONNECT.
    #[error("the options cannot be said to a broker: {0}")]
    Options(#[from] weir_mqtt::EncodeError),
    /// The system has no descriptor or no thread left.
    #[error("{0}")]
    System(#[from] std::io::Error),
}

/// Takes messages and saves them until there are enough, `stop` is set, or something is wrong for good. `say` takes
/// single lines that a person should read: what is interrupted, and that it goes on.
///
/// # Errors
/// What could not be begun.
pub fn run(
    settings: &IngestSettings,
    decode: &mut Decode,
    counts: &Arc<Counts>,
    stop: &Arc<AtomicBool>,
    say: &(dyn Fn(&str) + Sync),
) -> Result<Outcome, IngestError> {
    run_with_drain(settings, DRAIN, decode, counts, stop, say)
}

/// The same with another time for the last commit.
///
/// # Errors
/// As [`run`].
pub fn run_with_drain(
    settings: &IngestSettings,
    drain: Duration,
    decode: &mut Decode,
    counts: &Arc<Counts>,
    stop: &Arc<AtomicBool>,
    say: &(dyn Fn(&str) + Sync),
) -> Result<Outcome, IngestError> {
    let columns = decode.columns();
    let width = columns.len();
    let table = Table::new(settings.table.clone(), columns);
    let outcome = |ended, is_unanswered| {
        let totals = counts.totals();
        let cause = settings.source.drop_cause(&totals);
        Outcome { ended, is_unanswered, totals, missing: counts.missing(), cause }
    };
    let store = settings.destination.store(table, settings.durability);
    let ending = Ending { stop, drain, since: Cell::new(None) };
    let mut store = match opened(store, settings.waits, &ending, say)? {
        Ok(store) => store,
        Err(words) => return Ok(outcome(Err(words), settings.destination.is_server())),
    };
    let inbox = Arc::new(Inbox::new(settings.queue, counts.clone()));
    let options = client_options(settings);
    options.check()?;
    let options = Arc::new(ReceiverOptions {
        client: Arc::new(options),
        socket: settings.source.socket.clone(),
        filter: settings.source.filter.clone(),
        is_shared: settings.source.is_shared(),
        qos: settings.source.qos,
        ends_session: settings.source.ends_session,
        max_message: settings.max_message,
        inbox: inbox.clone(),
        counts: counts.clone(),
    });
    let mut shard = Shard::new(ReceiverState::default())?;
    let bounds = Bounds {
        batch: settings.batch,
        linger: settings.linger,
        count: settings.count,
        max_message: settings.max_message,
    };
    let (ended, is_unanswered) = std::thread::scope(|scope| {
        let message_sender = shard.message_sender();
        let left_behind = Arc::<AtomicBool>::default();
        let (filling, saving) = exchange(width, left_behind.clone());
        let gatherer = Gatherer {
            decode,
            bounds,
            filling,
            inbox: inbox.clone(),
            message_sender: message_sender.clone(),
            counts: counts.clone(),
            stop: stop.clone(),
            say,
        };
        let name = store.name();
        let (steps, progress) = channel();
        let (inbox_of_writer, counts_of_writer, halt) = (inbox.clone(), counts.clone(), stop.clone());
        let count = settings.count;
        on_a_thread("weir-save", move || {
            let _farewell = FinishedOnDrop(message_sender.clone());
            let say = |line: &str| {
                // Whoever has left it behind hears nothing more.
                let _ = steps.send(Step::Said(line.to_owned()));
            };
            let writer = Writer {
                store: &mut *store,
                saving,
                count,
                inbox: inbox_of_writer,
                message_sender,
                counts: counts_of_writer,
                stop: halt,
                say: &say,
            };
            let finish = writer.run();
            let _ = steps.send(Step::Done(finish));
        })?;
        let saver = StoreThread { progress, say };
        let decoding = std::thread::Builder::new().name("weir-decode".to_owned());
        let decoding = decoding.spawn_scoped(scope, move || gatherer.run())?;
        let links = Links {
            source: &settings.source,
            options: &options,
            waits: settings.waits,
            ending: &ending,
            saver: &saver,
            done: Cell::new(None),
            say,
        };
        let link = links.run(&mut shard);
        // Whatever ended the links: what came is saved.
        inbox.close();
        let panicked = |which: &str| Finish::Failed(format!("the {which} thread has panicked"));
        let done = links.done.take();
        let finish = done.map_or_else(|| saver.finish(&ending, &left_behind), Some);
        let decoded = decoding.join();
        let is_left_behind = finish.is_none();
        let finish = finish.unwrap_or_else(|| {
            let seconds = drain.as_secs_f64();
            Finish::Failed(format!(
                "{name}: the last commit was not over {seconds} s after the end; what it held was not acknowledged"
            ))
        });
        let finish = match decoded {
            Ok(Ok(())) => finish,
            Ok(Err(words)) => Finish::Failed(words),
            Err(_) => panicked("decoding"),
        };
        Ok::<_, std::io::Error>(match (finish, link) {
            (Finish::Failed(words), _) => (Err(words), is_left_behind && settings.destination.is_server()),
            (_, Err(LinkLoss { words, is_unanswered })) => (Err(words), is_unanswered),
            (Finish::Enough, Ok(())) => (Ok(Ended::Enough), false),
            (Finish::Done, Ok(())) => (Ok(Ended::Stopped), false),
        })
    })?;
    Ok(outcome(ended, is_unanswered))
}

impl StoreThread<'_, Finish> {
    /// Waits until all is saved, or the time for that is over: then it is to begin with no other batch, and `None` says that it does
    /// not come back from the one that it has.
    fn finish(&self, ending: &Ending<'_>, left_behind: &AtomicBool) -> Option<Finish> {
        loop {
            match self.look(POLL_INTERVAL) {
                Ok(Some(finish)) => return Some(finish),
                Ok(None) if ending.is_over_by(GRACE) => return None,
                Ok(None) if ending.is_over() => left_behind.store(true, Relaxed),
                Ok(None) => {}
                Err(_) => return Some(Finish::Failed("the saving thread has panicked".to_owned())),
            }
        }
    }
}

/// The wish to stop, and the time that there is from then on.
struct Ending<'a> {
    stop: &'a Arc<AtomicBool>,
    drain: Duration,
    since: Cell<Option<Instant>>,
}

impl Ending<'_> {
    fn has_begun(&self) -> bool {
        let stops = self.stop.load(Relaxed);
        if stops && self.since.get().is_none() {
            self.since.set(Some(Instant::now()));
        }
        stops
    }

    fn is_over(&self) -> bool {
        self.is_over_by(Duration::ZERO)
    }

    /// Whether the time is over, and this time behind it.
    fn is_over_by(&self, more: Duration) -> bool {
        self.lasts(self.drain + more)
    }

    /// Whether it is this long ago that it began.
    fn lasts(&self, time: Duration) -> bool {
        self.has_begun() && self.since.get().is_some_and(|since| since.elapsed() >= time)
    }
}

/// A store, or what is wrong with it when it is time to stop.
type OpenOutcome = Result<Box<dyn Store>, String>;

/// Opens a store on a thread of its own: nothing that its server does, or does not, holds up the end.
fn opened(
    mut store: Box<dyn Store>,
    waits: bool,
    ending: &Ending<'_>,
    say: &(dyn Fn(&str) + Sync),
) -> Result<OpenOutcome, IngestError> {
    let name = store.name();
    let stop = ending.stop.clone();
    let is_over = || ending.lasts(GRACE.min(ending.drain));
    let waiting = Waiting { is_over: &is_over, say };
    let opened = waiting.attend(&format!("{name}: {OPENING}"), move |say| {
        let opened = open(&mut *store, waits, &stop, say);
        (store, opened)
    })?;
    match opened {
        ThreadOutcome::Done((store, opened)) => Ok(opened?.map(|()| store)),
        ThreadOutcome::LeftBehind => {
            Ok(Err(format!("{name}: its tables were not open when it was time to stop")))
        }
        ThreadOutcome::Panicked => Ok(Err(format!("{name}: the thread that opens it has panicked"))),
    }
}

/// Opens the store. One that is away is waited for, if it is to be; the inner error is what is wrong with it when it is
/// time to stop.
fn open(
    store: &mut dyn Store,
    waits: bool,
    stop: &AtomicBool,
    say: &dyn Fn(&str),
) -> Result<Result<(), String>, StoreError> {
    let mut wait = BACK_OFF.0;
    let mut said = None;
    loop {
        let words = match store.open() {
            Err(StoreError::Unavailable(words)) if waits => words,
            Err(error) => return Err(error),
            Ok(()) => break,
        };
        if said.as_ref() != Some(&words) {
            say(&format!("{words}; waiting until there is a place to save to"));
        }
        if !pause(wait, stop) {
            return Ok(Err(words));
        }
        said = Some(words);
        wait = (wait * 2).min(BACK_OFF.1);
    }
    if said.is_some() {
        say(&format!("{}: ready", store.name()));
    }
    Ok(Ok(()))
}

fn client_options(settings: &IngestSettings) -> ClientOptions {
    ClientOptions {
        // A message that is too large is read in pieces and put among the dead letters. A broker that knew the limit
        // would drop it in silence (MQTT-3.1.2-25).
        maximum_packet_size: MAX_PACKET_SIZE,
        whole: (settings.max_message + AROUND_PAYLOAD).min(MAX_PACKET_SIZE as usize) as u32,
        acknowledging: Acknowledging::ByCaller,
        // The queue is bounded; a broker that sends more than was requested has to wait.
        strict_receive_maximum: false,
        ..settings.source.options.clone()
    }
}

/// Reports that the saver has ended, also when its thread panics.
struct FinishedOnDrop(MessageSender<SaverMessage>);

impl Drop for FinishedOnDrop {
    fn drop(&mut self) {
        self.0.post(SaverMessage::Finished);
    }
}

/// Why there is no connection to the broker any more.
struct LinkLoss {
    words: String,
    /// Whether there never was one, and the broker did not say why.
    is_unanswered: bool,
}

/// The connections to the broker.
struct Links<'a> {
    source: &'a Source,
    options: &'a Arc<ReceiverOptions>,
    /// Whether to go on before the first subscription was granted.
    waits: bool,
    ending: &'a Ending<'a>,
    saver: &'a StoreThread<'a, Finish>,
    /// What the saving thread ended with, once it has.
    done: Cell<Option<Finish>>,
    say: &'a (dyn Fn(&str) + Sync),
}

impl Links<'_> {
    /// Connects, again and again, until the saving thread has ended, or it is time to stop.
    fn run(&self, shard: &mut Shard<ReceiverState>) -> Result<(), LinkLoss> {
        // A process before this one may have begun the session.
        let clean = self.source.options.clean_start;
        let mut session = if clean { MqttSession::new() } else { MqttSession::continued() };
        let mut subscribed_once = false;
        let mut wait = BACK_OFF.0;
        // Why there was no subscription yet.
        let mut away: Option<String> = None;
        for connection in 1.. {
            let began = Instant::now();
            let ended = self.connection(shard, session, connection, subscribed_once, away.is_some());
            let ConnectionEnd { words, for_good, was_subscribed, .. } = &ended;
            subscribed_once |= was_subscribed;
            if shard.world.finished || self.ending.has_begun() {
                let away = away.filter(|_| !subscribed_once);
                return away.map_or(Ok(()), |words| Err(LinkLoss { words, is_unanswered: true }));
            }
            let words = format!("{}: {words}", self.source.name);
            if *for_good || !subscribed_once && !self.waits {
                return Err(LinkLoss { words, is_unanswered: !for_good });
            }
            if began.elapsed() > STEADY {
                wait = BACK_OFF.0;
            }
            if *was_subscribed {
                (self.say)(&format!("{words}; connecting again"));
            }
            if !subscribed_once && away.as_ref() != Some(&words) {
                (self.say)(&format!("{words}; waiting until it is there"));
                away = Some(words);
            }
            self.pause(shard, wait);
            wait = (wait * 2).min(BACK_OFF.1);
            Counts::add(&self.options.counts.reconnects, u64::from(subscribed_once));
            session = ended.session;
        }
        Ok(())
    }

    fn pause(&self, shard: &mut Shard<ReceiverState>, wait: Duration) {
        let until = clock::now() + wait;
        while clock::now() < until && !shard.world.finished && !self.ending.has_begun() {
            self.listen();
            if shard.turn(until.min(clock::now() + POLL_INTERVAL)).is_err() {
                return;
            }
        }
    }

    /// Passes on what the saving thread has said.
    fn listen(&self) {
        if let Ok(Some(finish)) = self.saver.look(Duration::ZERO) {
            self.done.set(Some(finish));
        }
    }

    /// One connection, to its end.
    fn connection(
        &self,
        shard: &mut Shard<ReceiverState>,
        session: MqttSession,
        connection: u32,
        resuming: bool,
        awaited: bool,
    ) -> ConnectionEnd {
        let lost_before = Counts::of(&self.options.counts.sessions_lost);
        let receiver = Receiver::new(self.options.clone(), session, connection, resuming, clock::now());
        let id = shard.open(&self.source.endpoint, Box::new(receiver)).ok();
        shard.world.session = id;
        let (mut stopping, mut announced) = (false, !resuming && !awaited);
        loop {
            if let Some(ended) = shard.world.ended.take() {
                shard.world.session = None;
                return ended;
            }
            self.listen();
            if self.ending.is_over() {
                // The last commit is not over: what it holds stays with the broker.
                return ConnectionEnd {
                    session: MqttSession::new(),
                    words: "stopped".to_owned(),
                    for_good: false,
                    was_subscribed: true,
                };
            }
            if !stopping && self.ending.has_begun() {
                stopping = true;
                if let Some(id) = id {
                    shard.stop(id);
                }
                self.options.inbox.close();
                continue;
            }
            if !announced && Counts::of(&self.options.counts.subscribed) > 0 {
                announced = true;
                let lost = Counts::of(&self.options.counts.sessions_lost) > lost_before;
                let lost = if lost { "; it has forgotten the session, and what it held for it" } else { "" };
                let again = if resuming { " again" } else { "" };
                (self.say)(&format!("{}: connected{again}{lost}", self.source.name));
            }
            if let Err(error) = shard.turn(clock::now() + POLL_INTERVAL) {
                return ConnectionEnd {
                    session: MqttSession::new(),
                    words: error.to_string(),
                    for_good: true,
                    was_subscribed: false,
                };
            }
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Enough => "enough",
            Self::Stopped => "stopped",
        })
    }
}
