//! Bulk TCP streams beside a repetition, on a thread of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_clients::{BulkOptions, Ledger, PlayOptions, PublishOptions, Slot, Workload, WorkloadError};
use weir_engine::experiment::Carried;
use weir_metrics::Moment;
use weir_metrics::common::{MEDIA, PLAYED};
use weir_shard::{Shard, clock};

/// How often the wish to stop is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// How long streams may take to be there.
const PATIENCE: Duration = Duration::from_secs(10);

/// What bulk streams are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Background {
    /// The far end, `host:port`.
    pub to: String,
    /// Streams each way.
    pub streams: u32,
    /// Whether the far end sends, too.
    pub both_ways: bool,
    /// Bytes a block.
    pub block: u32,
}

/// Streams that run.
pub(crate) struct Streams {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Carried, String>>,
}

impl Streams {
    /// Starts them; returns when all of them are there.
    ///
    /// # Errors
    /// A far end that cannot be reached, or is none.
    pub(crate) fn start(background: &Background) -> Result<Self, String> {
        let workloads = workloads(background).map_err(|error| error.to_string())?;
        let (stop, there) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let (halt, count, streams) = (stop.clone(), there.clone(), background.streams);
        let wanted = streams * workloads.len() as u32;
        let thread = std::thread::Builder::new()
            .name("weir-background".to_owned())
            .spawn(move || run(&workloads, streams, &halt, &count))
            .map_err(|error| error.to_string())?;
        let began = clock::now();
        while there.load(Relaxed) < wanted && !thread.is_finished() {
            if clock::now().since(began) > PATIENCE {
                stop.store(true, Relaxed);
                let there = there.load(Relaxed);
                return Err(format!("{}: {there} of {wanted} streams were there in time", background.to));
            }
            std::thread::sleep(LOOK);
        }
        let streams = Self { stop, thread };
        if streams.thread.is_finished() {
            let words = streams.end().err().unwrap_or_else(|| "the streams have ended".to_owned());
            return Err(format!("{}: {words}; start `weir origin --bulk` there", background.to));
        }
        Ok(streams)
    }

    /// Ends them.
    ///
    /// # Errors
    /// A stream that has failed; what was said of it.
    pub(crate) fn end(self) -> Result<Carried, String> {
        self.stop.store(true, Relaxed);
        self.thread.join().unwrap_or_else(|_| Err("the streams have panicked; please report this".to_owned()))
    }
}

fn workloads(background: &Background) -> Result<Vec<Box<dyn Workload>>, WorkloadError> {
    let urls = [BulkOptions::url(&background.to)];
    let bulk = BulkOptions { block: background.block };
    let mut workloads =
        vec![weir_clients::publish(&urls, &PublishOptions { bulk, ..PublishOptions::default() })?];
    if background.both_ways {
        workloads.push(weir_clients::play(&urls, &PlayOptions { bulk, ..PlayOptions::default() })?);
    }
    Ok(workloads)
}

/// Drives `streams` of each workload until `stop` is set or one fails. `there` is how many run.
fn run(
    workloads: &[Box<dyn Workload>],
    streams: u32,
    stop: &AtomicBool,
    there: &AtomicU32,
) -> Result<Carried, String> {
    let failed = |error: std::io::Error| error.to_string();
    let mut shard =
        Shard::new(Ledger::new(workloads.iter().map(|workload| workload.schema()))).map_err(failed)?;
    let mut ids = Vec::new();
    for (number, workload) in (0..).zip(workloads) {
        for client in 0..streams {
            let slot = Slot { client, workload: number, planned: clock::now() };
            let session = workload.start(slot, clock::now(), &mut shard.world);
            // A link that cannot be begun has told its session, which has booked the failure.
            ids.extend(shard.open(workload.door(client), session));
        }
    }
    let slot = |workload| Slot { client: 0, workload, planned: Moment::default() };
    let mut began = clock::now();
    let mut before = [0; 2];
    while !stop.load(Relaxed) {
        shard.turn(clock::now() + LOOK).map_err(failed)?;
        if let Some(remark) = shard.world.take_remarks().first() {
            return Err(format!("{}: {}", remark.failure.key(), remark.words));
        }
        let of = |shard: &mut Shard<Ledger>, figure| {
            let mut numbers = [0; 2];
            for (number, workload) in numbers.iter_mut().zip(0..workloads.len() as u16) {
                *number = shard.world.of(slot(workload)).counter(figure);
            }
            numbers
        };
        let wanted = streams * workloads.len() as u32;
        if there.load(Relaxed) < wanted {
            let playing = of(&mut shard, PLAYED).iter().sum::<u64>() as u32;
            there.store(playing, Relaxed);
            if playing == wanted {
                (began, before) = (clock::now(), of(&mut shard, MEDIA));
            }
        }
    }
    // What the kernels still hold must not go on beside what comes next.
    ids.into_iter().for_each(|id| shard.stop(id));
    let seconds = clock::now().since(began).as_secs_f64().max(1e-3);
    let mut rates = [0.0; 2];
    for (workload, rate) in rates.iter_mut().enumerate().take(workloads.len()) {
        let carried = shard.world.of(slot(workload as u16)).counter(MEDIA) - before[workload];
        *rate = carried as f64 * 8.0 / seconds;
    }
    Ok(Carried { sent_bps: rates[0], received_bps: rates[1] })
}
