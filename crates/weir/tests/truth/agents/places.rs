//! What puts agents on machines: the script over ssh, with a shell of this machine in the place of ssh.

use crate::support::{CHECKS_OF_THE_MACHINE, Crew, NatsServer, air, config, shared};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/ssh.sh")
}

#[test]
fn a_run_over_ssh_has_an_agent_on_each_machine_and_leaves_none_behind() {
    let _machine = shared();
    let crew = Crew::at(NatsServer::with(&["--auth", "s3cret"]));
    let air = air(&config(&[]));
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // `ssh OPTIONS -- HOST COMMAND`; what it was told is kept.
    let ssh =
        "#!/bin/sh\nprintf '%s\\n' \"$@\" >>\"$SAID\"\nfor command; do :; done\nexec sh -c \"$command\"\n";
    std::fs::write(at("ssh"), ssh).unwrap();
    std::fs::set_permissions(at("ssh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("timeout");
    command
        .arg("90")
        .arg(script())
        .args(["one two", "play", &air.url, "-c", "4", "-d", "2s", "--warmup", "0s"]);
    command.args(["--json", "-", "--accept", CHECKS_OF_THE_MACHINE, "-o"]).arg(at("run"));
    command.env("PATH", path).env("SAID", at("said")).env("WEIR", env!("CARGO_BIN_EXE_weir"));
    command.env("NATS", crew.nats.url()).env("ONLY", "127.0.0.0/8").env("WEIR_NATS_TOKEN", "s3cret");
    let output = command.current_dir(folder.path()).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    let summary: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {err}"));
    assert_eq!(output.status.code(), Some(0), "{err}");
    let agents: Vec<_> = summary["run"]["agents"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(agents, ["agent-1", "agent-2"]);
    assert_eq!(summary["workloads"][0]["slots"]["planned"], 4);
    // Both have ended, and their token went another way than by the command line.
    let list = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["agents", "--nats", &crew.nats.url()])
        .env("WEIR_NATS_TOKEN", "s3cret")
        .output();
    let list = String::from_utf8(list.unwrap().stdout).unwrap();
    assert!(list.starts_with("no agent"), "{list}");
    let said = std::fs::read_to_string(at("said")).unwrap();
    assert!(said.contains("\none\n") && said.contains("\ntwo\n") && !said.contains("s3cret"), "{said}");
}

#[test]
fn what_the_script_lacks_is_said_and_what_is_no_address_is_refused() {
    let said = |words: &[&str], env: &[(&str, &str)]| {
        let mut command = Command::new(script());
        let output =
            command.args(words).env_remove("NATS").env_remove("ONLY").envs(env.iter().copied()).output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(said(&["one"], &[]).contains("which machines, and what they are to run"));
    assert!(said(&["one", "run", "f"], &[]).contains("NATS=nats://10.0.0.1:4222"));
    let env = [("NATS", "nats://h:4222"), ("ONLY", "10.0.0.0/8; touch x")];
    assert!(said(&["one", "run", "f"], &env).contains("has a character that is none of an address"));
    let env = [("NATS", "nats://s3cret@h:4222"), ("ONLY", "10.0.0.0/8")];
    let err = said(&["one", "run", "f"], &env);
    assert!(err.contains("NATS has credentials") && !err.contains("s3cret"), "{err}");
}
