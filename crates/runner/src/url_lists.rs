//! Files with a URL a line, for each client its own: `--urls FILE`, and `@FILE` in the place of a URL of a scenario.

use crate::error::{ErrorKind, RunError};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use weir_engine::scenario::{OneOrMany, Scenario};

/// What stands before the name of such a file.
const MARK: char = '@';

/// The longest file: a million signed URLs of 250 bytes.
const LONGEST: u64 = 256 << 20;

/// The URLs of a command line, and the file with more of them.
pub fn written(urls: &[String], file: Option<&Path>) -> OneOrMany {
    let list = file.map(|file| format!("{MARK}{}", file.display()));
    OneOrMany(urls.iter().cloned().chain(list).collect())
}

/// Puts the URLs of files in the place of their names. There is a client for each, unless fewer are asked for.
///
/// # Errors
/// A file that cannot be read, a line that is no URL, or more clients than URLs.
pub fn read(mut scenario: Scenario) -> Result<Scenario, String> {
    for workload in &mut scenario.workloads {
        let mut has_list = false;
        for urls in [&mut workload.play.0, &mut workload.publish.0] {
            let mut all = Vec::with_capacity(urls.len());
            for url in std::mem::take(urls) {
                match url.strip_prefix(MARK) {
                    None => all.push(url),
                    Some(file) => {
                        has_list = true;
                        all.extend(lines(Path::new(file))?);
                    }
                }
            }
            *urls = all;
        }
        let urls = workload.play.0.len().max(workload.publish.0.len());
        if !has_list {
            continue;
        }
        match workload.clients {
            Some(clients) if clients as usize > urls => {
                return Err(format!(
                    "{clients} clients and {urls} URLs: each client is to have one of its own"
                ));
            }
            None if workload.stages.is_empty() => workload.clients = Some(urls as u32),
            _ => {}
        }
    }
    Ok(scenario)
}

/// The same with an exit code.
///
/// # Errors
/// As [`read`].
pub fn read_or(scenario: Scenario, wrong: ErrorKind) -> Result<Scenario, RunError> {
    read(scenario).map_err(|line| RunError::new(wrong, line))
}

fn lines(file: &Path) -> Result<Vec<String>, String> {
    let shown = file.display();
    let broken = |error: std::io::Error| format!("{shown}: {error}");
    let mut text = String::new();
    let opened = File::open(file).map_err(broken)?;
    opened.take(LONGEST + 1).read_to_string(&mut text).map_err(broken)?;
    if text.len() as u64 > LONGEST {
        return Err(format!("{shown}: longer than {} MiB", LONGEST >> 20));
    }
    let lines =
        text.lines().map(str::trim).zip(1..).filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    let urls = lines.map(|(line, number)| match line.contains("://") {
        // Not what stands there: it may be a secret.
        false => {
            Err(format!("{shown}: line {number} is no URL; write one a line, such as rtmp://host/app/stream"))
        }
        true => Ok(line.to_owned()),
    });
    let urls = urls.collect::<Result<Vec<_>, _>>()?;
    if urls.is_empty() { Err(format!("{shown}: it has no URL in it")) } else { Ok(urls) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_file(text: &str, clients: &str) -> Result<Scenario, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let path = file.path().display();
        let text =
            format!("{{workloads: [{{play: ['rtmp://h/live/a', '@{path}']{clients}, duration: 1s}}]}}");
        read(Scenario::parse(&text).unwrap())
    }

    #[test]
    fn each_line_is_the_url_of_a_client() {
        let scenario = read_file("# tokens\nrtmp://h/live/b?t=1\n\n  rtmp://h/live/c?t=2\r\n", "").unwrap();
        let workload = &scenario.workloads[0];
        assert_eq!(workload.play.0, ["rtmp://h/live/a", "rtmp://h/live/b?t=1", "rtmp://h/live/c?t=2"]);
        assert_eq!(workload.clients, Some(3));
        assert_eq!(read_file("rtmp://h/live/b", ", clients: 1").unwrap().workloads[0].clients, Some(1));
    }

    #[test]
    fn what_is_no_list_of_urls_is_refused_without_its_secrets() {
        for (text, clients, words) in [
            ("rtmp://h/a/b\nsecret", "", "line 2 is no URL"),
            ("# nothing", "", "no URL in it"),
            ("rtmp://h/a/b", ", clients: 3", "3 clients and 2 URLs"),
        ] {
            let line = read_file(text, clients).unwrap_err();
            assert!(line.contains(words) && !line.contains("secret"), "{line}");
        }
    }
}
