//! The statements that save into a table of PostgreSQL.

use crate::column::{Provenance, Table, quoted};

/// The temporary table.
const STAGE: &str = "weir_stage";

pub(super) struct Statements {
    pub(super) copy: String,
    /// Into the table of identities, if there is one.
    pub(super) copy_identities: String,
    pub(super) stage: String,
    pub(super) copy_stage: String,
    pub(super) insert: String,
    pub(super) insert_beside: String,
    pub(super) again: String,
    pub(super) insert_dead: String,
    pub(super) find_dead: String,
    pub(super) find_dead_beside: String,
}

impl Statements {
    /// `by_day`: the rows are in partitions, and their identities in a table of their own.
    pub(super) fn new(table: &Table, by_day: bool) -> Self {
        let names = Provenance::ALL.map(|provenance| quoted(&table.name_of(provenance)));
        let provenance = names.join(", ");
        let [_, publisher, number, record, received, hash, conflict] = &names;
        let identity = table.identity();
        let fields: String = table.columns.iter().map(|column| quoted(&column.name) + ", ").collect();
        let (name, dead) = (quoted(&table.name), quoted(&table.dead_letters()));
        let columns = format!("{fields}{provenance}");
        // `Conflict` is the last of all.
        let staged = columns.strip_suffix(&**conflict).unwrap_or(&columns);
        let same_as = |other: &str| {
            [publisher, number, record].map(|column| format!("{other}.{column} = s.{column}")).join(" AND ")
        };
        let same = same_as("t");
        let identities = quoted(&table.identities());
        // Where it is seen whether a row is there.
        let known_in = if by_day { &identities } else { &name };
        // Of these two the one finds rows that are not in conflict, the other those that are. A row without a hash was
        // inserted by another program: only its identity can be compared.
        let first = format!("ON CONFLICT ({identity}) WHERE NOT {conflict} DO NOTHING");
        let beside = format!("ON CONFLICT ({identity}, {hash}) WHERE {conflict} DO NOTHING");
        let is_beside = format!(
            "s.{publisher} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {known_in} t WHERE {same} AND NOT t.{conflict} \
             AND (t.{hash} = s.{hash} OR t.{hash} IS NULL))"
        );
        let narrow = names[1..].join(", ");
        let narrow_staged = names[1..names.len() - 1].join(", ");
        // Rows whose identities are new: of those that stand twice in a batch, one.
        let fresh = |select: &str, conflicts: &str, columns: &str| {
            format!(
                "WITH fresh AS (INSERT INTO {identities} ({narrow}) {select} {conflicts} RETURNING {identity}, {hash}) \
                 INSERT INTO {name} ({staged}{conflict}) SELECT {columns} FROM (SELECT DISTINCT ON ({identity}, {hash}) * \
                 FROM {STAGE}) s JOIN fresh f ON {} AND f.{hash} = s.{hash}",
                same_as("f")
            )
        };
        let staged_of = |flag: &str| {
            let columns = table.columns.iter().map(|column| quoted(&column.name));
            let provenance = names[..names.len() - 1].iter().cloned();
            let columns: String = columns.chain(provenance).map(|column| format!("s.{column}, ")).collect();
            format!("{columns}{flag}")
        };
        let (insert, insert_beside) = if by_day {
            let marked = format!("SELECT {narrow_staged}, false FROM {STAGE} WHERE {publisher} IS NOT NULL");
            let others = format!("SELECT {columns} FROM {STAGE} WHERE {publisher} IS NULL");
            (
                format!("{} UNION ALL {others}", fresh(&marked, &first, &staged_of("false"))),
                fresh(
                    &format!("SELECT {narrow_staged}, true FROM {STAGE} s WHERE {is_beside}"),
                    &beside,
                    &staged_of("true"),
                ),
            )
        } else {
            (
                format!("INSERT INTO {name} ({columns}) SELECT {columns} FROM {STAGE} {first}"),
                format!(
                    "INSERT INTO {name} ({columns}) SELECT {staged}true FROM {STAGE} s WHERE {is_beside} {beside}"
                ),
            )
        };
        let known = format!("{publisher} = $1 AND {number} = $2 AND {record} = $3");
        let microseconds = format!("(extract(epoch FROM {received}) * 1000000)::bigint");
        Self {
            copy: format!("COPY {name} ({columns}) FROM STDIN BINARY"),
            copy_identities: format!("COPY {identities} ({narrow}) FROM STDIN BINARY"),
            stage: format!(
                "CREATE TEMPORARY TABLE IF NOT EXISTS {STAGE} ON COMMIT DELETE ROWS AS SELECT {columns} FROM {name} \
                 WITH NO DATA"
            ),
            copy_stage: format!("COPY {STAGE} ({columns}) FROM STDIN BINARY"),
            insert,
            insert_beside,
            again: format!(
                "SELECT count(*), count(*) FILTER (WHERE beside) FROM (SELECT bool_or(t.{conflict}) AS beside \
                 FROM {STAGE} s JOIN {known_in} t ON {same} AND t.{hash} = s.{hash} AND t.{received} = s.{received} \
                 GROUP BY s.{publisher}, s.{number}, s.{record}, s.{hash}) AS found"
            ),
            insert_dead: format!(
                "INSERT INTO {dead} ({provenance}, reason, size, payload) VALUES ($1, $2, $3, $4, \
                 to_timestamp(0) + $5::bigint * interval '1 microsecond', $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING"
            ),
            find_dead: format!("SELECT {hash}, {microseconds} FROM {dead} WHERE {known} AND NOT {conflict}"),
            find_dead_beside: format!(
                "SELECT {hash}, {microseconds} FROM {dead} WHERE {known} AND {conflict} AND {hash} = $4"
            ),
        }
    }
}
