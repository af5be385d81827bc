//! What of the command line is shown to whom: `--help` has what most people need and examples, `--help-all` has every flag,
//! `weir help TOPIC` has what no single flag is about.

use crate::args::{Cli, Help};
use crate::exit::Exit;
use crate::print::{text, written};
use clap::{Arg, ArgAction, Command, CommandFactory};
use std::io::Write;
use weir_clients::meant;
use weir_protocols::PROTOCOLS;
use weir_runner::{ErrorKind, RunError};

/// What the short help of a command shows.
struct Short {
    command: &'static str,
    /// Names of its arguments, which stand in their own order; none for all.
    arguments: Option<&'static [&'static str]>,
    examples: &'static [&'static str],
}

const SHORT: &[Short] = &[
    Short {
        command: "demo",
        arguments: Some(&["output", "format", "quiet", "verbose"]),
        examples: &["weir demo", "weir demo -o demo-run"],
    },
    Short {
        command: "play",
        arguments: Some(&[
            "urls",
            "clients",
            "duration",
            "stages",
            "watch",
            "thresholds",
            "output",
            "format",
            "quiet",
            "verbose",
        ]),
        examples: &[
            "weir play rtmp://127.0.0.1/live/stream -c 100 -d 1m",
            "weir play whep+http://127.0.0.1:3333/app/stream/whep --stage 50@30s --stage 100@30s",
            "weir play rtmp://127.0.0.1/live/stream -c 500 --watch name=nginx --threshold 'startup.p99 < 1s'",
        ],
    },
    Short {
        command: "publish",
        arguments: Some(&[
            "urls",
            "clients",
            "duration",
            "thresholds",
            "output",
            "quiet",
            "bitrate",
            "file",
            "rate",
            "count",
        ]),
        examples: &[
            "weir publish rtmp://127.0.0.1/live/stream -d 10m --bitrate 2mbps",
            "weir publish 'rtmp://127.0.0.1/live/{i}' --streams 20 -d 1m",
            "weir publish mqtt://127.0.0.1/sensors/a -c 10 --rate 100/s --count 6000 -q 1",
        ],
    },
    Short {
        command: "ingest",
        arguments: Some(&["url", "save", "schema", "format", "table", "batch", "count", "duration", "qos"]),
        examples: &[
            "weir ingest 'mqtt://127.0.0.1/sensors/#' --save sqlite:sensors.db",
            "weir ingest 'mqtt://127.0.0.1/sensors/#' --save postgres://me@127.0.0.1/db --schema sensor.avsc",
            "weir ingest 'mqtt://127.0.0.1/sensors/#' --save parquet:files --schema sensor.avsc --count 100000",
        ],
    },
    Short {
        command: "run",
        arguments: Some(&[
            "file",
            "target",
            "clients",
            "duration",
            "set",
            "check",
            "thresholds",
            "output",
            "format",
            "quiet",
        ]),
        examples: &[
            "weir run scenario.yaml --check",
            "weir run scenario.yaml --target 127.0.0.1:1935 -c 100 -d 1m",
            "weir run scenario.yaml --set repeat=4 --format junit --quiet",
        ],
    },
    Short {
        command: "init",
        arguments: None,
        examples: &[
            "weir init rtmp://127.0.0.1/live/stream",
            "weir init 'mqtt://127.0.0.1/sensors/{i}' --publish -o sensors.yaml",
        ],
    },
    Short {
        command: "agent",
        arguments: None,
        examples: &["weir agent --join nats://192.0.2.1:4222 --only 192.0.2.0/24"],
    },
    Short { command: "agents", arguments: None, examples: &["weir agents --nats nats://192.0.2.1:4222"] },
    Short {
        command: "capacity",
        arguments: Some(&["what", "of", "from", "most", "budget", "thresholds", "watch", "output"]),
        examples: &[
            "weir capacity rtmp://127.0.0.1/live/stream --watch name=nginx",
            "weir capacity whep+http://127.0.0.1:3333/app/stream/whep --threshold 'latency.p99 < 500ms'",
            "weir capacity mqtt://127.0.0.1/a --of messages --budget 10m",
            "weir capacity 'rtmp://127.0.0.1/live/{i}' --of publishers --bitrate 4mbps",
        ],
    },
    Short {
        command: "sweep",
        arguments: Some(&["file", "find", "by", "target", "set", "watch", "output", "quiet"]),
        examples: &[
            "weir sweep variants.yaml",
            "weir sweep variants.yaml --by startup.p99 --set repeat=4",
            "weir sweep variants.yaml --find capacity",
        ],
    },
    Short {
        command: "compare",
        arguments: None,
        examples: &[
            "weir compare weir-runs/before weir-runs/after",
            "weir compare --base weir-runs/old-1 weir-runs/old-2 --to weir-runs/new-1 weir-runs/new-2",
            "weir compare weir-runs/before weir-runs/after --fail-on 'startup.p99 > +10%'",
        ],
    },
    Short {
        command: "history",
        arguments: None,
        examples: &["weir history weir-runs", "weir history weir-runs --name nightly --figure startup.p99"],
    },
    Short {
        command: "report",
        arguments: None,
        examples: &[
            "weir report weir-runs/play-20261125T120000Z",
            "weir report weir-runs/play-20261125T120000Z --format markdown",
        ],
    },
    Short {
        command: "watch",
        arguments: None,
        examples: &["weir watch --name nginx", "weir watch --port 1935 -d 10s --json"],
    },
    Short {
        command: "origin",
        arguments: Some(&[
            "rtmp", "http", "mqtt", "rtc", "services", "bitrate", "workers", "faults", "cert", "key",
            "duration",
        ]),
        examples: &[
            "weir origin --rtmp :1935",
            "weir origin --rtmp :1935 --rtc :3333 --fault 'delay 80ms'",
            "weir origin --http :40772 --services GR:4,BS:2",
        ],
    },
    Short {
        command: "relay",
        arguments: None,
        examples: &[
            "weir relay --listen :9001 --to 127.0.0.1:9000 --loss 2% --delay 40ms --jitter 10ms --rate 8mbps",
            "weir relay --listen :9001 --to 127.0.0.1:9000 --loss 1% --burst 5 --seed 7 -d 1m --json",
        ],
    },
    Short {
        command: "check",
        arguments: None,
        examples: &["weir check recording.ts", "weir check recording.ts --threshold 'ts.lost_packets == 0'"],
    },
    Short {
        command: "codec",
        arguments: None,
        examples: &["weir codec sensor.avsc", "weir codec sensor.avsc --save sqlite:codec.db"],
    },
    Short {
        command: "doctor",
        arguments: None,
        examples: &[
            "weir doctor",
            "weir doctor --no-load",
            "weir doctor --for 'rtmp://192.0.2.7/live/a 50000 at 2mbps'",
        ],
    },
    Short {
        command: "figures",
        arguments: None,
        examples: &["weir figures", "weir figures startup", "weir figures rtc lost"],
    },
    Short { command: "schema", arguments: None, examples: &["weir schema scenario", "weir schema summary"] },
    Short {
        command: "completions",
        arguments: None,
        examples: &[
            "weir completions bash > ~/.local/share/bash-completion/completions/weir",
            "weir completions zsh > ~/.zfunc/_weir",
            "weir completions fish > ~/.config/fish/completions/weir.fish",
        ],
    },
    Short { command: "man", arguments: None, examples: &["weir man ~/.local/share/man/man1"] },
    Short { command: "help", arguments: None, examples: &["weir help thresholds", "weir help play"] },
];

/// Examples of weir as a whole.
const EXAMPLES: &[&str] = &[
    "weir demo",
    "weir play rtmp://127.0.0.1/live/stream -c 100 -d 1m",
    "weir capacity rtmp://127.0.0.1/live/stream --watch name=nginx",
];

/// What `weir help` explains beside the commands.
struct Topic {
    name: &'static str,
    about: &'static str,
    text: fn() -> String,
}

const TOPICS: &[Topic] = &[
    Topic { name: "urls", about: "what can be played, published to and ingested, by scheme", text: urls },
    Topic {
        name: "thresholds",
        about: "what can be asked of a target, and how",
        text: || THRESHOLDS.to_owned(),
    },
    Topic { name: "units", about: "how times, rates and sizes are written", text: || UNITS.to_owned() },
    Topic {
        name: "exit-codes",
        about: "what the end of a run says to a script",
        text: || EXIT_CODES.to_owned(),
    },
    Topic { name: "environment", about: "variables that weir reads", text: || ENVIRONMENT.to_owned() },
];

const THRESHOLDS: &str = "\
A threshold is a figure, a comparison and a limit: 'startup.p99 < 1s'. One that fails ends the run with 99.

  distribution   min mean p50 p90 p95 p99 p999 max count     startup.p99 < 1s
  counter        alone or rate (a second)                    stalls == 0
  level          mean max                                    starving.max <= 2
  ratio          failed missed played starved bitrate        failed.ratio <= 0.1%
                 stalled stall_free frames lost, with .ratio bitrate.ratio >= 98%

  server         server.cpu server.memory (mean, max)        server.cpu.max < 80%
                 server.descriptors
                 server.busiest_thread, thread.NAME.cpu      thread.SW-WebRTC.cpu < 90%

`weir figures WORD` lists figures with their units. A figure that no workload has is refused before the run.
--threshold is judged at the end, --abort while the run goes on: it ends the run with 108.
";

const UNITS: &str = "\
time       250ms  10s  10m  2h        0s where 0 means never or at once
rate       20/s  1000/s               --arrival also poisson:20/s
bit rate   500kbps  2mbps  1gbps      1 kbps is 1,000 bit/s
size       955  64KiB  16MiB          in thresholds also 16kB and 1MB
share      5%  0.1%  0.98
clients    -c 100, or stages: --stage 100@30s --stage 200@30s
";

const EXIT_CODES: &str = "\
  0  passed
  1  internal error
  2  invalid command line
 96  a change is larger than `weir compare --fail-on` allows
 97  the target died, or gave no answer
 98  the run is invalid: weir or its machine was the limit
 99  a threshold failed
104  the scenario file is wrong
105  interrupted; what was measured is written
108  a threshold of --abort ended the run

Whatever is not 0 has its reason on stderr, with --quiet too.
";

const ENVIRONMENT: &str = "\
WEIR_LOG                debug shows each client's dialogue on stderr; rtc=debug that of WebRTC alone (also client, http,
                        mqtt, rtmp)
WEIR_MQTT_USER          user name for MQTT
WEIR_MQTT_PASSWORD      its password
WEIR_HTTP_CREDENTIALS   USER:PASSWORD for streams over HTTP
WEIR_RTC_TOKEN          bearer token of WHEP and WHIP
WEIR_SRT_PASSPHRASE     passphrase of SRT
WEIR_HLS_KEY            key of segments that `weir origin --hls` encrypts, 32 hexadecimal digits
WEIR_TURN               TURN server that `weir origin` names, with its password
WEIR_NATS_TOKEN         token for the NATS server of agents
WEIR_REGISTRY_USER      user name for a schema registry
WEIR_REGISTRY_PASSWORD  its password
PGPASSWORD              password of PostgreSQL
CLICKHOUSE_PASSWORD     password of ClickHouse
KAFKA_PASSWORD          password of Kafka
NO_COLOR                no colours, whatever it is set to
COLUMNS                 width of tables in a pipe
TERM                    dumb: no colours, and no lines that are drawn over themselves
SSL_CERT_FILE           certificates (PEM) to trust servers by instead of the system's, where no --cacert is given
SSL_CERT_DIR            a directory of them

weir sets these for the commands of a scenario's steps:

WEIR_RUN_DIRECTORY      the directory of the run
WEIR_VARIANT            the name of the variant, if there are several
WEIR_REPETITION         the number of the repetition
";

/// The command line as it is parsed, with its help in two lengths.
pub(crate) fn command() -> Command {
    let mut command = shaped(Cli::command(), None, EXAMPLES).after_help(format!(
        "{}\n`weir COMMAND --help` shows a command with examples, `weir help` the topics.",
        listed(EXAMPLES)
    ));
    for short in SHORT {
        command =
            command.mut_subcommand(short.command, |command| shaped(command, short.arguments, short.examples));
    }
    command
}

/// The same with every flag wherever it is shown: for pages that have room.
pub(crate) fn whole() -> Command {
    let all = |argument: Arg| argument.hide_short_help(false);
    let mut command = command().mut_args(all);
    for short in SHORT {
        command = command.mut_subcommand(short.command, |command| command.mut_args(all));
    }
    command
}

/// Prints a topic, or every flag of a command.
pub(crate) fn help(args: &Help) -> Result<Exit, RunError> {
    let Some(asked) = args.topic.as_deref() else {
        return print(&topics());
    };
    if let Some(topic) = TOPICS.iter().find(|topic| topic.name == asked) {
        return print(&(topic.text)());
    }
    let mut command = command();
    command.build();
    if let Some(command) = command.find_subcommand_mut(asked) {
        return print(&command.render_long_help().to_string());
    }
    let known = || TOPICS.iter().map(|it| it.name).chain(SHORT.iter().map(|it| it.command));
    let hint = meant(asked, known()).map_or_else(
        || "`weir help` lists the topics, `weir --help` the commands".to_owned(),
        |nearest| format!("did you mean '{nearest}'?"),
    );
    Err(RunError::new(ErrorKind::Usage, format!("there is no command and no topic '{asked}'; {hint}")))
}

fn print(text: &str) -> Result<Exit, RunError> {
    written(std::io::stdout().lock().write_all(text.as_bytes()))?;
    Ok(Exit::Passed)
}

fn topics() -> String {
    let mut text = "weir help TOPIC\n\n".to_owned();
    for Topic { name, about, .. } in TOPICS {
        text.push_str(&format!("  {name:12} {about}\n"));
    }
    text.push_str("\nweir help COMMAND shows every flag of a command, weir COMMAND --help those that most people need.\n");
    text
}

fn urls() -> String {
    let mut text = String::new();
    let width = usize::from(text_width());
    for protocol in PROTOCOLS {
        let schemes =
            protocol.schemes.iter().map(|it| format!("{}://", it.name)).collect::<Vec<_>>().join(" ");
        let can = [
            (protocol.play.is_some(), "play"),
            (protocol.publish.is_some(), "publish"),
            (protocol.ingest.is_some(), "ingest"),
            (protocol.serve.is_some(), "origin"),
        ];
        let can: Vec<_> = can.iter().filter(|(is, _)| *is).map(|(_, verb)| *verb).collect();
        let gap =
            if schemes.len() > 40 || width < 60 { "\n                                         " } else { "" };
        text.push_str(&format!("{schemes:40} {gap}{}\n", can.join(", ")));
    }
    text.push_str("\n`{i}` in a URL stands for the number of a stream, 0 to N - 1 with --streams N.\n");
    text
}

fn text_width() -> u16 {
    text().width
}

/// Hides from the short help what is not named, and adds the two flags and the examples.
fn shaped(command: Command, arguments: Option<&[&str]>, examples: &[&str]) -> Command {
    let is_short = |id: &str| arguments.is_none_or(|names| names.contains(&id));
    let has_more = command.get_arguments().any(|it| !is_short(it.get_id().as_str()));
    let about_more =
        if has_more { "Print the flags that most people need, and examples" } else { "Print help" };
    let command = command
        .disable_help_flag(true)
        .mut_args(|argument| {
            let hidden = !is_short(argument.get_id().as_str());
            argument.hide_short_help(hidden)
        })
        .after_help(listed(examples))
        .after_long_help(listed(examples));
    let help = Arg::new("help").short('h').long("help").action(ArgAction::HelpShort).help(about_more);
    let all = Arg::new("help-all").long("help-all").action(ArgAction::HelpLong).help("Print every flag");
    let command = command.arg(help.help_heading(None::<&str>).display_order(900));
    command.arg(all.help_heading(None::<&str>).display_order(901).hide(!has_more))
}

fn listed(examples: &[&str]) -> String {
    let examples = examples.iter().map(|example| format!("\n  {example}"));
    format!("Examples:{}", examples.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::qos_spelled_out;
    use std::collections::BTreeSet;
    use std::ffi::OsString;

    #[test]
    fn every_command_has_examples_that_the_command_line_takes() {
        let mut named: Vec<_> = SHORT.iter().map(|it| it.command).collect();
        named.sort_unstable();
        let declared: BTreeSet<_> =
            Cli::command().get_subcommands().map(|it| it.get_name().to_owned()).collect();
        assert_eq!(named, declared.iter().map(String::as_str).collect::<Vec<_>>());
        for example in SHORT.iter().flat_map(|it| it.examples).chain(EXAMPLES) {
            let words = shlex::split(example).unwrap();
            let words = words.into_iter().take_while(|word| word != ">").map(OsString::from);
            let parsed = command().try_get_matches_from(qos_spelled_out(words));
            assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
        }
    }

    #[test]
    fn every_variable_of_the_environment_is_explained() {
        let mut unexplained = BTreeSet::new();
        let mut folders = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..")];
        while let Some(folder) = folders.pop() {
            for path in folder.read_dir().unwrap().map(|entry| entry.unwrap().path()) {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                if path.is_dir() {
                    folders.extend(
                        (!["tests", "benches", "testing", "documentation"].contains(&&*name)).then_some(path),
                    );
                } else if name.ends_with(".rs") {
                    let source = std::fs::read_to_string(&path).unwrap();
                    let texts = source.split('"').filter(|text| {
                        let is_own =
                            text.starts_with("WEIR_") || text.ends_with("PASSWORD") && text.len() > 8;
                        is_own && text.chars().all(|c| c.is_ascii_uppercase() || c == '_')
                    });
                    unexplained.extend(texts.filter(|it| !ENVIRONMENT.contains(*it)).map(str::to_owned));
                }
            }
        }
        // What the build says of itself, and what tests and benches are told.
        unexplained.retain(|name| {
            !["WEIR_BUILD", "WEIR_COMMIT", "WEIR_WRITE", "WEIR_BEFORE"].contains(&name.as_str())
        });
        assert!(unexplained.is_empty(), "{unexplained:?}");
    }

    #[test]
    fn what_the_short_help_names_is_there_and_fits_a_screen() {
        let mut command = command();
        command.build();
        for short in SHORT {
            let command = command.find_subcommand_mut(short.command).unwrap();
            let declared: Vec<_> = command.get_arguments().map(|it| it.get_id().to_string()).collect();
            for name in short.arguments.into_iter().flatten() {
                assert!(
                    declared.iter().any(|it| it == name),
                    "{}: there is no {name}: {declared:?}",
                    short.command
                );
            }
            let help = command.clone().term_width(100).render_help().to_string();
            assert!(help.lines().count() <= 40, "{}: {} lines\n{help}", short.command, help.lines().count());
            assert!(help.contains("Examples:"), "{help}");
        }
        let help = command.term_width(100).render_help().to_string();
        assert!(help.lines().count() <= 40, "{} lines\n{help}", help.lines().count());
    }

    #[test]
    fn every_flag_of_every_command_is_below_a_heading_or_among_the_first_few() {
        let mut command = whole();
        command.build();
        for command in command.get_subcommands() {
            let bare =
                command.get_arguments().filter(|it| !it.is_positional() && it.get_help_heading().is_none());
            let bare: Vec<_> = bare.filter(|it| !it.is_hide_set()).map(|it| it.get_id().as_str()).collect();
            assert!(bare.len() <= 24, "{}: {bare:?}", command.get_name());
        }
    }
}
