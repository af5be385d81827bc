//! What is in `deploy` is read by what it is for: the manifests are objects of Kubernetes' API without a key that their types do not
//! have, and the others are valid shell, YAML, and units.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kubernetes")
}

fn documents(name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(folder().join(name)).unwrap();
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Reads an object as its type. A key that the type does not have is not in what is written again, and the two differ.
fn strictly<T: DeserializeOwned + Serialize>(object: &Value) -> T {
    let typed: T =
        serde_json::from_value(object.clone()).unwrap_or_else(|error| panic!("{error}: {object:#}"));
    let again = serde_json::to_value(&typed).unwrap();
    assert_eq!(again, *object, "an unknown key");
    typed
}

fn job() -> Job {
    strictly(&documents("job.yaml").remove(0))
}

#[test]
fn every_object_has_a_type_of_the_api_and_no_unknown_key() {
    let kustomization = documents("kustomization.yaml").remove(0);
    let resources = kustomization["resources"].as_array().unwrap();
    let mut kinds = BTreeSet::new();
    for object in resources.iter().flat_map(|name| documents(name.as_str().unwrap())) {
        let kind = object["kind"].as_str().unwrap();
        match kind {
            "Deployment" => drop(strictly::<Deployment>(&object)),
            "Job" => drop(strictly::<Job>(&object)),
            "NetworkPolicy" => drop(strictly::<NetworkPolicy>(&object)),
            "PersistentVolumeClaim" => drop(strictly::<PersistentVolumeClaim>(&object)),
            "Service" => drop(strictly::<Service>(&object)),
            kind => panic!("{kind} is not checked"),
        }
        kinds.insert(kind.to_owned());
    }
    assert_eq!(kinds.len(), 5, "{kinds:?}");
    // The files that the generators name exist.
    for generator in kustomization["configMapGenerator"].as_array().unwrap() {
        let files = generator["files"].as_array().or_else(|| generator["envs"].as_array()).unwrap();
        assert!(files.iter().all(|file| folder().join(file.as_str().unwrap()).is_file()), "{generator}");
    }
}

#[test]
#[should_panic(expected = "an unknown key")]
fn a_key_that_is_misspelt_is_found() {
    let mut job = documents("job.yaml").remove(0);
    job["spec"]["backofLimitPerIndex"] = 0.into();
    strictly::<Job>(&job);
}

#[test]
fn the_job_has_a_coordinator_and_agents_and_restarts_none_of_them() {
    let spec = job().spec.unwrap();
    assert_eq!(spec.completion_mode.as_deref(), Some("Indexed"));
    let settings = std::fs::read_to_string(folder().join("settings.env")).unwrap();
    let agents: i32 =
        settings.lines().find_map(|line| line.strip_prefix("AGENTS=")).unwrap().parse().unwrap();
    assert_eq!((spec.completions, spec.parallelism), (Some(agents + 1), Some(agents + 1)));
    assert_eq!(
        (spec.backoff_limit_per_index, spec.pod_replacement_policy.as_deref()),
        (Some(0), Some("Failed"))
    );
    let success = spec.success_policy.unwrap();
    assert_eq!(success.rules[0].succeeded_indexes.as_deref(), Some("0"));
    // Each exit code other than 0 matches exactly one rule.
    let rules = spec.pod_failure_policy.unwrap().rules;
    let codes = |action: &str| {
        rules.iter().find(|rule| rule.action == action).unwrap().on_exit_codes.clone().unwrap()
    };
    let (job, index) = (codes("FailJob"), codes("FailIndex"));
    assert_eq!((job.operator.as_str(), index.operator.as_str()), ("In", "NotIn"));
    assert!(job.values.contains(&2) && job.values.contains(&104));
    assert_eq!([vec![0], job.values].concat(), index.values);
    let pod = spec.template.spec.unwrap();
    let spread = pod.topology_spread_constraints.unwrap();
    assert_eq!(spread[0].topology_key, "kubernetes.io/hostname");
    assert_eq!(pod.restart_policy.as_deref(), Some("Never"));
    // Secrets are referenced, and no value is written out.
    let env = pod.containers[0].env.as_ref().unwrap();
    assert!(env.iter().all(|it| it.value.is_none()), "{env:?}");
    let claims: Vec<_> =
        pod.volumes.iter().flatten().filter_map(|it| it.persistent_volume_claim.as_ref()).collect();
    assert_eq!((claims.len(), claims[0].claim_name.as_str()), (1, "weir-results"));
}

#[test]
fn the_commands_of_the_job_and_ssh_sh_are_valid_shell() {
    let command = job().spec.unwrap().template.spec.unwrap().containers.remove(0).command.unwrap();
    assert_eq!(command[..2], ["/bin/sh", "-c"]);
    let parses = |words: &[&str]| Command::new("sh").arg("-n").args(words).status().unwrap().success();
    assert!(parses(&["-c", &command[2]]));
    assert!(parses(&[&folder().join("../ssh.sh").display().to_string()]));
}

/// Agents would wait for another coordinator: the job must end with its coordinator, whatever that ended with.
#[test]
fn a_coordinator_ends_with_a_code_that_ends_the_job() {
    let command = job().spec.unwrap().template.spec.unwrap().containers.remove(0).command.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let weir = folder.path().join("weir");
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let ended = |how: &str| {
        std::fs::write(&weir, format!("#!/bin/sh\n{how}\n")).unwrap();
        std::fs::set_permissions(&weir, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut shell = Command::new(&command[0]);
        shell.args(&command[1..]).env("PATH", &path).env("JOB_COMPLETION_INDEX", "0").env("AGENTS", "1");
        shell.stderr(Stdio::null()).status().unwrap().code()
    };
    assert_eq!(["exit 0", "exit 97", "exit 98", "exit 104"].map(ended), [0, 97, 98, 104].map(Some));
    assert_eq!(["exit 1", "exit 101", "exit 105", "kill -9 $$"].map(ended), [Some(98); 4]);
}

fn deploy(name: &str) -> String {
    std::fs::read_to_string(folder().join("..").join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Each file of `deploy`, below it, in order.
fn files(below: &Path, prefix: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in below.read_dir().unwrap().map(Result::unwrap) {
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.path().is_dir() {
            found.extend(files(&entry.path(), &format!("{name}/")));
        } else {
            found.push(name);
        }
    }
    found.sort();
    found
}

#[test]
fn every_file_that_is_shipped_is_read_by_a_test() {
    // Those that are not read here: scenario.yaml by `engine/tests/scenarios.rs`, ssh.sh, besides its syntax, by `truth::agents::places`,
    // the units, besides their options, by `truth::package`.
    let known = [
        "ci/github.yml",
        "ci/gitlab.yml",
        "kubernetes/Containerfile",
        "kubernetes/job.yaml",
        "kubernetes/kustomization.yaml",
        "kubernetes/nats.conf",
        "kubernetes/nats.yaml",
        "kubernetes/results.yaml",
        "kubernetes/scenario.yaml",
        "kubernetes/settings.env",
        "nomad/weir.nomad.hcl",
        "ssh.sh",
        "systemd/agent.conf",
        "systemd/ingest.conf",
        "systemd/weir-agent.service",
        "systemd/weir-ingest@.service",
    ];
    assert_eq!(files(&folder().join(".."), ""), known);
}

/// The flags of a command, by the reference, which is made from the command line.
fn flags(command: &str) -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/commands.md");
    let reference = std::fs::read_to_string(path).unwrap();
    let section = reference.split("\n## ").find(|it| it.starts_with(&format!("weir {command}\n"))).unwrap();
    let words = section.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-'));
    words.filter(|word| word.starts_with('-')).map(str::to_owned).collect()
}

#[test]
fn every_flag_of_weir_that_is_shipped_is_one() {
    let job = job().spec.unwrap().template.spec.unwrap().containers.remove(0).command.unwrap();
    let lines = [
        job[2].as_str(),
        &deploy("systemd/weir-agent.service"),
        &deploy("systemd/weir-ingest@.service"),
        &deploy("nomad/weir.nomad.hcl"),
        &deploy("ci/github.yml"),
        &deploy("ci/gitlab.yml"),
    ]
    .join("\n");
    let options = |file: &str| {
        let text = deploy(file);
        text.lines().find_map(|line| line.strip_prefix("WEIR_OPTIONS=")).unwrap().to_owned()
    };
    let mut found = 0;
    let mut check = |command: &str, words: &str| {
        let known = flags(command);
        for flag in words.split(|it: char| it.is_whitespace() || "\"[],".contains(it)) {
            if flag.starts_with('-') && flag != "-" {
                assert!(known.contains(flag), "weir {command} has no {flag}: {words}");
                found += 1;
            }
        }
    };
    check("agent", &options("systemd/agent.conf"));
    check("ingest", &options("systemd/ingest.conf"));
    // A command that goes on in the next line ends with a backslash.
    for line in lines.replace("\\\n", " ").lines().filter(|line| !line.trim_start().starts_with('#')) {
        for (command, before) in [
            ("agent", "weir agent "),
            ("run", "weir run "),
            ("ingest", "/usr/bin/weir ingest "),
            ("agent", "args    = [\"agent\", "),
        ] {
            if let Some((_, words)) = line.split_once(before) {
                // What a shell puts in, and what it does with the output, has flags of other programs.
                let own = words.split("$(").next().and_then(|own| own.split(" >> ").next());
                check(command, own.unwrap_or_default());
            }
        }
    }
    assert!(found > 20, "{found} flags");
}

#[test]
fn the_examples_of_pipelines_install_weir_and_run_it_and_stand_on_their_page() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/ci.md");
    let page = std::fs::read_to_string(page).unwrap();
    for (file, steps) in [("ci/github.yml", "/jobs/load/steps"), ("ci/gitlab.yml", "/load/script")] {
        let text = deploy(file);
        let pipeline: Value = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        let steps = pipeline.pointer(steps).unwrap().as_array().unwrap();
        let commands: Vec<_> =
            steps.iter().filter_map(|step| step.as_str().or_else(|| step["run"].as_str())).collect();
        assert!(commands.iter().any(|it| it.starts_with("weir run load.yaml ")), "{file}: {commands:?}");
        assert!(text.contains("sha256sum -c -") && text.contains("weir-run"), "{file}");
        assert!(page.contains(&text), "docs/guide/ci.md does not show {file} as it is");
    }
    let github: Value = serde_saphyr::from_str(&deploy("ci/github.yml")).unwrap();
    let install = github.pointer("/jobs/load/steps/1/run").unwrap().as_str().unwrap();
    assert!(Command::new("sh").args(["-n", "-c", install]).status().unwrap().success());
}

#[test]
fn each_unit_is_given_what_its_command_line_names() {
    for (unit, file) in [("weir-agent.service", "agent.conf"), ("weir-ingest@.service", "ingest.conf")] {
        let (unit, settings) = (deploy(&format!("systemd/{unit}")), deploy(&format!("systemd/{file}")));
        let names: BTreeSet<&str> = settings
            .lines()
            .filter_map(|line| line.trim_start_matches("# ").split_once('='))
            .map(|(name, _)| name)
            .collect();
        let command = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
        let words = command.split(['$', '{', '}', ' ']).filter(|word| word.starts_with("WEIR_"));
        for name in words {
            assert!(names.contains(name), "{file} has no {name}");
        }
        // A line is a comment or a setting: systemd passes over anything else, with a warning in the log.
        for line in settings.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (name, _) = line.split_once('=').unwrap_or_else(|| panic!("{file}: {line}"));
            assert!(name.chars().all(|it| it.is_ascii_uppercase() || it == '_'), "{file}: {line}");
        }
    }
}

#[test]
fn the_image_of_the_job_has_weir_where_the_image_of_weir_has_it() {
    let copies =
        |text: &str| text.lines().find_map(|line| line.strip_prefix("COPY ").map(str::to_owned)).unwrap();
    let own = std::fs::read_to_string(folder().join("../../Containerfile")).unwrap();
    assert_eq!(copies(&own), "weir /usr/bin/weir");
    let job = deploy("kubernetes/Containerfile");
    assert_eq!(copies(&job), "--from=weir /usr/bin/weir /usr/bin/weir");
    let last = job.lines().rfind(|line| line.starts_with("FROM ")).unwrap();
    assert!(last.contains("busybox"), "it needs a shell: {last}");
}

#[test]
fn nats_reads_its_configuration() {
    let mut nats = weir_testing::program("nats-server", "nats-server");
    let checked =
        nats.args(["-t", "-c"]).arg(folder().join("nats.conf")).env("WEIR_NATS_TOKEN", "t0123").output();
    let checked = checked.unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

/// No parser of HCL is among what weir is built of: brackets, strings and the variables that are named.
#[test]
fn the_job_of_nomad_closes_what_it_opens_and_declares_what_it_names() {
    let text = deploy("nomad/weir.nomad.hcl");
    let mut open = Vec::new();
    let mut declared = BTreeSet::new();
    let mut in_template = false;
    for line in text.lines() {
        if in_template || line.contains("<<-EOT") {
            in_template = line.trim() != "EOT";
            continue;
        }
        // A comment begins with `#` outside of a string; `//` stands in none here but of a URL.
        let code = line.split(" # ").next().unwrap();
        if code.trim_start().starts_with('#') {
            continue;
        }
        assert!(code.matches('"').count().is_multiple_of(2), "{line}");
        for (number, part) in code.split('"').enumerate() {
            for bracket in part.chars().filter(|_| number.is_multiple_of(2)) {
                match bracket {
                    '{' | '[' | '(' => open.push(bracket),
                    '}' | ']' | ')' => {
                        let pair = [('{', '}'), ('[', ']'), ('(', ')')];
                        assert!(open.pop().is_some_and(|it| pair.contains(&(it, bracket))), "{line}");
                    }
                    _ => {}
                }
            }
        }
        if let Some(name) = code.strip_prefix("variable \"") {
            declared.insert(name.split('"').next().unwrap().to_owned());
        }
    }
    assert!(open.is_empty() && !in_template, "{open:?}");
    for named in text.split("var.").skip(1) {
        let name: String = named.chars().take_while(char::is_ascii_alphanumeric).collect();
        assert!(declared.contains(&name), "{name} is not declared");
    }
    assert_eq!(declared.len(), 3);
}
