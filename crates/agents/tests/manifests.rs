//! The manifests in `deploy/kubernetes` are objects of Kubernetes' API, and have no key that their types do not have.

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
