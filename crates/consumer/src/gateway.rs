//! The gateway of the original measurement: a web service on InterSystems IRIS that empties the table, waits for the last
//! row, and says how many there are and how long inserting took.
//!
//! `POST reset/{avro|json}/{count}`, `POST wait/{NotifyAVRO|NotifyJSON}/{seconds}`, `POST measure`; answers are JSON, with
//! `ret` 1 for well.

use serde::Deserialize;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_engine::ingest::{Consumed, Consumer, ConsumerError, IngestStage, RowStore, SaveCounts};
use weir_http::{Http, HttpAddress, HttpTrust};
use weir_metrics::Moment;
use weir_shard::clock;

/// Where the gateway is unless its URL says so.
const PATH: &str = "csp/mqtt/rest";

/// How long an answer may take that does not wait for rows. A reset empties a table.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// What an answer to a wait may take beyond what was asked for.
const ROUND_TRIP: Duration = Duration::from_secs(10);

/// What a gateway is waited for beyond its own wait.
const GRACE: Duration = Duration::from_secs(15);

/// How often the wish to go on is looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Longest text of the gateway that weir shows.
const WORDS: usize = 300;

/// A gateway.
#[derive(Clone, Debug)]
pub struct Gateway {
    base: HttpAddress,
    trust: HttpTrust,
}

/// What it answers.
#[derive(Debug, Deserialize)]
struct Answer {
    ret: i64,
    #[serde(default)]
    msg: Option<String>,
    #[serde(default, rename = "SQLCODE")]
    sql_code: i64,
    #[serde(default, rename = "Count")]
    count: Option<u64>,
    /// Milliseconds from the first insert to the last; absent without rows.
    #[serde(default, rename = "Diff")]
    difference: Difference,
}

/// IRIS writes a number, or an empty text for none.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Difference {
    Milliseconds(f64),
    None(Option<String>),
}

impl Default for Difference {
    fn default() -> Self {
        Self::None(None)
    }
}

/// What came of it.
struct Observation {
    /// When the wait was over, if all rows were there by then.
    over: Option<Moment>,
    answer: Answer,
    remarks: Vec<String>,
}

/// A gateway that is asked, on a thread of its own.
pub(crate) struct GatewayConsumer {
    name: String,
    go: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    rows: Arc<AtomicU64>,
    thread: JoinHandle<Result<Option<Observation>, String>>,
}

impl Gateway {
    pub(crate) fn new(address: HttpAddress, trust: HttpTrust) -> Self {
        let base = if address.is_bare() { address.below(PATH) } else { address };
        Self { base, trust }
    }

    /// One call, and what it answered; a `ret` that is not 1 is left to the caller.
    fn call(&self, http: &Http, path: &str, patience: Duration) -> Result<Answer, String> {
        let failed = |words: String| format!("{self}: {path}: {words}");
        let body = http.post(&self.base.below(path), patience).map_err(|error| failed(error.to_string()))?;
        serde_json::from_slice(&body)
            .map_err(|error| failed(format!("the answer is not a gateway's: {error}")))
    }

    /// The same, and anything but a `ret` of 1 is an error with the gateway's own words.
    fn ask(&self, http: &Http, path: &str, patience: Duration) -> Result<Answer, String> {
        let answer = self.call(http, path, patience)?;
        if answer.ret == 1 { Ok(answer) } else { Err(format!("{self}: {path}: {}", answer.words())) }
    }

    /// Waits for the last row, and has all of them counted.
    fn measure(&self, http: &Http, encoding: &str, patience: Duration) -> Result<Observation, String> {
        let path = format!("wait/Notify{}/{}", encoding.to_uppercase(), patience.as_secs());
        let waited = self.call(http, &path, patience + ROUND_TRIP)?;
        let over = (waited.ret == 1).then(clock::now);
        let remarks = match over {
            Some(_) => Vec::new(),
            None => vec![format!("{self}: {path}: {}", waited.words())],
        };
        let answer = self.ask(http, "measure", ANSWER_TIMEOUT)?;
        Ok(Observation { over, answer, remarks })
    }
}

impl fmt::Display for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.base.fmt(f)
    }
}

impl Answer {
    fn words(&self) -> String {
        match self.msg.as_deref().filter(|words| !words.is_empty()) {
            Some(words) => words.chars().filter(|it| !it.is_control()).take(WORDS).collect(),
            None => format!("it answered ret {}: not all rows were there in time", self.ret),
        }
    }

    fn milliseconds(&self) -> Option<u64> {
        match &self.difference {
            Difference::Milliseconds(number) => Some(number.max(0.0).round() as u64),
            Difference::None(text) => {
                text.as_deref()?.parse::<f64>().ok().map(|number| number.max(0.0) as u64)
            }
        }
    }
}

impl GatewayConsumer {
    /// Asks the gateway to empty the table and to wait for `count` messages, for `patience` at the longest.
    pub(crate) fn start(
        gateway: &Gateway,
        encoding: &str,
        count: u64,
        patience: Duration,
    ) -> Result<Self, ConsumerError> {
        let trouble = |words: String| ConsumerError::new(IngestStage::Consumer, words);
        let http = Http::new(&gateway.base, &gateway.trust).map_err(|error| trouble(error.to_string()))?;
        gateway.ask(&http, &format!("reset/{encoding}/{count}"), ANSWER_TIMEOUT).map_err(trouble)?;
        let (go, stop) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let rows = Arc::new(AtomicU64::new(0));
        let (begin, halt, counted) = (go.clone(), stop.clone(), rows.clone());
        let (name, gateway, encoding) = (gateway.to_string(), gateway.clone(), encoding.to_owned());
        let work = move || {
            while !begin.load(Relaxed) {
                if halt.load(Relaxed) {
                    return Ok(None);
                }
                std::thread::sleep(POLL_INTERVAL);
            }
            let measured = gateway.measure(&http, &encoding, patience)?;
            counted.store(measured.answer.count.unwrap_or_default(), Relaxed);
            Ok(Some(measured))
        };
        let thread = std::thread::Builder::new()
            .name("weir-probe".to_owned())
            .spawn(work)
            .map_err(|error| trouble(error.to_string()))?;
        Ok(Self { name, go, stop, rows, thread })
    }
}

impl Consumer for GatewayConsumer {
    fn published(&self) {
        self.go.store(true, Relaxed);
    }

    /// Unknown until the gateway has answered.
    fn counted(&self) -> SaveCounts {
        let delivered = self.has_ended().then(|| self.rows.load(Relaxed));
        let rows = delivered.unwrap_or_default();
        SaveCounts { delivered, settled: rows, saved: rows, ..SaveCounts::default() }
    }

    /// The gateway has a wait of its own, of the same length.
    fn longest(&self, timeout: Duration) -> Duration {
        timeout + GRACE
    }

    fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    fn end(self: Box<Self>) -> Result<Consumed, ConsumerError> {
        self.stop.store(true, Relaxed);
        let trouble = |words: &str| ConsumerError::new(IngestStage::Consumer, words);
        let measured = match self.thread.join() {
            Ok(Ok(Some(measured))) => measured,
            Ok(Ok(None)) => return Err(trouble("the gateway was not asked")),
            Ok(Err(words)) => return Err(trouble(&words)),
            Err(_) => return Err(trouble("the probe has panicked; please report this")),
        };
        let Observation { over, answer, remarks } = measured;
        let rows = answer.count.unwrap_or_default();
        let milliseconds = answer.milliseconds();
        // The gateway says when all were there, and how long they took, but not when the first was.
        let commits = over.zip(milliseconds).map(|(last, milliseconds)| {
            let first = last.as_nanos().saturating_sub(milliseconds * 1_000_000);
            (Moment::from_nanos(first), last)
        });
        Ok(Consumed {
            received: rows,
            saved: rows,
            counted: rows,
            code: answer.sql_code,
            milliseconds: milliseconds.unwrap_or_default(),
            commits,
            remarks,
            ..Consumed::nothing(RowStore::Elsewhere(self.name))
        })
    }

    /// A call that still waits is left to its own end.
    fn leave(self: Box<Self>) {
        self.stop.store(true, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_as_iris_writes_them() {
        let read = |text: &str| serde_json::from_str::<Answer>(text).unwrap();
        let answer = read(r#"{"ret":1,"SQLCODE":0,"Count":5000,"Diff":3020}"#);
        assert_eq!((answer.ret, answer.sql_code, answer.count), (1, 0, Some(5_000)));
        assert_eq!(answer.milliseconds(), Some(3_020));
        assert_eq!(read(r#"{"ret":1,"SQLCODE":0,"Count":0,"Diff":""}"#).milliseconds(), None);
        assert!(read(r#"{"ret":0}"#).words().contains("in time"));
        assert_eq!(read(r#"{"ret":0,"msg":"ERROR #5540","stack":"a,b"}"#).words(), "ERROR #5540");
    }
}
