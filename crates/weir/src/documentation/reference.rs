//! The pages below `docs/reference`: made from the declarations of the command line, the scenario, the figures and the
//! faults. `WEIR_WRITE=1 cargo test -p weir reference` writes them again.

use crate::help;
use clap::{Arg, ArgAction, Command};
use serde_json::{Map, Value};
use std::fmt::Write;
use weir_engine::scenario::Scenario;
use weir_metrics::{Figure, Kind, Merge};

/// What stands at the top of each page, so that it is not edited by hand.
const NOTICE: &str = "<!-- Made from the declarations: WEIR_WRITE=1 cargo test -p weir reference -->\n";

fn assert_up_to_date(name: &str, body: &str) {
    super::assert_up_to_date(&format!("docs/reference/{name}"), &format!("{NOTICE}\n{}\n", body.trim()));
}

/// A cell of a table: one line, and no bar that would end it. A paragraph of a help may have no full stop.
fn cell(text: &str) -> String {
    let paragraphs = text.replace("\n\n", ". ").replace(".. ", ". ");
    paragraphs.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// Text of a help, in which `<` would begin a tag and `*` a stressed word; in spans of code both are themselves.
fn prose(text: &str) -> String {
    let pieces = cell(text);
    let escaped = pieces.split('`').enumerate().map(|(number, piece)| {
        let inside = number % 2 == 1;
        if inside { piece.to_owned() } else { piece.replace('<', "&lt;").replace('*', "\\*") }
    });
    escaped.collect::<Vec<_>>().join("`")
}

#[test]
fn the_page_of_commands_is_that_of_the_command_line() {
    let mut cli = help::whole();
    cli.build();
    let mut page = format!(
        "# Commands\n\nEvery command with its flags, as `weir COMMAND --help-all` prints them. `weir --version` says the version.\n\n{}\n",
        exit_codes(&cli)
    );
    for command in cli.get_subcommands_mut().filter(|command| !command.is_hide_set()) {
        let about =
            command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
        let usage = command.render_usage().to_string();
        let _ = write!(
            page,
            "\n## weir {}\n\n{}.\n\n```\n{}\n```\n",
            command.get_name(),
            prose(&about).trim_end_matches('.'),
            usage.trim()
        );
        for heading in headings(command) {
            if let Some(heading) = heading {
                let _ = write!(page, "\n**{heading}**\n");
            }
            page.push_str("\n| flag | default | meaning |\n|---|---|---|\n");
            for arg in arguments(command).filter(|arg| arg.get_help_heading() == heading) {
                let _ = writeln!(page, "| {} | {} | {} |", flag(arg), default(arg), meaning(arg));
            }
        }
    }
    assert_up_to_date("commands.md", &page);
}

/// That paragraph of weir's own help.
fn exit_codes(cli: &Command) -> String {
    let about = cli.get_long_about().map(ToString::to_string).unwrap_or_default();
    let codes = about.split("\n\n").find(|paragraph| paragraph.starts_with("Exit codes"));
    prose(codes.expect("a paragraph on exit codes"))
}

fn arguments(command: &Command) -> impl Iterator<Item = &Arg> {
    command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "help-all" | "version"))
}

/// The headings of a command's arguments, in the order of their first arguments; those without one first.
fn headings(command: &Command) -> Vec<Option<&str>> {
    let mut headings = Vec::new();
    for arg in arguments(command) {
        if !headings.contains(&arg.get_help_heading()) {
            headings.push(arg.get_help_heading());
        }
    }
    headings.sort_by_key(Option::is_some);
    headings
}

fn flag(arg: &Arg) -> String {
    let value = match arg.get_value_names() {
        Some(names) if arg.get_action().takes_values() => format!(" {}", names[0]),
        _ => String::new(),
    };
    let value = cell(&value);
    match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(long)) => {
            format!("`-{short}`, `--{long} {}`", value.trim()).replace(" `", "`").replace(",`", ", `")
        }
        (None, Some(long)) => format!("`--{}`", format!("{long} {}", value.trim()).trim()),
        (Some(short), None) => format!("`-{short}`"),
        (None, None) => format!("`{}`", value.trim()),
    }
}

fn default(arg: &Arg) -> String {
    let said = arg.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy()));
    match default_in_words(&help(arg)) {
        Some(words) => prose(words),
        None if arg.get_action().takes_values() => said.collect::<Vec<_>>().join(", "),
        None => String::new(),
    }
}

fn help(arg: &Arg) -> String {
    arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default()
}

/// What stands behind `[default: ` in a help.
fn default_in_words(help: &str) -> Option<&str> {
    help.split_once("[default: ")?.1.split(']').next()
}

fn meaning(arg: &Arg) -> String {
    let help = help(arg);
    let mut text = match default_in_words(&help) {
        Some(words) => prose(&help.replace(&format!("[default: {words}]"), "")),
        None => prose(&help),
    };
    let known = arg.get_possible_values();
    let is_choice = arg.get_action().takes_values() && !known.is_empty();
    if is_choice {
        let names: Vec<_> = known.iter().map(|value| format!("`{}`", value.get_name())).collect();
        let _ = write!(text, ". One of {}", names.join(", "));
    }
    if let Some(variable) = arg.get_env() {
        let _ = write!(text, ". Environment: `{}`", variable.to_string_lossy());
    }
    if matches!(arg.get_action(), ArgAction::Append) && arg.get_long().is_some() && !text.contains("repeat") {
        text.push_str(". Repeatable");
    }
    text
}

#[test]
fn the_page_of_scenario_keys_is_that_of_the_schema() {
    let schema: Value = serde_json::from_str(&Scenario::schema()).unwrap();
    let mut page = "# Scenario keys\n\nA scenario is strict YAML: an unknown key is an error. Durations are written `250ms`, `10s`, \
        `10m`, rates `20/s`, bit rates `500kbps`. The same as JSON Schema: [scenario.schema.json](../scenario.schema.json). \
        Examples are on [the page of scenarios](../guide/scenarios.md).\n\n## The file\n"
        .to_owned();
    write_keys(&mut page, &schema, schema["$defs"].as_object().unwrap());
    assert_up_to_date("scenario.md", &page);
}

/// The table of these keys, then a section for each key that has keys of its own.
fn write_keys(page: &mut String, of: &Value, types: &Map<String, Value>) {
    page.push_str(&keys(of, types));
    // `workloads` comes before what few scenarios have.
    for (key, property) in of["properties"].as_object().unwrap().iter().rev() {
        if let Some(definition) = own_keys(property, types) {
            let _ = write!(page, "\n## {key}\n\n{}\n", description(definition));
            write_keys(page, definition, types);
        }
    }
}

/// The type of a property, or of the items of its list, if it has keys.
fn own_keys<'a>(property: &'a Value, types: &'a Map<String, Value>) -> Option<&'a Value> {
    if let Some(reference) = property["$ref"].as_str() {
        let definition = types.get(reference.rsplit('/').next()?)?;
        return definition.get("properties").is_some().then_some(definition);
    }
    let ways = property["anyOf"].as_array().into_iter().flatten();
    ways.chain(property.get("items")).find_map(|way| own_keys(way, types))
}

fn description(of: &Value) -> String {
    prose(of["description"].as_str().unwrap_or_default())
}

fn keys(of: &Value, types: &Map<String, Value>) -> String {
    let mut table = "\n| key | type | default | meaning |\n|---|---|---|---|\n".to_owned();
    let required = |key: &str| of["required"].as_array().is_some_and(|keys| keys.iter().any(|it| it == key));
    for (key, property) in of["properties"].as_object().unwrap() {
        let default = match &property["default"] {
            _ if required(key) => "required".to_owned(),
            Value::Null => String::new(),
            Value::Array(items) if items.is_empty() => String::new(),
            Value::Object(items) if items.is_empty() => String::new(),
            Value::String(text) if text.is_empty() => String::new(),
            value => format!("`{value}`"),
        };
        let _ = writeln!(
            table,
            "| `{key}` | {} | {default} | {} |",
            kind_of(key, property, types),
            description(property)
        );
    }
    table
}

/// The type of a key's value in words; of one that has keys itself, a link to their table.
fn kind_of(key: &str, property: &Value, types: &Map<String, Value>) -> String {
    if let Some(reference) = property["$ref"].as_str() {
        let definition =
            reference.rsplit('/').next().and_then(|name| types.get(name)).unwrap_or(&Value::Null);
        return match own_keys(property, types) {
            Some(_) => format!("[keys](#{})", key.to_lowercase()),
            None => kind_of(key, definition, types),
        };
    }
    for several in ["anyOf", "oneOf"] {
        if let Some(ways) = property[several].as_array() {
            let mut names: Vec<_> =
                ways.iter().map(|way| kind_of(key, way, types)).filter(|it| it != "null").collect();
            names.dedup();
            return names.join(" or ");
        }
    }
    if let Some(word) = property["const"].as_str() {
        return format!("`{word}`");
    }
    if let Some(words) = property["enum"].as_array() {
        let words: Vec<_> = words.iter().filter_map(Value::as_str).map(|word| format!("`{word}`")).collect();
        return words.join(" or ");
    }
    let name = match &property["type"] {
        Value::Array(names) => {
            names.iter().filter_map(Value::as_str).find(|it| *it != "null").unwrap_or_default()
        }
        name => name.as_str().unwrap_or_default(),
    };
    match name {
        "array" if own_keys(property, types).is_some() => format!("[list](#{})", key.to_lowercase()),
        "array" => format!("list of {}", kind_of(key, &property["items"], types)),
        "boolean" => "`true` or `false`".to_owned(),
        // One of several keys, each with its value.
        "object" if property["properties"].is_object() => {
            let keys = property["properties"].as_object().into_iter().flat_map(|keys| keys.keys());
            keys.map(|key| format!("`{key}: …`")).collect::<Vec<_>>().join(", ")
        }
        "object" => format!("map of {}", kind_of(key, &property["additionalProperties"], types)),
        "string" => "text".to_owned(),
        name => name.to_owned(),
    }
}

#[test]
fn the_page_of_figures_is_that_of_the_declarations() {
    let mut page = "# Figures\n\nWhat every client records, by the names that thresholds, JSON, CSV and `intervals.ndjson` have. \
        [What each figure means](../method/README.md) defines each: formula, clock, and what it does not say. `weir check` has its \
        own: [what it counts](../method/mpeg-ts.md#weir-check).\n\nA *counter* is a number of events, a *level* the value \
        at a second's end, a *distribution* has `count`, `min`, `mean`, `p50`, `p90`, `p95`, `p99`, `p999` and `max`; one with \
        a sign may be below 0. Behind a key in JSON and CSV stands the unit: `_seconds`, `_bytes`, or nothing for a plain \
        number.\n\n## Every protocol\n"
        .to_owned();
    page.push_str(&figures(weir_metrics::common::FIGURES));
    // Schemes of one protocol have the same figures, and stand together.
    let common = weir_metrics::common::FIGURES.len();
    let mut protocols: Vec<(Vec<String>, Vec<Figure>)> = Vec::new();
    for scheme in weir_protocols::schemes() {
        let own: Vec<Figure> =
            weir_protocols::schema_of(scheme).unwrap().figures().skip(common).copied().collect();
        match protocols.iter_mut().find(|(_, figures)| *figures == own) {
            Some((schemes, _)) => schemes.push(format!("`{scheme}://`")),
            None => protocols.push((vec![format!("`{scheme}://`")], own)),
        }
    }
    for (schemes, own) in protocols.iter().filter(|(_, own)| !own.is_empty()) {
        let _ = write!(page, "\n## Only {}\n{}", schemes.join(" "), figures(own));
    }
    let saving: Vec<Figure> = weir_engine::ingest::SCHEMA.figures().skip(common).copied().collect();
    let _ = write!(page, "\n## Only workloads that save messages\n{}", figures(&saving));
    let _ = write!(
        page,
        "\n## Checks of the verdict\n\n[Their limits](../method/verdict.md#verdict); `--accept` takes these names.\n\n"
    );
    for check in weir_engine::checks::CHECKS {
        let _ = writeln!(page, "- `{check}`");
    }
    assert_up_to_date("figures.md", &page);
}

fn figures(declarations: &[Figure]) -> String {
    let mut table = "\n| figure | unit | kind | meaning |\n|---|---|---|---|\n".to_owned();
    for figure in declarations {
        let unit = figure.unit.name();
        let kind = match figure.kind {
            Kind::Counter => "counter",
            Kind::Gauge(Merge::Sum) => "level",
            Kind::Gauge(Merge::Max) => "level, the highest of all threads",
            Kind::Spread => "distribution",
            Kind::Signed => "distribution with a sign",
        };
        let _ = writeln!(table, "| `{}` | {unit} | {kind} | {} |", figure.name, prose(figure.help));
    }
    table
}

#[test]
fn the_page_of_faults_is_that_of_their_module() {
    let source = include_str!("../../../origin/src/fault.rs");
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    let text: Vec<&str> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    assert!(text.len() > 20, "the grammar stands at the top of crates/origin/src/fault.rs");
    let page = format!(
        "# Faults\n\nWhat `weir origin --fault` takes. The option may be repeated; examples are on [the page of the \
         origin](../guide/origin.md#faults).\n\n{}",
        text.join("\n")
    );
    assert_up_to_date("faults.md", &page);
}
