//! The figures of a workload that saves.

use weir_metrics::Schema;

/// What the protocol of a workload that saves is called where figures are looked up.
pub const PROTOCOL: &str = "ingest";

/// The figures of a workload that saves.
pub const SCHEMA: Schema = Schema::new(FIGURES);

weir_metrics::figures! {
    base = weir_metrics::common::FIGURES.len() as u16;
    pub FIGURES;
    SAVED: Counter = "saved", Count, [Saving, Higher, "Saved"], "records committed to the table";
    DEAD_LETTERED: Counter = "dead_lettered", Count, [Saving, Lower, "Dead-lettered"], "messages committed to the table of dead letters";
    COUNTED: Counter = "counted", Count, [Saving, "SaveCounts in the table"], "rows that the table had more at the end than at the start";
    COMMITS: Counter = "commits", Count, [Saving], "transactions";
    UNPUBLISHED: Counter = "unpublished", Count, [Saving], "messages that were planned and not sent";
    UNACKNOWLEDGED: Counter = "unacknowledged", Count, [Saving], "messages sent and not acknowledged";
    UNSETTLED: Counter = "unsettled", Count, [Saving], "messages received that are neither saved nor dead-lettered nor duplicate";
    IMBALANCES: Counter = "imbalances", Count, [Saving], "sums of the account that do not come out even";
    DECODE_TIME: Counter = "decode_time", Micros, [Saving, Lower, "Decode, busy"], "time spent decoding";
    SAVE_TIME: Counter = "save_time", Micros, [Saving, Lower, "Save, busy"], "time spent in transactions";
    PUBLISH_TIME: Counter = "publish_time", Micros, [Saving, Lower, "Publish"], "from the first message published to the last";
    RECEIVE_TIME: Counter = "receive_time", Micros, [Saving, Lower, "Receive"], "from the first message received to the last";
    INSERT_TIME: Counter = "insert_time", Micros, [Saving, Lower, "First to last insert"], "from the first commit to the last";
    TOTAL_TIME: Counter = "total_time", Micros, [Saving, Lower, "Publish to last insert"], "from the first message published to the last commit";
    LAG: Spread = "lag", Micros, [Saving], "from the receipt of the first message of a batch to the batch's commit";
    FIRST_INSERT: Counter = "first_insert", Micros, [Saving, Lower, "Publish to first insert"], "from the first message published to the first commit";
}

/// The figures of a protocol, those of a workload that saves included.
pub fn schema_of(protocol: &str) -> Option<Schema> {
    if protocol == PROTOCOL { Some(SCHEMA) } else { weir_protocols::schema_of(protocol) }
}
