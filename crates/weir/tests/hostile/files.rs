//! Files that others made: each command that reads one says in a line what is wrong, and has cost little.

use crate::process::Process;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

/// A file or a folder, and the command of weir that meets it.
struct Row {
    name: &'static str,
    /// What weir is told; `HERE` stands for the folder.
    arguments: &'static [&'static str],
    /// Puts it there.
    make: fn(&Path),
    /// What weir says.
    says: &'static str,
    /// MiB of memory.
    memory: u64,
}

const HEAD: &str = include_str!("../../../../fuzz/corpus/run_directory/head");

/// A run directory whose `run.json` was changed so.
fn run_directory(folder: &Path, change: impl Fn(&str) -> String, histograms: &[u8]) {
    let run = folder.join("run");
    fs::create_dir(&run).unwrap();
    let head = HEAD.split('\0').next().unwrap();
    fs::write(run.join("run.json"), change(head)).unwrap();
    for lines in ["intervals.ndjson", "observe.ndjson", "events.ndjson"] {
        fs::write(run.join(lines), "").unwrap();
    }
    fs::write(run.join("histograms.hlog"), histograms).unwrap();
}

/// A distribution of HdrHistogram's V2 of 85 bytes that announces 4 GiB of counts.
fn announced_distribution(folder: &Path) {
    let numbers = [0x1c84_9313, u32::MAX, 0, 3].map(u32::to_be_bytes).concat();
    let head = [numbers, [1_u64, u64::MAX, 1.0_f64.to_bits()].map(u64::to_be_bytes).concat()].concat();
    let mut deflater = ZlibEncoder::new(Vec::new(), Compression::best());
    deflater.write_all(&head).unwrap();
    let deflated = deflater.finish().unwrap();
    let length = (deflated.len() as u32).to_be_bytes();
    let bytes = [&0x1c84_9314_u32.to_be_bytes()[..], &length, &deflated].concat();
    let line = format!("Tag=0/startup,0.000,1.000,1.0,{}\n", BASE64.encode(bytes));
    run_directory(folder, str::to_owned, line.as_bytes());
}

fn many_stages(folder: &Path) {
    let stages = r#"{"clients":1,"hold":"1s"},"#.repeat(3_000);
    let stages = format!(r#""stages":[{}],"#, stages.trim_end_matches(','));
    let change = |head: &str| head.replace(r#""clients":20,"#, "").replace(r#""duration":"30s","#, &stages);
    run_directory(folder, change, b"");
}

fn many_stages_of_a_scenario(folder: &Path) {
    let stages = "{clients: 1, hold: 1s}, ".repeat(3_000);
    let text = format!("workloads: [{{play: 'rtmp://127.0.0.1:1/a/b', stages: [{stages}]}}]\n");
    fs::write(folder.join("s.yaml"), text).unwrap();
}

/// Twelve records in records, of ten fields each.
fn multiplied_schema(folder: &Path) {
    let mut nested = "\"int\"".to_owned();
    for level in 0..12 {
        let inner = if level == 0 { "int".to_owned() } else { format!("R{}", level - 1) };
        let more: String =
            (0..9).map(|field| format!(r#", {{"name": "f{field}", "type": "{inner}"}}"#)).collect();
        nested = format!(
            r#"{{"type": "record", "name": "R{level}", "fields": [{{"name": "a", "type": {nested}}}{more}]}}"#
        );
    }
    fs::write(folder.join("s.avsc"), nested).unwrap();
}

fn pipe(folder: &Path) {
    assert!(Command::new("mkfifo").arg(folder.join("pipe")).status().unwrap().success());
}

/// A run directory in which each file is a pipe that nobody writes to.
fn pipes_of_a_run(folder: &Path) {
    let run = folder.join("run");
    fs::create_dir(&run).unwrap();
    assert!(Command::new("mkfifo").arg(run.join("run.json")).status().unwrap().success());
}

/// Ten terabytes that take no room on a disk.
fn endless_lines(folder: &Path) {
    run_directory(folder, str::to_owned, b"");
    fs::File::create(folder.join("run/intervals.ndjson")).unwrap().set_len(10 << 40).unwrap();
}

fn tags(folder: &Path) {
    let text = "workloads: [{play: !env URL, duration: 1s}]\n";
    fs::write(folder.join("s.yaml"), text).unwrap();
}

const ROW: Row = Row { name: "", arguments: &[], make: |_| {}, says: "", memory: 64 };
const REPORT: Row = Row { arguments: &["report", "HERE/run"], ..ROW };
const RUN: Row = Row { arguments: &["run", "HERE/s.yaml", "--no-tui"], ..ROW };

const ROWS: &[Row] = &[
    Row {
        name: "report: a distribution that announces 4 GiB",
        make: announced_distribution,
        says: "announces 4294967295 bytes of counts",
        ..REPORT
    },
    Row { name: "report: 3,000 stages", make: many_stages, says: "1 workload with 3,000 stages", ..REPORT },
    Row { name: "report: a pipe", make: pipes_of_a_run, says: "a pipe or a device; give a file", ..REPORT },
    Row { name: "report: ten terabytes", make: endless_lines, says: "a line of more than 16 MiB", ..REPORT },
    Row {
        name: "run: 3,000 stages",
        make: many_stages_of_a_scenario,
        says: "1 workload with 3,000 stages",
        ..RUN
    },
    Row { name: "run: tags", make: tags, says: "s.yaml:1:", ..RUN },
    Row {
        name: "run: a pipe",
        arguments: &["run", "HERE/pipe", "--no-tui"],
        make: pipe,
        says: "a pipe or a device; give a file",
        ..ROW
    },
    Row {
        name: "codec: a schema whose records multiply",
        arguments: &["codec", "HERE/s.avsc"],
        make: multiplied_schema,
        says: "a record of this schema has more than 4194304 values or 16 MiB",
        memory: 256,
    },
    Row {
        name: "publish: records of such a schema",
        arguments: &[
            "publish",
            "mqtt://127.0.0.1:1/a",
            "--payload",
            "avro:HERE/s.avsc",
            "-d",
            "1s",
            "--no-tui",
        ],
        make: multiplied_schema,
        says: "a record of this schema has more than 4194304 values or 16 MiB",
        memory: 256,
    },
    Row {
        name: "publish: a payload that is a pipe",
        arguments: &[
            "publish",
            "mqtt://127.0.0.1:1/a",
            "--payload",
            "file:HERE/pipe",
            "-d",
            "1s",
            "--no-tui",
        ],
        make: pipe,
        says: "a pipe or a device; give a file",
        ..ROW
    },
    Row {
        name: "publish: a password out of a pipe that nobody writes to",
        arguments: &[
            "publish",
            "mqtt://127.0.0.1:1/a",
            "--user",
            "me",
            "--password-file",
            "HERE/pipe",
            "-d",
            "1s",
            "--no-tui",
        ],
        make: pipe,
        says: "nothing came within 10 s",
        ..ROW
    },
];

fn run(row: &Row) {
    let folder = tempfile::tempdir().unwrap();
    (row.make)(folder.path());
    let here = folder.path().display().to_string();
    let arguments: Vec<String> = row.arguments.iter().map(|it| it.replace("HERE", &here)).collect();
    let mut process = Process::start(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let mut memory = 0;
    let code = process.wait(|spent| memory = memory.max(spent.memory));
    println!("{}: {memory} MiB, {code:?}", row.name);
    let err = process.err();
    assert!(code.is_some_and(|code| code != 0) && err.contains(row.says), "{}: {code:?}: {err}", row.name);
    assert!(!err.contains("panicked"), "{}: {err}", row.name);
    assert!(memory <= row.memory, "{}: {memory} MiB of {}", row.name, row.memory);
}

#[test]
fn files_of_others_are_refused_in_a_line_and_cost_little() {
    crate::all(ROWS, |row| row.name, run);
}
