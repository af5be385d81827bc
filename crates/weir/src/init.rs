//! `weir init`: a first scenario for a URL, with a comment on each line that one changes first.

use crate::args::Init;
use crate::exit::Exit;
use crate::print::written;
use std::fs::File;
use std::io::Write;
use weir_protocols::{Protocol, of_url};
use weir_runner::{ErrorKind, RunError};

/// Writes a scenario, and says what to do with it.
pub(crate) fn init(args: &Init) -> Result<Exit, RunError> {
    let usage = |line: String| RunError::new(ErrorKind::Usage, line);
    let protocol = of_url(&args.url).ok_or_else(|| {
        usage(format!("'{}' has no scheme that weir knows; `weir help urls` lists them", args.url))
    })?;
    let scenario = scenario(&args.url, protocol, args.publish).map_err(usage)?;
    if args.output.as_os_str() == "-" {
        written(std::io::stdout().lock().write_all(scenario.as_bytes()))?;
        return Ok(Exit::Passed);
    }
    let mut file = File::create_new(&args.output).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => usage(format!(
            "{} is there already; give another file with -o, or remove it",
            args.output.display()
        )),
        _ => RunError::of_file(&args.output, &error),
    })?;
    file.write_all(scenario.as_bytes()).map_err(|error| RunError::of_file(&args.output, &error))?;
    let file = args.output.display();
    let line =
        format!("wrote {file}; `weir run {file} --check` shows what it will do, `weir run {file}` does it\n");
    written(std::io::stdout().lock().write_all(line.as_bytes()))?;
    Ok(Exit::Passed)
}

/// A scenario for a URL.
fn scenario(url: &str, protocol: &Protocol, publish: bool) -> Result<String, String> {
    let verb = match (&protocol.play, &protocol.publish) {
        (_, None) if publish => {
            return Err(format!("nothing can be published to {url}; leave --publish out"));
        }
        (None, _) => "publish",
        (Some(_), Some(_)) if publish => "publish",
        (Some(_), _) => "play",
    };
    // What is in quotation marks in YAML doubles its own.
    let quoted = format!("'{}'", url.replace('\'', "''"));
    let (clients, name) = if verb == "play" { (10, "viewers") } else { (1, "publishers") };
    let streams = if url.contains("{i}") {
        format!("    streams: {clients:<20} # `{{i}}` in the URL is 0 to {}\n", clients - 1)
    } else {
        String::new()
    };
    Ok(format!(
        "\
# Every key: `weir schema scenario`, or docs/reference/scenario.md. A key that is not known is refused.
#
#   weir run FILE --check      what it will do
#   weir run FILE              does it
name: first
workloads:
  - name: {name}
    {verb}: {quoted}
{streams}    stages:                      # a table of loads, one after the other
      - {{clients: {clients}, hold: 20s}}
      - {{clients: {many}, hold: 20s}}
# warmup: 2s                     # left out of the figures after each ramp
# watch: [name=nginx]            # the server's processes, if it runs on this machine: CPU, memory, threads
thresholds:                      # what is asked, exit code 99 if it fails; `weir figures` lists what can be asked for
  - failed.ratio <= 1%
  - startup.p99 < 3s
",
        many = clients * 2,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_engine::scenario::Scenario;
    use weir_protocols::PROTOCOLS;

    #[test]
    fn what_is_written_is_a_scenario_of_every_scheme() {
        for protocol in PROTOCOLS {
            for scheme in protocol.schemes {
                let url = format!("{}://127.0.0.1:1/it's/{{i}}", scheme.name);
                for publish in [false, true] {
                    let Ok(text) = scenario(&url, protocol, publish) else {
                        assert!(publish && protocol.publish.is_none(), "{url}");
                        continue;
                    };
                    let read =
                        Scenario::parse(&text).unwrap_or_else(|error| panic!("{url}: {error}\n{text}"));
                    let (_, urls) = read.workloads[0].verb().unwrap();
                    assert_eq!(urls.join(" "), url, "{text}");
                    read.plan().unwrap();
                }
            }
        }
    }
}
