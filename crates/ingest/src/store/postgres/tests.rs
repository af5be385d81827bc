//! What holds a batch up, and COMMITs that get no answer: nothing is saved twice, and nothing is waited for without an end.

use super::Postgres;
use crate::column::Table;
use crate::decode::Decode;
use crate::error::StoreError;
use crate::inbound::Origin;
use crate::store::tests::{batch_of, whole};
use crate::store::{Database, Durability, Store};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use weir_testing::Postgresql;

fn database(server: &Postgresql, port: Option<u16>) -> Database {
    let place = server.place();
    let own = place.rsplit_once(':').unwrap().1.split('/').next().unwrap();
    let port = port.map_or(own.to_owned(), |port| port.to_string());
    let mut database: Database =
        place.replace(own, &port).replace("/postgres", "/postgres?sslmode=disable").parse().unwrap();
    database.set_password(std::fs::read_to_string(server.password_file()).unwrap().trim_end());
    database
}

fn store(database: Database) -> Postgres {
    let mut store =
        Postgres::new(database, Table::new("t".to_owned(), Decode::raw().columns()), Durability::Full);
    store.open().unwrap();
    store
}

fn rows(server: &Postgresql) -> i64 {
    server.client().query_one("SELECT count(*) FROM t", &[]).unwrap().get(0)
}

#[test]
fn a_batch_that_a_lock_holds_up_is_cancelled_and_saved_once_when_the_lock_is_gone() {
    let server = Postgresql::start();
    let mut store = store(database(&server, None));
    for (origin, payload) in
        [(None, "unmarked"), (Some(Origin { publisher: 1, sequence_number: 1 }), "marked")]
    {
        let before = rows(&server);
        let mut client = server.client();
        let mut lock = client.transaction().unwrap();
        lock.batch_execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE").unwrap();
        let batch = batch_of(&[(origin, payload)], 1);
        store.database.set_statement_timeout(Duration::from_millis(300));
        store.open().unwrap();
        for again in [false, true] {
            let StoreError::Unavailable(line) = store.save(&batch, &whole(&batch, again)).unwrap_err() else {
                panic!()
            };
            assert!(
                line.contains("a batch may take 0.3 s") && line.contains("`statement_timeout`"),
                "{line}"
            );
            // Opening does not wait for the table: all of it is there.
            store.open().unwrap();
        }
        lock.rollback().unwrap();
        store.database.set_statement_timeout(Duration::from_secs(60));
        store.open().unwrap();
        assert_eq!(store.save(&batch, &whole(&batch, true)).unwrap().rows, 1, "{payload}");
        assert_eq!(rows(&server), before + 1, "{payload}");
    }
}

/// What happens to the COMMITs of a client.
#[derive(Clone, Copy, PartialEq)]
enum CommitFault {
    /// They come to the server, and their answers to no one.
    Answer,
    /// They do not come to the server.
    Question,
}

/// A way to a server that is cut at a COMMIT while `cut` is set.
fn way(to: u16, cut: Arc<Mutex<Option<CommitFault>>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().take(8) {
            let (client, cut) = (client.unwrap(), cut.clone());
            let server = TcpStream::connect(("127.0.0.1", to)).unwrap();
            let is_cut = Arc::new(AtomicBool::new(false));
            let (mut from, mut into) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            let deaf = is_cut.clone();
            std::thread::spawn(move || {
                let mut bytes = [0; 4_096];
                while let Ok(size @ 1..) = from.read(&mut bytes) {
                    if deaf.load(SeqCst) || into.write_all(&bytes[..size]).is_err() {
                        break;
                    }
                }
                let _ = into.shutdown(Shutdown::Both);
            });
            std::thread::spawn(move || pass(client, server, &cut, &is_cut));
        }
    });
    port
}

fn pass(mut from: TcpStream, mut into: TcpStream, cut: &Mutex<Option<CommitFault>>, is_cut: &AtomicBool) {
    let mut bytes = [0; 65_536];
    while let Ok(size @ 1..) = from.read(&mut bytes) {
        let bytes = &bytes[..size];
        let is_commit = bytes.windows(7).any(|it| it == b"COMMIT\0");
        match cut.lock().unwrap().filter(|_| is_commit) {
            Some(CommitFault::Question) => break,
            Some(CommitFault::Answer) => is_cut.store(true, SeqCst),
            None => {}
        }
        if into.write_all(bytes).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    // The server ends its transaction.
    let _ = into.shutdown(Shutdown::Both);
}

#[test]
fn a_batch_whose_commit_got_no_answer_is_saved_once_marked_or_not() {
    let server = Postgresql::start();
    let own = server.place().rsplit_once(':').unwrap().1.trim_end_matches("/postgres").parse().unwrap();
    let cut = Arc::new(Mutex::new(None));
    let mut store = store(database(&server, Some(way(own, cut.clone()))));
    let marked = Some(Origin { publisher: 1, sequence_number: 1 });
    let mut before = 0;
    // A dead letter goes by way of a transaction, so that there is a COMMIT of marked rows as well.
    let dead = Some(Origin { publisher: 1, sequence_number: 2 });
    for (lost, messages) in [
        (CommitFault::Question, [(None, "a"), (None, "b")]),
        (CommitFault::Answer, [(None, "a"), (None, "b")]),
        (CommitFault::Answer, [(None, "a"), (None, "!b")]),
        (CommitFault::Answer, [(marked, "a"), (dead, "!b")]),
    ] {
        let batch = batch_of(&messages, 7);
        *cut.lock().unwrap() = Some(lost);
        let refused = store.save(&batch, &whole(&batch, false)).unwrap_err();
        assert!(matches!(refused, StoreError::Unavailable(_)), "{refused:?}");
        *cut.lock().unwrap() = None;
        let saved = loop {
            store.open().unwrap();
            match store.save(&batch, &whole(&batch, true)) {
                Ok(saved) => break saved,
                // The server has not noticed yet that the client is gone.
                Err(StoreError::Unavailable(line)) if line.contains("is not over") => {}
                Err(error) => panic!("{error:?}"),
            }
        };
        assert_eq!((saved.rows, saved.dead), (batch.rows.len() as u64, batch.dead_count() as u64));
        before += batch.rows.len() as i64;
        assert_eq!(rows(&server), before);
    }
}

#[test]
fn a_server_that_stands_still_in_a_batch_is_given_up() {
    let server = Postgresql::start();
    let own = server.place().rsplit_once(':').unwrap().1.trim_end_matches("/postgres").parse().unwrap();
    let silent = Arc::new(AtomicBool::new(false));
    let mut database = database(&server, Some(mute(own, silent.clone())));
    database.set_statement_timeout(Duration::from_millis(200));
    let mut store = store(database);
    // By now it is known that it answers a login in time.
    store.database.set_patience(Duration::from_millis(200));
    silent.store(true, SeqCst);
    let batch = batch_of(&[(None, "a")], 1);
    let StoreError::Unavailable(line) = store.save(&batch, &whole(&batch, false)).unwrap_err() else {
        panic!()
    };
    assert!(line.contains("a batch may take 0.2 s, and the server did not even say"), "{line}");
}

/// A way to a server whose answers are held back while `silent` is set.
fn mute(to: u16, silent: Arc<AtomicBool>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut client = listener.accept().unwrap().0;
        let mut server = TcpStream::connect(("127.0.0.1", to)).unwrap();
        let (mut from, mut into) = (server.try_clone().unwrap(), client.try_clone().unwrap());
        std::thread::spawn(move || {
            let mut bytes = [0; 4_096];
            while let Ok(size @ 1..) = from.read(&mut bytes) {
                if !silent.load(SeqCst) && into.write_all(&bytes[..size]).is_err() {
                    break;
                }
            }
        });
        // Ends when the client is gone.
        let _ = std::io::copy(&mut client, &mut server);
        let _ = server.shutdown(Shutdown::Both);
    });
    port
}
