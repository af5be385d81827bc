//! The Debian package: what is in it is installed by dpkg, and what was installed runs.

use crate::support::shared;
use std::fs;
use std::path::Path;
use std::process::Command;
use weir_testing::program;

/// A tool that comes by `cargo install`.
fn cargo_tool(name: &str) {
    let found = Command::new("cargo").args([name, "--version"]).output().unwrap();
    assert!(found.status.success(), "cargo-{name} is missing; cargo install --locked cargo-{name}");
}

/// What a command prints, which must end well.
fn output_of(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}\n{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Packs the weir of this test, and installs it below `root` as dpkg does.
fn install(root: &Path) {
    cargo_tool("deb");
    let package = root.join("weir.deb");
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let target = Path::new(env!("CARGO_BIN_EXE_weir")).ancestors().nth(2).unwrap();
    let mut pack = Command::new(checkout.join(".ci/package"));
    output_of(
        pack.args(["dev".as_ref(), package.as_os_str(), "--fast".as_ref()]).env("CARGO_TARGET_DIR", target),
    );

    let database = root.join("var/lib/dpkg");
    for folder in ["info", "updates", "triggers"] {
        fs::create_dir_all(database.join(folder)).unwrap();
    }
    fs::write(database.join("status"), "").unwrap();
    // What it depends on is this machine's, not the empty root's.
    let mut dpkg = program("dpkg", "dpkg");
    dpkg.arg(format!("--root={}", root.display())).args(["--force-depends", "--force-not-root", "--install"]);
    output_of(dpkg.arg(&package));
}

#[test]
fn the_package_is_installed_with_its_pages_and_units_and_its_demo_runs() {
    let _machine = shared();
    let root = tempfile::tempdir().unwrap();
    install(root.path());
    let weir = root.path().join("usr/bin/weir");

    let run = root.path().join("demo");
    let demo = output_of(Command::new(&weir).args(["demo", "--output"]).arg(&run));
    assert!(demo.contains("Play") && run.join("report.html").is_file(), "{demo}");

    let share = root.path().join("usr/share");
    let page = fs::read_to_string(share.join("man/man1/weir-play.1")).unwrap();
    assert!(page.contains("clients"), "{page}");
    for file in [
        "bash-completion/completions/weir",
        "zsh/vendor-completions/_weir",
        "fish/vendor_completions.d/weir.fish",
        "doc/weir/copyright",
    ] {
        assert!(share.join(file).is_file(), "{file}");
    }
    for example in ["load.yaml", "scenarios/nginx-rtmp.yaml", "scenarios/mqtt-avro-json.yaml"] {
        let example = share.join("doc/weir/examples").join(example);
        output_of(Command::new(&weir).args(["run", "--check"]).arg(example));
    }

    // systemd reads the units, with the targets that they stand behind, and finds the program that they start.
    let units = root.path().join("usr/lib/systemd/system");
    for unit in fs::read_dir("/usr/lib/systemd/system").unwrap() {
        let unit = unit.unwrap().path();
        if unit.extension().is_some_and(|kind| kind == "target") && unit.is_file() {
            fs::copy(&unit, units.join(unit.file_name().unwrap())).unwrap();
        }
    }
    let mut verify = program("systemd-analyze", "systemd");
    verify.args(["verify", "--man=no"]).arg(format!("--root={}", root.path().display()));
    output_of(verify.args(["weir-agent.service", "weir-ingest@tracks.service"]));
}
