//! What a command line says of a scenario instead of its file: single keys, clients, the time, and where relative paths
//! begin. Values only; nothing here reads a file.

use crate::scenario::explanation::nearest_key;
use crate::scenario::{Scenario, ScenarioError, Span, WorkloadSpec};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use weir_setting::{CLIENTS_OF_SCENARIO, SET};

impl Scenario {
    /// The same with one key of another value, as if it stood so in the file: `seed`, `workloads.0.bitrate`,
    /// `workloads.NAME.clients`.
    ///
    /// # Errors
    /// There is no such key, or its value is malformed.
    pub fn with(&self, key: &str, value: &str) -> Result<Self, ScenarioError> {
        let wrong = |words: String| ScenarioError::Override { setting: SET.to(key.to_owned()), words };
        let whole = serde_json::to_value(self).map_err(|error| wrong(error.to_string()))?;
        let read: Value =
            crate::scenario::yaml::read(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        let set = |read: Value| {
            let mut whole = whole.clone();
            put(&mut whole, key, read).map_err(wrong)?;
            serde_json::from_value::<Self>(whole).map_err(|error| wrong(said(&error.to_string())))
        };
        match set(read.clone()) {
            // `name=5` is a text, though it looks like a number.
            Err(error) if !read.is_string() => set(Value::String(value.to_owned())).map_err(|_| error),
            done => done,
        }
    }

    /// Gives the one workload that plays, or publishes if none plays, another number of clients.
    ///
    /// # Errors
    /// There are several such workloads, or the one has a table of stages.
    pub fn set_clients(&mut self, clients: u32) -> Result<(), ScenarioError> {
        let wrong = |words: String| ScenarioError::Override { setting: CLIENTS_OF_SCENARIO, words };
        let Some(position) = self.sought() else {
            return Err(wrong(format!(
                "the scenario has not one workload that this could mean; write {}",
                SET.to("workloads.NAME.clients=N")
            )));
        };
        let workload = &mut self.workloads[position];
        if !workload.stages.is_empty() {
            return Err(wrong(format!(
                "the workload has `stages`, each with its clients; write {}",
                SET.to("workloads.NAME.stages='[{clients: N, hold: TIME}]'")
            )));
        }
        workload.clients = Some(clients);
        Ok(())
    }

    /// The position of the one workload that plays, or publishes if none plays; `None` if there are several such workloads, or
    /// none.
    pub fn sought(&self) -> Option<usize> {
        let plays = self.workloads.iter().any(|it| !it.play.0.is_empty());
        let is_meant = |spec: &WorkloadSpec| spec.play.0.is_empty() != plays && !spec.background;
        let mut meant = self.workloads.iter().zip(0..).filter(|(spec, _)| is_meant(spec));
        let (_, position) = meant.next()?;
        meant.next().is_none().then_some(position)
    }

    /// Holds clients for another time, in all workloads that say for how long.
    pub fn set_duration(&mut self, time: &Span) {
        for workload in &mut self.workloads {
            for stage in &mut workload.stages {
                stage.hold = time.clone();
            }
            if workload.duration.is_some() {
                workload.duration = Some(time.clone());
            }
        }
    }

    /// Takes relative paths as relative to `folder`, the scenario file's.
    pub fn resolve(&mut self, folder: &Path) {
        self.each_file(&mut |path| *path = folder.join(&*path));
    }

    /// Shows every path of a file that a run would read or write to `change`; those of steps are not among them.
    pub fn each_file(&mut self, change: &mut dyn FnMut(&mut PathBuf)) {
        let behind = |text: &mut String, kinds: &[&str], change: &mut dyn FnMut(&mut PathBuf)| {
            if let Some((kind, path)) =
                text.split_once(':').filter(|(kind, path)| kinds.contains(kind) && !path.is_empty())
            {
                let mut path = PathBuf::from(path);
                change(&mut path);
                *text = format!("{kind}:{}", path.display());
            }
        };
        [&mut self.cacert, &mut self.cert, &mut self.key].into_iter().flatten().for_each(&mut *change);
        for workload in &mut self.workloads {
            workload.options.each_file(change);
            for url in workload.play.0.iter_mut().chain(&mut workload.publish.0) {
                if let Some(file) = url.strip_prefix('@') {
                    let mut path = PathBuf::from(file);
                    change(&mut path);
                    *url = format!("@{}", path.display());
                }
            }
            if let Some(into) = &mut workload.into {
                into.schema.iter_mut().chain(&mut into.save_password_file).for_each(&mut *change);
                into.save.iter_mut().for_each(|save| behind(save, &["sqlite", "parquet"], change));
                if let Some(registry) = into.schema_registry.as_mut().filter(|place| !place.contains("://")) {
                    let mut path = PathBuf::from(&*registry);
                    change(&mut path);
                    *registry = path.display().to_string();
                }
            }
        }
    }
}

/// Puts a value where the key says; lists are gone into by position or by name.
fn put(whole: &mut Value, key: &str, value: Value) -> Result<(), String> {
    let mut at = whole;
    let mut steps = key.split('.').peekable();
    while let Some(step) = steps.next() {
        let last = steps.peek().is_none();
        if at.is_null() {
            // What the file does not say, and becomes a mapping by what is put into it.
            *at = Value::Object(Map::new());
        }
        at = match at {
            Value::Array(list) => {
                let named = |it: &Value| label(it) == Some(step);
                let position = list.iter().position(named).or_else(|| step.parse().ok());
                list.get_mut(position.unwrap_or(usize::MAX))
                    .ok_or_else(|| format!("there is no '{step}' in the list"))?
            }
            Value::Object(map) => map.entry(step).or_insert(Value::Null),
            _ => return Err(format!("'{step}' is in nothing that has keys")),
        };
        if last {
            *at = value;
            return Ok(());
        }
    }
    Ok(())
}

/// What a workload is called: its name, or its verb.
fn label(workload: &Value) -> Option<&str> {
    let verb = ["play", "publish", "ingest", "probe"]
        .into_iter()
        .find(|verb| workload.get(verb).and_then(Value::as_array).is_some_and(|urls| !urls.is_empty()));
    workload.get("name").and_then(Value::as_str).or(verb)
}

/// An error of serde without its place, which is in no file, and with the nearest known key.
fn said(words: &str) -> String {
    match nearest_key(words) {
        Some((unknown, nearest)) => format!("unknown key `{unknown}`; did you mean `{nearest}`?"),
        None => match words.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`')) {
            Some((unknown, _)) => {
                format!("unknown key `{unknown}`; `weir schema scenario` has all that there are")
            }
            None => words.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
cacert: ca.pem
workloads:
  - {name: source, publish: 'rtmp://h/live/x', file: ../clip.mp4}
  - {play: 'rtmp://h/live/x', clients: 3, duration: 10s}
";

    fn scenario() -> Scenario {
        Scenario::parse(TEXT).unwrap()
    }

    #[test]
    fn a_key_is_set_as_if_it_stood_in_the_file() {
        let set = |key: &str, value: &str| scenario().with(key, value).unwrap();
        assert_eq!(set("seed", "3").seed, 3);
        assert_eq!(set("name", "5").name, "5");
        assert_eq!(set("workloads.play.clients", "7").workloads[1].clients, Some(7));
        assert_eq!(set("workloads.source.bitrate", "2mbps").workloads[0].options.texts("bitrate"), ["2mbps"]);
        assert_eq!(set("workloads.0.qos", "1").workloads[0].options.texts("qos"), ["1"]);
        assert_eq!(set("workloads.1.play", "[rtmp://a/b/c, rtmp://d/e/f]").workloads[1].play.0.len(), 2);
        for (key, value, words) in [
            ("sead", "3", "unknown key `sead`; did you mean `seed`?"),
            ("n", "3", "unknown key `n`; `weir schema scenario` has all that there are"),
            ("workloads.crowd.clients", "3", "there is no 'crowd'"),
            ("workloads.0.bitrate", "fast", "fast"),
            ("seed.x", "3", "'x' is in nothing that has keys"),
        ] {
            let said = scenario().with(key, value).unwrap_err().to_string();
            assert!(said.contains(words) && said.contains(&format!("`set: {key}`")), "{said}");
        }
    }

    #[test]
    fn clients_and_time_of_a_command_line_come_before_those_of_the_file() {
        let mut changed = scenario();
        changed.set_clients(50).unwrap();
        changed.set_duration(&"3s".parse().unwrap());
        assert_eq!((changed.workloads[1].clients, changed.workloads[0].clients), (Some(50), None));
        let spans: Vec<_> = changed.workloads.iter().map(|it| it.duration.as_ref().map(Span::get)).collect();
        assert_eq!(spans, [None, Some(std::time::Duration::from_secs(3))]);
        let mut two = scenario();
        two.workloads.push(two.workloads[1].clone());
        assert!(two.set_clients(5).unwrap_err().to_string().contains("`set: workloads.NAME.clients=N`"));
        let mut table = scenario()
            .with("workloads.1", "{play: 'rtmp://h/a/b', stages: [{clients: 1, hold: 1s}]}")
            .unwrap();
        assert!(table.set_clients(5).unwrap_err().to_string().contains("`stages`"));
        table.set_duration(&"9s".parse().unwrap());
        assert_eq!(table.workloads[1].stages[0].hold.get().as_secs(), 9);
    }

    #[test]
    fn relative_paths_begin_at_the_scenario_file() {
        let mut found = scenario();
        let options = found.workloads[0].options.clone();
        found.workloads[0].options =
            options.with("payload", "avro:s.avsc").with("password_file", "/etc/secret");
        found.resolve(Path::new("lab/one"));
        assert_eq!(found.cacert.as_deref(), Some(Path::new("lab/one/ca.pem")));
        let text = |name: &str| found.workloads[0].options.texts(name)[0].clone();
        assert_eq!(text("file"), "lab/one/../clip.mp4");
        assert_eq!(text("payload"), "avro:lab/one/s.avsc");
        assert_eq!(text("password_file"), "/etc/secret");
    }
}
