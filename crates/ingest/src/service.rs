//! The whole of it: connections to the broker, one after the other, and the threads that decode and save.

use crate::column::Table;
use crate::counts::{Counts, Totals};
use crate::decode::Decode;
use crate::error::StoreError;
use crate::exchange::exchange;
use crate::gaps::{DropCause, Missing};
use crate::gather::{Bounds, Gatherer};
use crate::inbox::Inbox;
use crate::receive::{ConnectionEnd, Receiver, ReceiverOptions, ReceiverState, SaverMessage};
use crate::store::{Destination, Durability, Store};
use crate::retry::{BACK_OFF, pause};
use crate::writer::{Finish, Writer};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use weir_mqtt::client::{Acknowledging, Session as MqttSession};
use weir_mqtt::{ClientOptions, MAX_PACKET_SIZE, Qos};
use weir_shard::{Endpoint, MessageSender, Shard, clock};
use weir_web::SocketRequest;

/// A connection that lasted so long was a good one: the next wait is a short one again.
const STEADY: Duration = Duration::from_secs(10);

/// How often the wish to stop is looked for.
const LOOK: Duration = Duration::from_millis(50);

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
    let columns = decode.columns();
    let width = columns.len();
    let table = Table::new(settings.table.clone(), columns);
    let outcome = |ended, is_unanswered| {
        let totals = counts.totals();
        let cause = settings.source.drop_cause(&totals);
        Outcome { ended, is_unanswered, totals, missing: counts.missing(), cause }
    };
    let mut store = settings.destination.store(table, settings.durability);
    if let Err(words) = open(&mut *store, settings.waits, stop, say)? {
        return Ok(outcome(Err(words), settings.destination.is_server()));
    }
    let inbox = Arc::new(Inbox::new(settings.queue, counts.clone()));
    let options = client_options(settings);
    options.check()?;
    let common = Arc::new(ReceiverOptions {
        options: Arc::new(options),
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
        let (filling, saving) = exchange(width);
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
        let writer = Writer {
            store: &mut *store,
            saving,
            count: settings.count,
            inbox: inbox.clone(),
            message_sender: message_sender.clone(),
            counts: counts.clone(),
            stop: stop.clone(),
            say,
        };
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let saving = thread("weir-save").spawn_scoped(scope, move || {
            let _farewell = Farewell(message_sender);
            writer.run()
        })?;
        let decoding = thread("weir-decode").spawn_scoped(scope, move || gatherer.run())?;
        let links = Links { source: &settings.source, common: &common, waits: settings.waits, stop, say };
        let link = links.run(&mut shard);
        // Whatever ended the links: what came is saved.
        inbox.close();
        let panicked = |which: &str| Finish::Failed(format!("the {which} thread has panicked"));
        let decoded = decoding.join();
        let finish = saving.join().unwrap_or_else(|_| panicked("saving"));
        let finish = match decoded {
            Ok(Ok(())) => finish,
            Ok(Err(words)) => Finish::Failed(words),
            Err(_) => panicked("decoding"),
        };
        Ok::<_, std::io::Error>(match (finish, link) {
            (Finish::Failed(words), _) => (Err(words), false),
            (_, Err(Broken { words, is_unanswered })) => (Err(words), is_unanswered),
            (Finish::Enough, Ok(())) => (Ok(Ended::Enough), false),
            (Finish::Done, Ok(())) => (Ok(Ended::Stopped), false),
        })
    })?;
    Ok(outcome(ended, is_unanswered))
}

/// Opens the store. One that is away is waited for, if it is to be; the inner error is what is wrong with it when it is
/// time to stop.
fn open(
    store: &mut dyn Store,
    waits: bool,
    stop: &AtomicBool,
    say: &(dyn Fn(&str) + Sync),
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
struct Farewell(MessageSender<SaverMessage>);

impl Drop for Farewell {
    fn drop(&mut self) {
        self.0.post(SaverMessage::Finished);
    }
}

/// Why there is no connection to the broker any more.
struct Broken {
    words: String,
    /// Whether there never was one, and the broker did not say why.
    is_unanswered: bool,
}

/// The connections to the broker.
struct Links<'a> {
    source: &'a Source,
    common: &'a Arc<ReceiverOptions>,
    /// Whether to go on before the first subscription was granted.
    waits: bool,
    stop: &'a AtomicBool,
    say: &'a (dyn Fn(&str) + Sync),
}

impl Links<'_> {
    /// Connects, again and again, until the saving thread has ended, or it is time to stop.
    fn run(&self, shard: &mut Shard<ReceiverState>) -> Result<(), Broken> {
        // A process before this one may have begun the session.
        let clean = self.source.options.clean_start;
        let mut session = if clean { MqttSession::new() } else { MqttSession::continued() };
        let mut subscribed_once = false;
        let mut wait = BACK_OFF.0;
        // Why there was no subscription yet.
        let mut away: Option<String> = None;
        for connection in 1.. {
            let began = Instant::now();
            let parted = self.connection(shard, session, connection, subscribed_once, away.is_some());
            let ConnectionEnd { words, for_good, was_subscribed, .. } = &parted;
            subscribed_once |= was_subscribed;
            if shard.world.finished || self.stop.load(Relaxed) {
                let away = away.filter(|_| !subscribed_once);
                return away.map_or(Ok(()), |words| Err(Broken { words, is_unanswered: true }));
            }
            let words = format!("{}: {words}", self.source.name);
            if *for_good || !subscribed_once && !self.waits {
                return Err(Broken { words, is_unanswered: !for_good });
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
            Counts::add(&self.common.counts.reconnects, u64::from(subscribed_once));
            session = parted.session;
        }
        Ok(())
    }

    fn pause(&self, shard: &mut Shard<ReceiverState>, wait: Duration) {
        let until = clock::now() + wait;
        while clock::now() < until && !shard.world.finished && !self.stop.load(Relaxed) {
            if shard.turn(until.min(clock::now() + LOOK)).is_err() {
                return;
            }
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
        let lost_before = Counts::of(&self.common.counts.sessions_lost);
        let receiver = Receiver::new(self.common.clone(), session, connection, resuming, clock::now());
        let id = shard.open(&self.source.endpoint, Box::new(receiver)).ok();
        shard.world.session = id;
        let (mut stopping, mut announced) = (false, !resuming && !awaited);
        loop {
            if let Some(parted) = shard.world.parted.take() {
                shard.world.session = None;
                return parted;
            }
            if !stopping && self.stop.load(Relaxed) {
                stopping = true;
                if let Some(id) = id {
                    shard.stop(id);
                }
                self.common.inbox.close();
                continue;
            }
            if !announced && Counts::of(&self.common.counts.subscribed) > 0 {
                announced = true;
                let lost = Counts::of(&self.common.counts.sessions_lost) > lost_before;
                let lost = if lost { "; it has forgotten the session, and what it held for it" } else { "" };
                let again = if resuming { " again" } else { "" };
                (self.say)(&format!("{}: connected{again}{lost}", self.source.name));
            }
            if let Err(error) = shard.turn(clock::now() + LOOK) {
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
