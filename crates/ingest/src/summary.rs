//! The summary at the end: a few lines for a person, and JSON.

use crate::service::{Ended, Outcome};
use serde_json::{Value, json};

impl Outcome {
    /// What was counted from this broker, and the line of the original measurement with what its numbers are.
    pub fn lines(&self, broker: &str) -> String {
        let t = &self.totals;
        let mut out = format!(
            "received {} records in {} messages: {} saved, {} dead-lettered, {} duplicate\n",
            t.received,
            t.messages - t.left,
            t.saved,
            t.dead_lettered,
            t.duplicate
        );
        if t.conflict > 0 {
            out += &format!(
                "{} of them are in conflict: another payload came under the same publisher and sequence number; look at \
                 the rows with a true value in the column conflict, and at those beside them\n",
                t.conflict
            );
        }
        if t.left > 0 {
            out += &format!(
                "{} messages are not saved and not acknowledged: they stay with the broker\n",
                t.left
            );
        }
        if t.missing > 0 {
            out += &format!("{}\n", self.missing.line(broker, self.cause));
        }
        out += &format!(
            "decode {:.3} s, save {:.3} s in {} commits\n",
            t.decode.as_secs_f64(),
            t.save.as_secs_f64(),
            t.commits
        );
        out += &format!("[status (0 = ok), rows, ms from first to last commit]: {}\n", self.classic());
        out
    }

    /// The line of the original measurement: 0 or 1 for well or not, rows, milliseconds.
    fn classic(&self) -> Value {
        let t = &self.totals;
        json!([i32::from(self.ended.is_err()), t.saved, t.first_to_last_commit.as_millis() as u64])
    }

    /// The same as JSON, with units in the names.
    pub fn json(&self) -> Value {
        let t = &self.totals;
        json!({
            "ended": match &self.ended {
                Ok(Ended::Enough) => "enough",
                Ok(Ended::Stopped) => "stopped",
                Err(_) => "failed",
            },
            "error": self.ended.as_ref().err(),
            "messages": t.messages,
            "payload_bytes": t.bytes,
            "received": t.received,
            "saved": t.saved,
            "dead_lettered": t.dead_lettered,
            "duplicate": t.duplicate,
            "conflict": t.conflict,
            "unmarked": t.unmarked,
            "acknowledged": t.acknowledged,
            "left": t.left,
            "missing": t.missing,
            "missing_publishers": self.missing.publishers,
            "missing_since_unix_seconds": self.missing.since.map(|micros| micros as f64 * 1e-6),
            "missing_most": self.missing.most.iter().map(|gap| json!({
                "publisher": gap.publisher,
                "missing": gap.missing,
                "since_unix_seconds": gap.since as f64 * 1e-6,
            })).collect::<Vec<_>>(),
            "commits": t.commits,
            "store_retries": t.retries,
            "reconnects": t.reconnects,
            "sessions_lost": t.sessions_lost,
            "decode_seconds": t.decode.as_secs_f64(),
            "save_seconds": t.save.as_secs_f64(),
            "longest_lag_seconds": t.longest_lag.as_secs_f64(),
            "first_to_last_commit_seconds": t.first_to_last_commit.as_secs_f64(),
            "classic": self.classic(),
        })
    }
}
