//! Marks that do not say the truth: a repetition is one by its payload, and nothing that differs is dropped.

use super::{Destination, Durability, Part, Saved, Store};
use crate::batch::Batch;
use crate::column::Table;
use crate::decode::{Decode, DecodeFailure};
use crate::error::StoreError;
use crate::inbound::{InboundMessage, Origin, ReadBuffer};
use crate::rows::Cell;
use parquet::data_type::ByteArrayType;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use weir_testing::{ClickHouseServer, Postgresql, soon};

/// Publisher, sequence number, payload; one that begins with `!` is no record.
type Sent<'a> = (u64, u64, &'a str);

/// A batch of messages; one whose payload begins with `!` is no record.
pub(super) fn batch_of(messages: &[(Option<Origin>, &str)], received: i64) -> Batch {
    let mut buffer = ReadBuffer::default();
    for (origin, payload) in messages {
        let (topic, payload) = (buffer.put(b"t"), buffer.put(payload.as_bytes()));
        let origin = *origin;
        buffer.messages.push(InboundMessage { topic, payload, too_large: 0, origin, packet: None, received });
    }
    let mut batch = Batch::new(1);
    batch.open(&Arc::new(buffer));
    for position in 0..messages.len() {
        let added = batch.add(position, |message, buffer, rows| match buffer.payload(message) {
            payload if payload.starts_with(b"!") => Err(DecodeFailure::Dead("no record".to_owned())),
            payload => {
                rows.push(Cell::Bytes(payload));
                Ok(1)
            }
        });
        added.unwrap();
    }
    batch
}

/// All of a batch.
pub(super) fn whole(batch: &Batch, again: bool) -> Part {
    Part { rows: 0..batch.rows.len(), dead: 0..batch.dead_count(), again }
}

fn try_save(
    store: &mut dyn Store,
    messages: &[Sent<'_>],
    received: i64,
    again: bool,
) -> Result<Saved, StoreError> {
    let marked = messages.iter().map(|(publisher, sequence_number, payload)| {
        (Some(Origin { publisher: *publisher, sequence_number: *sequence_number }), *payload)
    });
    let batch = batch_of(&marked.collect::<Vec<_>>(), received);
    store.save(&batch, &whole(&batch, again))
}

/// Rows, dead letters, duplicates, conflicts.
fn save(store: &mut dyn Store, messages: &[Sent<'_>], received: i64, again: bool) -> [u64; 4] {
    let saved = try_save(store, messages, received, again).unwrap();
    [saved.rows, saved.dead, saved.duplicate, saved.conflict]
}

fn opened(destination: &Destination) -> Box<dyn Store> {
    // Debian's ClickHouse waits for no disk.
    let is_clickhouse = matches!(destination, Destination::ClickHouse(_));
    let durability = if is_clickhouse { Durability::Normal } else { Durability::Full };
    let mut store = destination.store(Table::new("t".to_owned(), Decode::raw().columns()), durability);
    store.open().unwrap();
    store
}

fn clickhouse(server: &ClickHouseServer) -> Destination {
    let mut destination = server.place().parse().unwrap();
    if let Destination::ClickHouse(place) = &mut destination {
        place.set_password(std::fs::read_to_string(server.password_file()).unwrap().trim_end());
    }
    destination
}

/// A table with a partition for each day.
fn by_day(server: &Postgresql) -> Destination {
    let mut destination = server.place().parse().unwrap();
    if let Destination::Postgres(database) = &mut destination {
        database.set_password(std::fs::read_to_string(server.password_file()).unwrap().trim_end());
        database.partition_by_day();
    }
    destination
}

const DAY: i64 = 86_400_000_000;

fn places() -> (TempDir, [Destination; 2]) {
    let directory = tempfile::tempdir().unwrap();
    let sqlite = Destination::Sqlite(directory.path().join("rows.db"));
    let parquet = Destination::Parquet(directory.path().join("files"));
    (directory, [sqlite, parquet])
}

#[test]
fn a_forged_mark_makes_no_genuine_message_a_duplicate() {
    let (_directory, places) = places();
    let server = ClickHouseServer::start();
    for place in places.into_iter().chain([clickhouse(&server)]) {
        let mut store = opened(&place);
        assert_eq!(save(&mut *store, &[(1, 0, "forged"), (1, 1, "x"), (1, 3, "!f")], 1, false), [2, 1, 0, 0]);
        drop(store);
        // Another process, later.
        let mut store = opened(&place);
        let genuine = [(1, 0, "genuine"), (1, 1, "x"), (1, 2, "y"), (1, 3, "!g")];
        assert_eq!(save(&mut *store, &genuine, 2, false), [2, 1, 1, 2], "{place}");
        drop(store);
        // All of it comes again, and is recognised, whichever came first.
        let mut store = opened(&place);
        let all = [(1, 0, "forged"), (1, 3, "!f")];
        assert_eq!(save(&mut *store, &genuine, 3, false), [0, 0, 4, 0], "{place}");
        assert_eq!(save(&mut *store, &all, 4, false), [0, 0, 2, 0], "{place}");
        let contents = store.contents().unwrap();
        assert_eq!((contents.rows, contents.dead), (4, 2), "{place}");
    }
}

#[test]
fn messages_of_one_batch_are_told_apart_by_their_payloads() {
    let (_directory, places) = places();
    let server = ClickHouseServer::start();
    for place in places.into_iter().chain([clickhouse(&server)]) {
        let mut store = opened(&place);
        let messages = [(2, 0, "a"), (2, 0, "b"), (2, 0, "a"), (2, 0, "b"), (2, 0, "c"), (2, 1, "a")];
        assert_eq!(save(&mut *store, &messages, 1, false), [4, 0, 2, 2], "{place}");
        let dead = [(2, 0, "!a"), (2, 0, "!b"), (2, 0, "!a")];
        assert_eq!(save(&mut *store, &dead, 1, false), [0, 2, 1, 1], "{place}");
    }
}

#[test]
fn what_was_saved_by_an_attempt_whose_answer_was_lost_is_no_duplicate() {
    let (_directory, [sqlite, _]) = places();
    let server = ClickHouseServer::start();
    for place in [sqlite, clickhouse(&server)] {
        let mut store = opened(&place);
        assert_eq!(save(&mut *store, &[(1, 0, "forged"), (1, 1, "!f")], 1, false), [1, 1, 0, 0]);
        let messages = [(1, 0, "genuine"), (1, 1, "!g"), (1, 2, "new")];
        assert_eq!(save(&mut *store, &messages, 2, false), [2, 1, 0, 2]);
        store.open().unwrap();
        assert_eq!(save(&mut *store, &messages, 2, true), [2, 1, 0, 2], "{place}");
        assert_eq!(save(&mut *store, &messages, 3, true), [0, 0, 3, 0], "{place}");
    }
}

/// Neither of two ingesters that save the same message at the same moment can see the other's row.
#[test]
fn what_two_ingesters_insert_into_clickhouse_at_once_is_one_row() {
    let server = ClickHouseServer::start();
    let place = clickhouse(&server);
    let numbers: Vec<Sent<'_>> = (0..100).map(|number| (9, number, "x")).collect();
    std::thread::scope(|scope| {
        for received in 0..4 {
            let (place, numbers) = (&place, &numbers);
            scope.spawn(move || {
                let mut store = opened(place);
                for part in numbers.chunks(10) {
                    save(&mut *store, part, received, false);
                }
            });
        }
    });
    assert_eq!(opened(&place).contents().unwrap().rows, 100);
    // It is put off while parts are merged in the background.
    soon("ClickHouse has merged all parts", || {
        server.ask("OPTIMIZE TABLE t FINAL").unwrap();
        server.number("SELECT count() FROM t") == Ok(100)
    });
}

/// They have one key, if no care is taken.
#[test]
fn messages_without_a_mark_are_rows_of_their_own_in_clickhouse() {
    let server = ClickHouseServer::start();
    let mut store = opened(&clickhouse(&server));
    let mut buffer = ReadBuffer::default();
    for _ in 0..10 {
        let (topic, payload) = (buffer.put(b"t"), buffer.put(b"same"));
        buffer.messages.push(InboundMessage {
            topic,
            payload,
            too_large: 0,
            origin: None,
            packet: None,
            received: 1,
        });
    }
    let mut batch = Batch::new(1);
    batch.open(&Arc::new(buffer));
    for position in 0..10 {
        let added = batch.add(position, |_, _, rows| {
            rows.push(Cell::Bytes(b"same"));
            Ok(1)
        });
        added.unwrap();
    }
    for times in 1..=2 {
        let saved = store.save(&batch, &Part { rows: 0..10, dead: 0..0, again: false }).unwrap();
        assert_eq!((saved.rows, store.contents().unwrap().rows), (10, times * 10));
    }
}

#[test]
fn what_clickhouse_cannot_do_is_one_line() {
    let server = ClickHouseServer::start();
    let place = clickhouse(&server);
    let open = |place: &Destination, table: &str, durability| {
        place.store(Table::new(table.to_owned(), Decode::raw().columns()), durability).open()
    };
    let unfit = |opened: Result<(), StoreError>, words: &str| {
        let Err(StoreError::Unfit(line)) = opened else { panic!("{words}: {opened:?}") };
        assert!(line.contains(words) && !line.contains("s3cr3t") && !line.contains('\n'), "{line}");
    };
    unfit(open(&place, "t", Durability::Full), "say `durability: normal`");
    let columns = "topic String, publisher UInt64, seq UInt64, record UInt32, received Int64, \
                   payload_hash FixedString(16), conflict UInt8";
    server.ask(&format!("CREATE TABLE memory (payload String, {columns}) ENGINE = Memory")).unwrap();
    unfit(open(&place, "memory", Durability::Normal), "of the engine Memory");
    server.ask(&format!("CREATE TABLE bare ({columns}) ENGINE = MergeTree() ORDER BY seq")).unwrap();
    unfit(
        open(&place, "bare", Durability::Normal),
        "no column payload; add it (ALTER TABLE \"bare\" ADD COLUMN",
    );
    server
        .ask(&format!("CREATE TABLE wrong (payload Int64, {columns}) ENGINE = MergeTree() ORDER BY seq"))
        .unwrap();
    unfit(open(&place, "wrong", Durability::Normal), "a column payload of type Int64; weir needs String");
    let elsewhere = server.place().replace("/default", "/nowhere").replace("weir@", "weir:PASSWORD@");
    let password = std::fs::read_to_string(server.password_file()).unwrap().trim_end().replace('%', "%25");
    let elsewhere = elsewhere.replace("PASSWORD", &password).parse().unwrap();
    unfit(open(&elsewhere, "t", Durability::Normal), "CREATE DATABASE nowhere");
    let locked = open(&server.place().parse().unwrap(), "t", Durability::Normal);
    assert!(
        matches!(&locked, Err(StoreError::AccessDenied(line)) if line.contains("CLICKHOUSE_PASSWORD")),
        "{locked:?}"
    );
}

/// The files of rows of a directory, in the order of their names.
fn row_files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "parquet")).collect();
    files.sort();
    files
}

/// Names of files have the wall clock's time in them, and the search for what is known ends at the first row that is not in
/// conflict.
#[test]
fn a_wall_clock_that_steps_back_doubles_no_conflict() {
    let (directory, [_, place]) = places();
    let files = directory.path().join("files");
    let mut store = opened(&place);
    assert_eq!(save(&mut *store, &[(1, 0, "forged")], 1, false), [1, 0, 0, 0]);
    drop(store);
    // It was an hour later then than it is now.
    let hour = 3_600_000_000_u64;
    let first = row_files(&files).remove(0);
    let name = first.file_name().unwrap().to_str().unwrap().to_owned();
    let (time, rest) = name.strip_prefix("rows-").unwrap().split_once('-').unwrap();
    let later = format!("rows-{:016}-{rest}", time.parse::<u64>().unwrap() + hour);
    std::fs::rename(&first, files.join(later)).unwrap();
    let mut store = opened(&place);
    let genuine = [(1, 0, "genuine")];
    assert_eq!(save(&mut *store, &genuine, 2, false), [1, 0, 0, 1]);
    assert_eq!(save(&mut *store, &genuine, 3, false), [0, 0, 1, 0]);
    drop(store);
    assert_eq!(save(&mut *opened(&place), &genuine, 4, false), [0, 0, 1, 0]);
    assert_eq!(row_files(&files).len(), 2);
}

/// A person may put together what a directory holds: under a name of his own it stands in no order.
#[test]
fn files_of_other_names_end_no_search() {
    let (directory, [_, place]) = places();
    let files = directory.path().join("files");
    for name in ["yesterday.parquet", "all.parquet"] {
        let mut store = opened(&place);
        let forged = if name == "yesterday.parquet" { "a" } else { "b" };
        save(&mut *store, &[(1, 7, forged)], 1, false);
        drop(store);
        let rows =
            row_files(&files).into_iter().find(|path| path.to_string_lossy().contains("rows-")).unwrap();
        std::fs::rename(rows, files.join(name)).unwrap();
    }
    let mut store = opened(&place);
    assert_eq!(save(&mut *store, &[(1, 7, "a"), (1, 7, "b"), (1, 7, "c")], 2, false), [1, 0, 2, 1]);
}

#[test]
fn a_file_of_others_that_appears_while_rows_are_saved_is_passed_over() {
    let (directory, [_, place]) = places();
    let files = directory.path().join("files");
    let mut store = opened(&place);
    assert_eq!(save(&mut *store, &[(1, 0, "a"), (1, 1, "b")], 1, false), [2, 0, 0, 0]);
    // Texts stand where this table has its numbers; and something that is no Parquet at all.
    let schema = Arc::new(parse_message_type("message other { REQUIRED BYTE_ARRAY text; }").unwrap());
    let file = std::fs::File::create(files.join("zzz.parquet")).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<ByteArrayType>().write_batch(&["x".into()], None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    std::fs::write(files.join("zz.parquet"), "no Parquet").unwrap();
    assert_eq!(save(&mut *store, &[(1, 0, "a"), (1, 1, "B")], 2, false), [1, 0, 1, 1]);
    drop(store);
    let mut store = place.store(Table::new("t".to_owned(), Decode::raw().columns()), Durability::Full);
    let Err(StoreError::Unfit(words)) = store.open() else {
        panic!("a directory of others is refused at the start")
    };
    assert!(words.contains("zz"), "{words}");
}

#[test]
fn what_another_constraint_of_a_table_refuses_is_no_duplicate() {
    let (_directory, [place, _]) = places();
    let Destination::Sqlite(path) = &place else { panic!() };
    drop(opened(&place));
    Connection::open(path).unwrap().execute_batch("CREATE UNIQUE INDEX mine ON t (payload)").unwrap();
    let mut store = opened(&place);
    assert_eq!(save(&mut *store, &[(1, 0, "a")], 1, false), [1, 0, 0, 0]);
    let refused = try_save(&mut *store, &[(1, 1, "a")], 2, false);
    assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
}

/// A table that is renamed takes its indexes along.
#[test]
fn a_table_that_cannot_have_its_indexes_is_refused() {
    let (_directory, [place, _]) = places();
    let Destination::Sqlite(path) = &place else { panic!() };
    drop(opened(&place));
    Connection::open(path).unwrap().execute_batch("ALTER TABLE t RENAME TO t_of_last_year").unwrap();
    let mut store = place.store(Table::new("t".to_owned(), Decode::raw().columns()), Durability::Full);
    let Err(StoreError::Unfit(words)) = store.open() else { panic!() };
    assert!(words.contains("an index t_identity or t_conflicts is on another table"), "{words}");
    Connection::open(path).unwrap().execute_batch("DROP INDEX t_identity; DROP INDEX t_conflicts").unwrap();
    store.open().unwrap();
}

#[test]
fn what_comes_again_on_another_day_is_recognised() {
    let server = Postgresql::start();
    let mut store = opened(&by_day(&server));
    let midnight = 20_782 * DAY;
    let messages = [(1, 0, "a"), (1, 1, "b"), (1, 2, "!dead"), (1, 1, "b")];
    assert_eq!(save(&mut *store, &messages, midnight - 1, false), [2, 1, 1, 0]);
    // The next day, with something new, something in conflict, and what was sent twice.
    let again = [(1, 0, "a"), (1, 1, "B"), (1, 2, "!dead"), (1, 3, "c"), (1, 3, "c"), (1, 1, "B")];
    assert_eq!(save(&mut *store, &again, midnight, false), [2, 0, 4, 1]);
    assert_eq!(save(&mut *opened(&by_day(&server)), &again, midnight + 3 * DAY, false), [0, 0, 6, 0]);
    // By the fast way, and then the attempt whose answer was lost.
    let fresh = [(2, 0, "a"), (2, 1, "b")];
    let mut store = opened(&by_day(&server));
    assert_eq!(save(&mut *store, &fresh, midnight + 1, false), [2, 0, 0, 0]);
    assert_eq!(save(&mut *store, &fresh, midnight + 1, true), [2, 0, 0, 0]);
    assert_eq!(save(&mut *store, &fresh, midnight + DAY, false), [0, 0, 2, 0]);
    let contents = store.contents().unwrap();
    assert_eq!((contents.rows, contents.dead), (6, 1));
    assert!(contents.bytes > 0);
    let mut client = server.client();
    let rows = "SELECT tableoid::regclass::text, count(*) FROM t GROUP BY 1 ORDER BY 1";
    let rows: Vec<(String, i64)> =
        client.query(rows, &[]).unwrap().iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(rows, [("t_20261124".to_owned(), 2), ("t_20261125".to_owned(), 4)]);
}

#[test]
fn ingesters_that_make_the_same_partitions_at_once_save_each_message_once() {
    let server = Postgresql::start();
    let place = by_day(&server);
    let saved: Vec<[u64; 4]> = std::thread::scope(|scope| {
        let ingesters: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut store = opened(&place);
                    (0..10_u64).fold([0; 4], |mut sum, day| {
                        let messages: Vec<Sent<'_>> = (0..20).map(|number| (day, number, "x")).collect();
                        let saved = save(&mut *store, &messages, day as i64 * DAY, false);
                        sum.iter_mut().zip(saved).for_each(|(sum, saved)| *sum += saved);
                        sum
                    })
                })
            })
            .collect();
        ingesters.into_iter().map(|ingester| ingester.join().unwrap()).collect()
    });
    let total = |which: usize| saved.iter().map(|saved| saved[which]).sum::<u64>();
    assert_eq!((total(0), total(2), total(3)), (200, 600, 0), "{saved:?}");
    assert_eq!(opened(&place).contents().unwrap().rows, 200);
}

#[test]
fn a_partition_that_is_dropped_is_made_again_and_its_messages_stay_known() {
    let server = Postgresql::start();
    let mut store = opened(&by_day(&server));
    let old = [(1, 0, "old")];
    assert_eq!(save(&mut *store, &old, 0, false), [1, 0, 0, 0]);
    server.client().batch_execute("DROP TABLE t_19700101").unwrap();
    let lost = try_save(&mut *store, &[(1, 1, "new")], 1, false);
    assert!(matches!(&lost, Err(StoreError::Unavailable(line)) if line.contains("partition")), "{lost:?}");
    store.open().unwrap();
    assert_eq!(save(&mut *store, &[(1, 1, "new")], 1, true), [1, 0, 0, 0]);
    assert_eq!(save(&mut *store, &old, 2, false), [0, 0, 1, 0]);
    store.clear().unwrap();
    store.open().unwrap();
    assert_eq!(save(&mut *store, &old, 2, false), [1, 0, 0, 0]);
}

#[test]
fn a_table_that_is_partitioned_otherwise_is_refused() {
    let server = Postgresql::start();
    let days = by_day(&server);
    let mut plain: Destination = server.place().parse().unwrap();
    if let Destination::Postgres(database) = &mut plain {
        database.set_password(std::fs::read_to_string(server.password_file()).unwrap().trim_end());
    }
    let open = |place: &Destination, table: &str| {
        place.store(Table::new(table.to_owned(), Decode::raw().columns()), Durability::Full).open()
    };
    open(&days, "days").unwrap();
    open(&plain, "plain").unwrap();
    for (place, table, words) in
        [(&plain, "days", "is partitioned; say"), (&days, "plain", "is not partitioned")]
    {
        let Err(StoreError::Unfit(line)) = open(place, table) else { panic!("{table}") };
        assert!(line.contains(words), "{line}");
    }
    server.client().batch_execute("CREATE TABLE days_19700101 (a integer)").unwrap();
    let mut store = days.store(Table::new("days".to_owned(), Decode::raw().columns()), Durability::Full);
    store.open().unwrap();
    let Err(StoreError::Unfit(line)) = try_save(&mut *store, &[(1, 0, "a")], 0, false) else { panic!() };
    assert!(line.contains("days_19700101 is there and no partition of days"), "{line}");
}
