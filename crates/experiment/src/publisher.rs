//! The publisher of a repetition, on a shard of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use weir_clients::{
    Filling, Ledger, MqttOptions, PublishOptions, PublishTimes, Slot, Timeouts, Workload, WorkloadError,
};
use weir_metrics::Failure;
use weir_shard::{Shard, clock};

use crate::setup::{Encoding, Setup};

/// How often the wish to stop is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// How long a publisher that was told to stop may take to say goodbye.
const FAREWELL: Duration = Duration::from_secs(2);

/// As fast as possible: a message is due long before the one before it is sent.
const AT_ONCE: f64 = 1e9;

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Published {
    pub(crate) sent: u64,
    pub(crate) acknowledged: u64,
    /// Bytes of their payloads.
    pub(crate) payload_bytes: u64,
    /// Why it failed, if it did.
    pub(crate) failure: Option<String>,
}

/// Makes what is to be published; reads the schema and makes payloads.
pub(crate) fn workload(
    setup: &Setup,
    encoding: Encoding,
    times: &Arc<PublishTimes>,
) -> Result<Box<dyn Workload>, WorkloadError> {
    let filling =
        Filling::Records { schema: setup.schema_file.clone(), format: encoding.format(), records: 1 };
    let mqtt = MqttOptions {
        version: setup.version,
        credentials: setup.credentials.clone(),
        qos: setup.qos,
        window: setup.window,
        rate: setup.rate.unwrap_or(AT_ONCE),
        count: Some(setup.count),
        filling,
        seed: setup.seed,
        times: Some(times.clone()),
        ..MqttOptions::default()
    };
    let options = PublishOptions {
        timeouts: Timeouts::all(Duration::from_secs(10)),
        tls: setup.tls.clone(),
        stamp: true,
        mqtt,
        ..PublishOptions::default()
    };
    weir_clients::publish(&[setup.url(encoding)], &options)
}

/// Publishes until all is acknowledged, or `stop` is set.
pub(crate) fn publish(workload: &dyn Workload, stop: &AtomicBool) -> Published {
    run(workload, stop)
        .unwrap_or_else(|error| Published { failure: Some(error.to_string()), ..Published::default() })
}

fn run(workload: &dyn Workload, stop: &AtomicBool) -> std::io::Result<Published> {
    let schema = workload.schema();
    let mut shard = Shard::new(Ledger::new([schema]))?;
    let slot = Slot { client: 0, workload: 0, planned: clock::now() };
    let session = workload.start(slot, clock::now(), &mut shard.world);
    // A link that cannot be begun has told its session, which has booked the failure.
    let id = shard.open(workload.door(0), session).ok();
    let mut until = None;
    while !shard.is_empty() && until.is_none_or(|until| clock::now() < until) {
        if stop.load(Relaxed) && until.is_none() {
            until = Some(clock::now() + FAREWELL);
            if let Some(id) = id {
                shard.stop(id);
            }
        }
        shard.turn(clock::now() + LOOK)?;
    }
    let figures = shard.world.take_figures();
    let remarks = shard.world.take_remarks();
    let number = |name: &str| {
        let position = schema.figures().position(|figure| figure.name == name);
        position.map_or(0, |position| figures[0].number(position))
    };
    let failed = figures[0].failures().next().map(|(failure, _)| failure);
    let words = remarks.first().map(|remark| remark.words.as_str()).unwrap_or_default();
    Ok(Published {
        sent: number("units"),
        acknowledged: number("mqtt.acknowledged"),
        payload_bytes: number("media"),
        failure: failed.map(|failure| told(failure, words)),
    })
}

fn told(failure: Failure, words: &str) -> String {
    let colon = if words.is_empty() { "" } else { ": " };
    format!("{}{colon}{words}", failure.key())
}
