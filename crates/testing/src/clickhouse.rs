//! ClickHouse from Debian, with folders of its own, on a free port. Debian has version 18.16; what weir says to it, later
//! ones understand as well.

use crate::free_port;
use crate::process::{KilledOnDrop, program, soon};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tempfile::TempDir;

/// The password of its user `weir`.
const PASSWORD: &str = "s3cr3t %41 pass'word";

/// A running server, ended with the test.
pub struct ClickHouseServer {
    port: u16,
    server: KilledOnDrop,
    directory: TempDir,
}

impl ClickHouseServer {
    /// A new server with a user `weir` and a database `default`.
    pub fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        Self::over(directory, &data)
    }

    /// The same, which keeps its data there.
    pub fn within(data: &Path) -> Self {
        Self::over(tempfile::tempdir().unwrap(), data)
    }

    fn over(directory: TempDir, data: &Path) -> Self {
        let port = free_port();
        std::fs::create_dir_all(data).unwrap();
        let (files, data) = (directory.path(), data.display());
        std::fs::write(files.join("password"), format!("{PASSWORD}\n")).unwrap();
        let own = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o600);
        std::fs::set_permissions(files.join("password"), own).unwrap();
        let config = format!(
            "<yandex><logger><level>error</level><console>1</console></logger><listen_host>127.0.0.1</listen_host>\
             <http_port>{port}</http_port><path>{data}/</path><tmp_path>{data}/tmp/</tmp_path>\
             <users_config>{}/users.xml</users_config><default_profile>default</default_profile>\
             <default_database>default</default_database><mark_cache_size>5368709</mark_cache_size></yandex>",
            files.display()
        );
        std::fs::write(files.join("config.xml"), config).unwrap();
        let users = format!(
            "<yandex><profiles><default/></profiles><quotas><default/></quotas><users><weir><password>{PASSWORD}</password>\
             <networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></weir></users></yandex>"
        );
        std::fs::write(files.join("users.xml"), users).unwrap();
        let server = Self::server(files, port);
        Self { port, server, directory }
    }

    fn server(files: &Path, port: u16) -> KilledOnDrop {
        // Debian has it where only root looks.
        let mut command = program("/usr/sbin/clickhouse-server", "clickhouse-server");
        command.arg(format!("--config-file={}", files.join("config.xml").display()));
        let server = KilledOnDrop::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
        soon("ClickHouse answers", || ask(port, "SELECT 1").is_ok());
        server
    }

    /// Where weir saves to; the password comes by another way.
    pub fn place(&self) -> String {
        format!("clickhouse://weir@127.0.0.1:{}/default", self.port)
    }

    /// A file with the password of `weir`.
    pub fn password_file(&self) -> PathBuf {
        self.directory.path().join("password")
    }

    /// What it answers, as tab-separated text.
    ///
    /// # Errors
    /// Its own words, or why there is no answer.
    pub fn ask(&self, query: &str) -> Result<String, String> {
        ask(self.port, query)
    }

    /// The number that it answers.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn number(&self, query: &str) -> Result<u64, String> {
        self.ask(query)?.trim().parse().map_err(|error| format!("{error}"))
    }

    /// Ends it at once, as a crash would: what it was doing is not done.
    pub fn kill(&mut self) {
        self.server.kill();
    }

    /// Starts it again.
    pub fn go_on(&mut self) {
        self.server = Self::server(self.directory.path(), self.port);
    }
}

/// HTTP/1.0, so that the answer ends with the connection.
fn ask(port: u16, query: &str) -> Result<String, String> {
    let mut link = TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())?;
    let head = format!("POST /?wait_end_of_query=1 HTTP/1.0\r\nContent-Length: {}\r\n", query.len());
    let request = format!("{head}X-ClickHouse-User: weir\r\nX-ClickHouse-Key: {PASSWORD}\r\n\r\n{query}");
    let mut answer = Vec::new();
    let asked = link.write_all(request.as_bytes()).and_then(|()| link.read_to_end(&mut answer));
    asked.map_err(|error| error.to_string())?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("it is no HTTP")?;
    if head.contains(" 200 ") { Ok(body.to_owned()) } else { Err(body.to_owned()) }
}
