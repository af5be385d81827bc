//! The statements that save into a table of PostgreSQL.

use crate::column::{Provenance, Table, quoted};

/// The temporary table.
const STAGE: &str = "weir_stage";

pub(super) struct Statements {
    pub(super) copy: String,
    pub(super) stage: String,
    pub(super) copy_stage: String,
    pub(super) insert: String,
    pub(super) insert_beside: String,
    pub(super) again: String,
    pub(super) bury: String,
    pub(super) buried: String,
    pub(super) buried_beside: String,
}

impl Statements {
    pub(super) fn new(table: &Table) -> Self {
        let names = Provenance::ALL.map(|provenance| quoted(&table.name_of(provenance)));
        let provenance = names.join(", ");
        let [_, publisher, number, record, received, hash, conflict] = names;
        let identity = table.identity();
        let fields: String = table.columns.iter().map(|column| quoted(&column.name) + ", ").collect();
        let (name, dead) = (quoted(&table.name), quoted(&table.dead_letters()));
        let columns = format!("{fields}{provenance}");
        // `Conflict` is the last of all.
        let staged = columns.strip_suffix(&conflict).unwrap_or(&columns);
        let same =
            [&publisher, &number, &record].map(|column| format!("t.{column} = s.{column}")).join(" AND ");
        // Of these two the one finds rows that are not in conflict, the other those that are. A row without a hash was
        // inserted by another program: only its identity can be compared.
        let first = format!("ON CONFLICT ({identity}) WHERE NOT {conflict} DO NOTHING");
        let beside = format!("ON CONFLICT ({identity}, {hash}) WHERE {conflict} DO NOTHING");
        let known = format!("{publisher} = $1 AND {number} = $2 AND {record} = $3");
        let microseconds = format!("(extract(epoch FROM {received}) * 1000000)::bigint");
        Self {
            copy: format!("COPY {name} ({columns}) FROM STDIN BINARY"),
            stage: format!(
                "CREATE TEMPORARY TABLE IF NOT EXISTS {STAGE} ON COMMIT DELETE ROWS AS SELECT {columns} FROM {name} \
                 WITH NO DATA"
            ),
            copy_stage: format!("COPY {STAGE} ({columns}) FROM STDIN BINARY"),
            insert: format!("INSERT INTO {name} ({columns}) SELECT {columns} FROM {STAGE} {first}"),
            insert_beside: format!(
                "INSERT INTO {name} ({columns}) SELECT {staged}true FROM {STAGE} s WHERE s.{publisher} IS NOT NULL \
                 AND NOT EXISTS (SELECT 1 FROM {name} t WHERE {same} AND NOT t.{conflict} \
                 AND (t.{hash} = s.{hash} OR t.{hash} IS NULL)) {beside}"
            ),
            again: format!(
                "SELECT count(*), count(*) FILTER (WHERE beside) FROM (SELECT bool_or(t.{conflict}) AS beside \
                 FROM {STAGE} s JOIN {name} t ON {same} AND t.{hash} = s.{hash} AND t.{received} = s.{received} \
                 GROUP BY s.{publisher}, s.{number}, s.{record}, s.{hash}) AS found"
            ),
            bury: format!(
                "INSERT INTO {dead} ({provenance}, reason, size, payload) VALUES ($1, $2, $3, $4, \
                 to_timestamp(0) + $5::bigint * interval '1 microsecond', $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING"
            ),
            buried: format!("SELECT {hash}, {microseconds} FROM {dead} WHERE {known} AND NOT {conflict}"),
            buried_beside: format!(
                "SELECT {hash}, {microseconds} FROM {dead} WHERE {known} AND {conflict} AND {hash} = $4"
            ),
        }
    }
}
