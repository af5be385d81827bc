//! The columns of a table: those of the records' schema, and those that say where a row came from.

use weir_record::TimeUnit;

/// What a column holds, by the type of the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColumnKind {
    /// `boolean`
    Boolean,
    /// `int`
    Integer,
    /// `long`
    Long,
    /// `float`
    Float,
    /// `double`
    Double,
    /// `bytes`, `fixed`
    Bytes,
    /// `string`, `enum`
    Text,
    /// Anything nested, as JSON.
    Json,
    /// `date`: days since 1970, an integer.
    Date,
    /// `time-millis`, an integer, and `time-micros`, a long: since midnight.
    Time(TimeUnit),
    /// `timestamp-…` and `local-timestamp-…`: since 1970, a long.
    Timestamp {
        /// What it is counted in.
        unit: TimeUnit,
        /// Whether it is a moment, and no reading of a clock somewhere.
        utc: bool,
    },
    /// `decimal`: an integer in two's complement, most significant byte first, as bytes.
    Decimal {
        /// Digits, at most.
        precision: u32,
        /// Digits after the point.
        scale: u32,
    },
    /// `uuid`: 16 bytes.
    Uuid,
}

/// A column of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The field's name.
    pub name: String,
    /// What it holds.
    pub kind: ColumnKind,
    /// Whether it may be null.
    pub nullable: bool,
}

/// What a row says of where it came from, in the order in which stores write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Provenance {
    /// Topic of the message.
    Topic,
    /// Number of its publisher, null without a mark.
    Publisher,
    /// Its number among those of the publisher, null without a mark.
    SequenceNumber,
    /// Place of the record in its message, from 0.
    Record,
    /// When the message came.
    Received,
    /// Hash of the message's payload, null without a mark.
    PayloadHash,
    /// Whether a message of that publisher and number was there with another payload.
    Conflict,
}

impl Provenance {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Topic,
        Self::Publisher,
        Self::SequenceNumber,
        Self::Record,
        Self::Received,
        Self::PayloadHash,
        Self::Conflict,
    ];

    /// What no two rows have alike, unless they are in conflict.
    pub const IDENTITY: [Self; 3] = [Self::Publisher, Self::SequenceNumber, Self::Record];

    fn plain_name(self) -> &'static str {
        match self {
            Self::Topic => "topic",
            Self::Publisher => "publisher",
            Self::SequenceNumber => "seq",
            Self::Record => "record",
            Self::Received => "received",
            Self::PayloadHash => "payload_hash",
            Self::Conflict => "conflict",
        }
    }
}

/// A table that records go into.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// The columns of a record.
    pub columns: Vec<Column>,
    /// Whether a record has a column that is called like one of [`Provenance`].
    clashes: bool,
}

impl Table {
    pub(crate) fn new(name: String, columns: Vec<Column>) -> Self {
        let clashes = Provenance::ALL.iter().any(|provenance| {
            columns.iter().any(|column| column.name.eq_ignore_ascii_case(provenance.plain_name()))
        });
        Self { name, columns, clashes }
    }

    /// The name of a column that says where a row came from: with `mqtt_` in front if the record has one of these
    /// names itself.
    pub fn name_of(&self, provenance: Provenance) -> String {
        let prefix = if self.clashes { "mqtt_" } else { "" };
        format!("{prefix}{}", provenance.plain_name())
    }

    /// The columns of an identity, as SQL has them.
    pub(crate) fn identity(&self) -> String {
        Provenance::IDENTITY.map(|provenance| quoted(&self.name_of(provenance))).join(", ")
    }

    /// Where the identities of rows are, if the rows are in partitions.
    pub(crate) fn identities(&self) -> String {
        format!("{}_identities", self.name)
    }

    /// Where messages go that are no records.
    pub fn dead_letters(&self) -> String {
        format!("{}_dead", self.name)
    }
}

/// A name as SQL has it.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str) -> Column {
        Column { name: name.into(), kind: ColumnKind::Text, nullable: false }
    }

    #[test]
    fn a_field_with_the_name_of_a_column_of_weirs_keeps_it() {
        let table = Table::new("t".into(), vec![column("a"), column("Topic")]);
        assert_eq!(table.name_of(Provenance::SequenceNumber), "mqtt_seq");
        assert_eq!(Table::new("t".into(), vec![column("a")]).name_of(Provenance::Topic), "topic");
    }

    #[test]
    fn names_are_quoted() {
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
    }
}
