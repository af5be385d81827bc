//! The whole of it: connections to the broker, one after the other, and the threads that decode and save.

use crate::column::Table;
use crate::counts::{Counts, Totals};
use crate::decode::Decode;
use crate::error::StoreError;
use crate::exchange::exchange;
use crate::gather::{Bounds, Gatherer};
use crate::inbox::Inbox;
use crate::receive::{Common, Desk, Parted, Receiver, Told};
use crate::store::Destination;
use crate::writer::{Finish, Writer};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use weir_mqtt::client::{Acknowledging, Session as MqttSession};
use weir_mqtt::{ClientOptions, MAX_PACKET_SIZE, Qos};
use weir_shard::{Door, Mailbox, Shard, clock};

/// First and longest wait before another attempt at a broker that is gone.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

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
    pub door: Door,
    /// What to subscribe to.
    pub filter: String,
    /// How the broker is called in a message: without user and password.
    pub name: String,
    /// Version, name, credentials, keep-alive, session expiry and receive maximum; the rest is set here.
    pub options: ClientOptions,
    /// Quality of service of the subscription.
    pub qos: Qos,
}

/// What is to be done.
#[derive(Debug)]
pub struct Settings {
    /// Where messages come from.
    pub source: Source,
    /// Where rows go.
    pub destination: Destination,
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
    /// What was counted.
    pub totals: Totals,
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
    settings: &Settings,
    decode: &mut Decode,
    counts: &Arc<Counts>,
    stop: &Arc<AtomicBool>,
    say: &(dyn Fn(&str) + Sync),
) -> Result<Outcome, IngestError> {
    let columns = decode.columns();
    let width = columns.len();
    let table = Table::new(settings.table.clone(), columns);
    let mut store = settings.destination.store(table);
    store.open()?;
    let inbox = Arc::new(Inbox::new(settings.queue, counts.clone()));
    let options = client_options(settings);
    options.check()?;
    let common = Arc::new(Common {
        options: Arc::new(options),
        filter: settings.source.filter.clone(),
        qos: settings.source.qos,
        max_message: settings.max_message,
        inbox: inbox.clone(),
        counts: counts.clone(),
    });
    let mut shard = Shard::new(Desk::default())?;
    let bounds = Bounds {
        batch: settings.batch,
        linger: settings.linger,
        count: settings.count,
        max_message: settings.max_message,
    };
    let ended = std::thread::scope(|scope| {
        let mailbox = shard.mailbox();
        let (filling, saving) = exchange(width);
        let gatherer = Gatherer {
            decode,
            bounds,
            filling,
            inbox: inbox.clone(),
            mailbox: mailbox.clone(),
            counts: counts.clone(),
        };
        let writer = Writer {
            store: &mut *store,
            saving,
            count: settings.count,
            inbox: inbox.clone(),
            mailbox: mailbox.clone(),
            counts: counts.clone(),
            stop: stop.clone(),
            say,
        };
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let saving = thread("weir-save").spawn_scoped(scope, move || {
            let _farewell = Farewell(mailbox);
            writer.run()
        })?;
        let decoding = thread("weir-decode").spawn_scoped(scope, move || gatherer.run())?;
        let links = Links { source: &settings.source, common: &common, stop, say };
        let link = links.run(&mut shard);
        // Whatever ended the links: what came is saved.
        inbox.close();
        let panicked = |which: &str| Finish::Failed(format!("the {which} thread has panicked"));
        let decoded = decoding.join();
        let finish = saving.join().unwrap_or_else(|_| panicked("saving"));
        let finish = decoded.map_or_else(|_| panicked("decoding"), |()| finish);
        Ok::<_, std::io::Error>(match (finish, link) {
            (Finish::Failed(words), _) | (_, Err(words)) => Err(words),
            (Finish::Enough, Ok(())) => Ok(Ended::Enough),
            (Finish::Done, Ok(())) => Ok(Ended::Stopped),
        })
    })?;
    Ok(Outcome { ended, totals: counts.totals() })
}

fn client_options(settings: &Settings) -> ClientOptions {
    ClientOptions {
        clean_start: false,
        // What is too large is taken in pieces and put among the dead letters. A broker that was told of the limit
        // would drop it in silence (MQTT-3.1.2-25).
        maximum_packet_size: MAX_PACKET_SIZE,
        whole: (settings.max_message + AROUND_PAYLOAD).min(MAX_PACKET_SIZE as usize) as u32,
        acknowledging: Acknowledging::ByCaller,
        // The queue is bounded; who sends more than was asked for is made to wait.
        strict_receive_maximum: false,
        topic_alias_maximum: 64,
        ..settings.source.options.clone()
    }
}

/// Says that nobody saves any more, also when the thread panics.
struct Farewell(Mailbox<Told>);

impl Drop for Farewell {
    fn drop(&mut self) {
        self.0.post(Told::Finished);
    }
}

/// The connections to the broker.
struct Links<'a> {
    source: &'a Source,
    common: &'a Arc<Common>,
    stop: &'a AtomicBool,
    say: &'a (dyn Fn(&str) + Sync),
}

impl Links<'_> {
    /// Connects, again and again, until the saving thread has ended, or it is time to stop.
    fn run(&self, shard: &mut Shard<Desk>) -> Result<(), String> {
        // A process before this one may have begun the session.
        let mut session = MqttSession::continued();
        let mut subscribed_once = false;
        let mut wait = BACK_OFF.0;
        for connection in 1.. {
            let began = Instant::now();
            let parted = self.connection(shard, session, connection, subscribed_once);
            let Parted { words, for_good, was_subscribed, .. } = &parted;
            if shard.world.finished || self.stop.load(Relaxed) {
                return Ok(());
            }
            subscribed_once |= was_subscribed;
            if *for_good || !subscribed_once {
                return Err(format!("{}: {words}", self.source.name));
            }
            if began.elapsed() > STEADY {
                wait = BACK_OFF.0;
            }
            if *was_subscribed {
                (self.say)(&format!("{}: {words}; connecting again", self.source.name));
            }
            self.pause(shard, wait);
            wait = (wait * 2).min(BACK_OFF.1);
            Counts::add(&self.common.counts.reconnects, 1);
            session = parted.session;
        }
        Ok(())
    }

    fn pause(&self, shard: &mut Shard<Desk>, wait: Duration) {
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
        shard: &mut Shard<Desk>,
        session: MqttSession,
        connection: u32,
        resuming: bool,
    ) -> Parted {
        let lost_before = Counts::of(&self.common.counts.sessions_lost);
        let receiver = Receiver::new(self.common.clone(), session, connection, resuming, clock::now());
        let id = shard.open(&self.source.door, Box::new(receiver)).ok();
        shard.world.session = id;
        let (mut stopping, mut announced) = (false, !resuming);
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
                (self.say)(&format!("{}: connected again{lost}", self.source.name));
            }
            if let Err(error) = shard.turn(clock::now() + LOOK) {
                return Parted {
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
