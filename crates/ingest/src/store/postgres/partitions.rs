//! A table of PostgreSQL with a partition for each day of receipt, by UTC. A unique index of it would have to have the time of
//! receipt in it, and a message that comes again has another one: the identities of all days are in a table of their own.

use super::INLINE_BYTES;
use crate::column::{Table, quoted};
use crate::error::StoreError;
use crate::store::Database;
use chrono::{DateTime, Duration};
use postgres::Client;
use std::collections::HashSet;
use weir_setting::TABLE;

const DAY_MICROSECONDS: i64 = 86_400_000_000;

/// The day of a time in microseconds: its number since 1970.
pub(super) fn day_of(microseconds: i64) -> i64 {
    microseconds.div_euclid(DAY_MICROSECONDS)
}

/// Days whose partitions are there.
#[derive(Debug, Default)]
pub(super) struct Partitions(HashSet<i64>);

impl Partitions {
    /// Makes the partitions of these days that are not there.
    pub(super) fn make(
        &mut self,
        client: &mut Client,
        database: &Database,
        table: &Table,
        days: impl Iterator<Item = i64>,
    ) -> Result<(), StoreError> {
        let mut last = None;
        for day in days {
            if last != Some(day) && !self.0.contains(&day) {
                make(client, database, table, day)?;
                self.0.insert(day);
            }
            last = Some(day);
        }
        Ok(())
    }

    /// Asks for each again: they may have been dropped.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }
}

fn make(client: &mut Client, database: &Database, table: &Table, day: i64) -> Result<(), StoreError> {
    let sort = |error| database.sort(&error);
    let Some(first) = DateTime::from_timestamp(day * 86_400, 0) else {
        return Err(StoreError::Refused(format!("{database}: a time of receipt that no calendar has")));
    };
    let bounds = [first, first + Duration::days(1)].map(|day| day.format("%Y-%m-%d 00:00:00+00").to_string());
    let name = format!("{}_{}", table.name, first.format("%Y%m%d"));
    let [parent, partition] = [&table.name, &name].map(|name| quoted(name));
    let mut transaction = client.transaction().map_err(sort)?;
    // As at the start: another ingester may be making the same one.
    transaction.batch_execute("SELECT pg_advisory_xact_lock(hashtext('weir ingest'))").map_err(sort)?;
    let query = "SELECT to_regclass($1) IS NOT NULL, EXISTS (SELECT 1 FROM pg_inherits \
                 WHERE inhrelid = to_regclass($1) AND inhparent = to_regclass($2))";
    let found = transaction.query_one(query, &[&partition, &parent]).map_err(sort)?;
    match (found.get(0), found.get(1)) {
        (true, true) => return Ok(()),
        (true, false) => {
            return Err(StoreError::Unfit(format!(
                "{database}: {name} is there and no partition of {}; give it another name, or name another table with {TABLE}",
                table.name
            )));
        }
        (false, _) => {}
    }
    // Attached, it need not wait for those who read the table (version 12 and later); made as a partition, it would.
    let statement = format!(
        "CREATE TABLE {partition} (LIKE {parent} INCLUDING DEFAULTS) WITH (toast_tuple_target = {INLINE_BYTES}); \
         ALTER TABLE {parent} ATTACH PARTITION {partition} FOR VALUES FROM ('{}') TO ('{}')",
        bounds[0], bounds[1]
    );
    transaction.batch_execute(&statement).map_err(sort)?;
    transaction.commit().map_err(sort)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_begins_at_midnight_before_1970_as_well() {
        assert_eq!([-1, 0, DAY_MICROSECONDS - 1, DAY_MICROSECONDS].map(day_of), [-1, 0, 0, 1]);
    }
}
