//! `weir origin` in a process of its own, so that its CPU and that of the clients are measured apart.

use crate::{ErrorKind, RunError};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// An origin that is ended when this value is dropped, and when this process is gone, however that went.
#[derive(Debug)]
pub struct OriginProcess {
    child: Child,
    /// `host:port` by the scheme of its URLs.
    addresses: BTreeMap<String, String>,
}

impl OriginProcess {
    /// Starts one that takes and serves RTMP on a free loopback port, and what the arguments say beside it; waits until it has said where
    /// it listens for URLs of these schemes. `program` is weir's. Ctrl-C on a terminal is not for it: it would be gone before its viewers.
    ///
    /// # Errors
    /// It does not start, or does not listen.
    pub fn start(program: &Path, arguments: &[String], schemes: &[&str]) -> Result<Self, RunError> {
        let internal =
            |cause: String| RunError::new(ErrorKind::Internal, format!("the origin did not start: {cause}"));
        let child = Command::new(program)
            .args(["origin", "--rtmp", "127.0.0.1:0", "--until-stdin-ends"])
            .args(arguments)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| internal(error.to_string()))?;
        let mut origin = Self { child, addresses: BTreeMap::new() };
        let Some(out) = origin.child.stdout.take() else {
            return Err(internal("it has no output".to_owned()));
        };
        let mut out = BufReader::new(out);
        while !schemes.iter().all(|scheme| origin.addresses.contains_key(*scheme)) {
            let mut line = String::new();
            let read = out.read_line(&mut line);
            let words = line.trim().strip_prefix("listening on ").and_then(|url| url.split_once("://"));
            let Some((scheme, address)) = words else {
                return Err(internal(format!("it said {:?} ({read:?})", line.trim())));
            };
            origin.addresses.insert(scheme.to_owned(), address.to_owned());
        }
        // What it says when it ends is read by no one, and has room in the pipe.
        Ok(origin)
    }

    /// Where it listens for URLs of a scheme: `host:port`.
    pub fn address(&self, scheme: &str) -> &str {
        self.addresses.get(scheme).map_or("", String::as_str)
    }

    /// How to watch it.
    pub fn watch(&self) -> String {
        format!("pid={}", self.child.id())
    }
}

impl Drop for OriginProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A program that says these lines and waits.
    fn saying(folder: &Path, lines: &str) -> std::path::PathBuf {
        let program = folder.join("weir");
        std::fs::write(&program, format!("#!/bin/sh\nprintf '{lines}'\nexec sleep 60\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    #[test]
    fn an_origin_says_where_it_listens_for_each_scheme() {
        let folder = tempfile::tempdir().unwrap();
        let lines = r"listening on rtmp://127.0.0.1:1\nlistening on http+hls://127.0.0.1:2\n";
        let program = saying(folder.path(), lines);
        let origin = OriginProcess::start(&program, &[], &["rtmp", "http+hls"]).unwrap();
        assert_eq!([origin.address("rtmp"), origin.address("http+hls")], ["127.0.0.1:1", "127.0.0.1:2"]);
        assert!(origin.watch().starts_with("pid="));
    }

    #[test]
    fn one_that_says_something_else_did_not_start() {
        let folder = tempfile::tempdir().unwrap();
        let program = saying(folder.path(), r"no such option\n");
        let error = OriginProcess::start(&program, &[], &["rtmp"]).unwrap_err().to_string();
        assert!(error.contains("did not start") && error.contains("no such option"), "{error}");
        let missing = OriginProcess::start(&folder.path().join("none"), &[], &["rtmp"]).unwrap_err();
        assert!(missing.to_string().contains("did not start"), "{missing}");
    }
}
