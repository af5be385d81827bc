//! What became of a transaction whose COMMIT got no answer: the server is asked before the same rows are sent again. Rows with a mark are
//! recognised by their identities; those without have nothing else to be told apart by.

use crate::store::{Part, Saved};
use postgres::{Error, GenericClient, SimpleQueryMessage};

/// What names a transaction of a server: its number, and the timeline, since a standby that takes over gives numbers again that it has not
/// received ("Continuous Archiving", Timelines).
const NAME: &str = "SELECT txid_current(), left(pg_walfile_name(pg_current_wal_lsn()), 8)";

/// What the server has to say of one (version 10 and later; "Transaction ID and Snapshot Information Functions").
const STATUS: &str =
    "SELECT CASE WHEN left(pg_walfile_name(pg_current_wal_lsn()), 8) = $2 THEN txid_status($1) END";

/// A transaction that was to be committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Commit {
    number: i64,
    timeline: String,
    part: Part,
    saved: Saved,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Its rows are in the table.
    Committed(Saved),
    /// They are not, and will not be.
    RolledBack,
    /// It is not over.
    InProgress,
    /// The server does not know it, or is one that cannot say.
    Unknown,
}

impl Commit {
    /// Names the transaction that this client is in. A server before version 10 refuses it, and so do some that only speak like PostgreSQL.
    pub(super) fn of(client: &mut impl GenericClient, part: &Part) -> Result<Option<Self>, Error> {
        let messages = client.simple_query(NAME)?;
        let row = messages.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        let named = row.and_then(|row| Some((row.get(0)?.parse().ok()?, row.get(1)?.to_owned())));
        let saved = Saved::default();
        Ok(named.map(|(number, timeline)| Self { number, timeline, part: part.clone(), saved }))
    }

    /// The same once it is known what is in it.
    pub(super) fn with(self, saved: Saved) -> Self {
        Self { saved, ..self }
    }

    /// Whether it was to save this.
    pub(super) fn is_of(&self, part: &Part) -> bool {
        self.part.rows == part.rows && self.part.dead == part.dead
    }

    /// Asks what became of it.
    pub(super) fn outcome(&self, client: &mut impl GenericClient) -> Result<Outcome, Error> {
        let status = match client.query_one(STATUS, &[&self.number, &self.timeline]) {
            Ok(row) => row.get::<_, Option<String>>(0),
            // A number that the server has not given yet: it was restored from a copy.
            Err(error) if error.as_db_error().is_some() => None,
            Err(error) => return Err(error),
        };
        Ok(match status.as_deref() {
            Some("committed") => Outcome::Committed(self.saved),
            Some("aborted") => Outcome::RolledBack,
            Some("in progress") => Outcome::InProgress,
            _ => Outcome::Unknown,
        })
    }
}
