//! The web service of the original measurement, as its source has it, over rows that a real consumer saves in SQLite.

use rusqlite::Connection;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A gateway that answers until the test ends.
pub(crate) struct Gateway {
    address: SocketAddr,
    calls: Arc<Mutex<Vec<String>>>,
}

enum GatewayAnswer {
    Asks { file: PathBuf, table: String, expected: u64 },
    Refuses(String),
}

impl Gateway {
    pub(crate) fn start(file: &Path, table: &str) -> Self {
        Self::of(GatewayAnswer::Asks { file: file.to_owned(), table: table.to_owned(), expected: 0 })
    }

    /// One whose calls all fail with these words.
    pub(crate) fn refusing(words: &str) -> Self {
        Self::of(GatewayAnswer::Refuses(words.to_owned()))
    }

    fn of(mut manner: GatewayAnswer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let calls = Arc::<Mutex<Vec<String>>>::default();
        let heard = calls.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let _ = serve(&stream.unwrap(), &mut manner, &heard);
            }
        });
        Self { address, calls }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/csp/mqtt/rest", self.address)
    }

    /// What it was asked, in its order.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }
}

fn serve(stream: &TcpStream, manner: &mut GatewayAnswer, heard: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    while let Some(request) = lines.next() {
        let request = request?;
        while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
        let path = request.strip_prefix("POST /csp/mqtt/rest/").and_then(|rest| rest.split(' ').next());
        let path = path.unwrap_or_else(|| panic!("{request}")).to_owned();
        heard.lock().unwrap().push(path.clone());
        let answer = manner.answer(&path);
        let mut out = stream;
        write!(out, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{answer}", answer.len())?;
    }
    Ok(())
}

impl GatewayAnswer {
    fn answer(&mut self, path: &str) -> String {
        let (file, table, expected) = match self {
            Self::Refuses(words) => return format!(r#"{{"ret":0,"msg":"{words}","stack":"a,b"}}"#),
            Self::Asks { file, table, expected } => (file, table, expected),
        };
        let connection = Connection::open(file).unwrap();
        connection.busy_timeout(Duration::from_secs(5)).unwrap();
        let query =
            format!("SELECT count(*), coalesce((max(received) - min(received)) / 1000, 0) FROM {table}");
        let measure = || {
            let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)?));
            connection.query_row(&query, (), row).unwrap()
        };
        match path.split('/').collect::<Vec<_>>()[..] {
            ["reset", _, count] => {
                *expected = count.parse().unwrap();
                connection.execute(&format!("DELETE FROM {table}"), ()).unwrap();
                r#"{"ret":1,"msg":"","stack":""}"#.to_owned()
            }
            ["wait", _, seconds] => {
                let until = Instant::now() + Duration::from_secs(seconds.parse().unwrap());
                while measure().0 < *expected && Instant::now() < until {
                    std::thread::sleep(Duration::from_millis(5));
                }
                format!(r#"{{"ret":{}}}"#, u8::from(measure().0 >= *expected))
            }
            ["measure"] => {
                let (count, difference) = measure();
                format!(r#"{{"ret":1,"SQLCODE":0,"Count":{count},"Diff":{difference}}}"#)
            }
            _ => panic!("{path}"),
        }
    }
}
