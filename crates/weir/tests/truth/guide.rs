//! What a reader of the guide pastes: every shell block of README.md and of the guide without the mark `not-run`, each in a network of its
//! own, in which the servers that the pages name are weir's origin under their names.
//!
//! weir is interrupted after a few seconds: what is held is that each command starts, finds its server and takes its options. README's
//! recipes are run to their end by `first_steps`.

use crate::support::{program, shared};
use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Blocks that are run at the same time.
const AT_ONCE: usize = 4;

/// Exit codes of a command that works: passed, too busy a machine to tell, interrupted.
const WORKS: [&str; 3] = ["0", "98", "105"];

/// Stands for weir: a few clients do, and a few seconds.
const WEIR: &str = r#"#!/bin/bash
arguments=() previous=
for argument in "$@"; do
	[[ $previous == -c && $argument -gt 20 ]] && argument=20
	arguments+=("$argument") previous=$argument
done
[[ $1 == origin || $1 == agent ]] && LIMIT=${LIMIT:-3}
echo "$*" >>"$LOG/begun"
timeout --kill-after 20 --signal INT --preserve-status "${LIMIT:-5}" "$WEIR" "${arguments[@]}" 2>"$LOG/stderr.$$"
code=$?
echo "$code	$*	$(tail -n 1 "$LOG/stderr.$$")" >>"$LOG/ended"
exit $code
"#;

/// Stands for `sleep 1` behind a server that was started: debug builds on a busy machine take longer.
const SETTLED: &str = r#"#!/bin/bash
for _ in {1..200}; do [[ $(ss --listening --tcp --numeric --no-header | wc --lines) -gt 0 ]] && break; sleep 0.1; done
sleep 1
"#;

/// The servers that the pages name, and what is on air there.
const SERVERS: &str = r#"
for name in nginx srs mosquitto OvenMediaEngine; do ln --symbolic "$WEIR" "$LOG/$name"; done
"$LOG/nginx" origin --rtmp :1935 --http-flv :8080 --http :40772 --services GR:8,BS:4 --rtc :3333 --mqtt :1883 >/dev/null 2>&1 &
for name in srs mosquitto OvenMediaEngine; do "$LOG/$name" origin --rtmp :0 >/dev/null 2>&1 & done
asks() { grep --quiet --regexp "$1" "$LOG/block"; }
asks node-exporter && prometheus-node-exporter --web.listen-address 127.0.0.1:9100 >/dev/null 2>&1 &
if asks m3u8; then
	mkdir --parents "$LOG/hls/live" && ln --symbolic a.m3u8 "$LOG/hls/live/a"
	(cd "$LOG/hls" && exec python3 -m http.server 80 >/dev/null 2>&1) &
	ffmpeg -nostdin -v quiet -re -f lavfi -i testsrc2=size=160x90:rate=10 -c:v libx264 -preset ultrafast -g 10 \
		-f hls -hls_time 1 -hls_list_size 6 "$LOG/hls/live/a.m3u8" &
	until [[ -f "$LOG/hls/live/a.m3u8" ]]; do sleep 0.1; done
	until (: >/dev/tcp/127.0.0.1/80) 2>/dev/null; do sleep 0.1; done
fi
until (: >/dev/tcp/127.0.0.1/1935) 2>/dev/null; do sleep 0.1; done
on_air() { "$WEIR" publish "rtmp://127.0.0.1/$1" --bitrate 300kbps -d 10m --quiet -o "$LOG/on-air-${1//\//-}" "${@:2}" >/dev/null 2>&1 & }
on_air 'live/{i}' --streams 10
for name in live/a live/livestream app/stream; do asks "weir publish .*$name" || asks "weir run" || on_air "$name"; done
for day in yesterday today; do
	asks "weir-runs/$day" && "$WEIR" play rtmp://127.0.0.1/live/0 -d 3s --warmup 0s --quiet -o "weir-runs/$day"
done
"#;

/// A shell block of a page.
struct Block {
    place: String,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// README.md and the pages of the guide, with their names.
fn pages() -> Vec<(String, String)> {
    let guide = root().join("docs/guide").read_dir().unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = guide.chain([root().join("README.md")]).collect();
    files.sort();
    let name = |file: &Path| file.file_name().unwrap().to_string_lossy().into_owned();
    files.iter().map(|file| (name(file), std::fs::read_to_string(file).unwrap())).collect()
}

/// The blocks of a page in this language that are to be run.
fn fenced<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let opening = format!("\n```{language}\n");
    page.split(opening.as_str()).skip(1).map(|rest| rest.split("\n```").next().unwrap_or_default()).collect()
}

fn blocks() -> Vec<Block> {
    let mut blocks = Vec::new();
    for (name, page) in pages() {
        for text in fenced(&page, "sh") {
            let first = text.lines().next().unwrap_or_default();
            blocks.push(Block { place: format!("{name}: {first}"), text: text.to_owned() });
        }
    }
    blocks
}

/// What the commands of the pages find: the scenarios that the pages print, those of the repository, a recording.
fn furnish(folder: &Path) {
    for (_, page) in pages() {
        for scenario in fenced(&page, "yaml") {
            let named = scenario.lines().find_map(|line| line.strip_prefix("name: ")).unwrap_or("load");
            std::fs::write(folder.join(format!("{}.yaml", named.replace(' ', "-"))), scenario).unwrap();
        }
    }
    let made =
        program("cp", "coreutils").arg("--recursive").arg(root().join("scenarios")).arg(folder).status();
    assert!(made.unwrap().success());
    let lavfi =
        ["-v", "error", "-f", "lavfi", "-i", "testsrc=size=160x120:rate=25:duration=2", "-c:v", "libx264"];
    let made = program("ffmpeg", "ffmpeg").args(lavfi).arg(folder.join("recording.ts")).status();
    assert!(made.unwrap().success());
    let programs = folder.join("programs");
    std::fs::create_dir(&programs).unwrap();
    // `systemctl restart` of the pages restarts what the reader has.
    for (name, text) in [("weir", WEIR), ("settled", SETTLED), ("systemctl", "#!/bin/sh\n")] {
        std::fs::write(programs.join(name), text).unwrap();
        std::fs::set_permissions(programs.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// The block as a script: a reader's servers, addresses of documentation (RFC 5737) and `/tmp` are the test's own.
fn script(block: &Block, log: &Path) -> String {
    let needs_servers = !block.text.contains("weir origin") && !block.text.contains("nginx -c");
    let mut script = format!("ip link set lo up\n{}", if needs_servers { SERVERS } else { "" });
    for line in block.text.lines() {
        let is_background = line.starts_with("weir ") && line.split(' ').any(|word| word == "&");
        let limit = if is_background { "LIMIT=60 " } else { "" };
        writeln!(script, "{limit}{line}").unwrap();
    }
    // What was put into the background last has begun before it all ends.
    script.push_str("sleep 2\n");
    let own = format!("{}/", log.display());
    let addresses = ["192.0.2.1", "192.0.2.7"].iter();
    let script = addresses.fold(script, |script, address| script.replace(address, "127.0.0.1"));
    script.replace("sleep 1", "settled").replace("@HOST", "@127.0.0.1").replace(" /tmp/", &format!(" {own}"))
}

/// Runs a block, and says what did not work.
fn trouble(block: &Block, folder: &Path) -> Option<String> {
    let (log, at) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut copy = program("cp", "coreutils");
    copy.arg("--recursive").arg(format!("{}/.", folder.display())).arg(at.path());
    assert!(copy.status().unwrap().success());
    std::fs::write(log.path().join("block"), &block.text).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}:/usr/sbin:/sbin", at.path().join("programs").display());
    let output = program("unshare", "util-linux")
        .args(["--net", "--pid", "--fork", "--kill-child", "--mount-proc", "timeout", "300", "bash", "-c"])
        .arg(script(block, log.path()))
        .current_dir(at.path())
        .env("PATH", path)
        .env("WEIR", env!("CARGO_BIN_EXE_weir"))
        .env("LOG", log.path())
        .output()
        .unwrap();
    let read = |name: &str| std::fs::read_to_string(log.path().join(name)).unwrap_or_default();
    let begun = read("begun").lines().count();
    let is_call = |line: &&str| line.starts_with("weir ") || line.contains("| weir ");
    let written = block.text.lines().filter(is_call).count();
    let failed = read("ended");
    let failed = failed.lines().filter(|line| !WORKS.contains(&line.split('\t').next().unwrap_or_default()));
    let failed: Vec<_> = failed.collect();
    // Of a block without weir the shell's own code tells.
    let is_fine = begun == written && failed.is_empty() && (written > 0 || output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    (!is_fine).then(|| format!("{}\n  {begun} of {written} begun, {failed:#?}\n{said}", block.place))
}

#[test]
fn every_command_of_the_guide_starts_finds_its_server_and_takes_its_options() {
    let _machine = shared();
    let folder = tempfile::tempdir().unwrap();
    furnish(folder.path());
    let blocks = blocks();
    assert!(blocks.len() > 25, "{} blocks", blocks.len());
    let (next, troubles) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(block) = blocks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let trouble = trouble(block, folder.path());
                    troubles.lock().unwrap().extend(trouble);
                }
            });
        }
    });
    let troubles = troubles.into_inner().unwrap();
    assert!(troubles.is_empty(), "{}", troubles.join("\n\n"));
}
