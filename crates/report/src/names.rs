//! What a watched server is called: by its program rather than by the number that it was found by.

use crate::quote::quote;
use weir_engine::summary::RunFacts;
use weir_observe::{TargetEnvironment, Watch};

/// The names of a run's watched servers.
#[derive(Debug)]
pub(crate) struct Names<'a> {
    targets: &'a [TargetEnvironment],
}

impl<'a> Names<'a> {
    pub(crate) fn new(run: &'a RunFacts) -> Self {
        Self { targets: &run.targets }
    }

    /// `nginx` for `name=nginx`; for a pid or a port the program's name, if no other watched server bears it.
    pub(crate) fn of(&self, label: &str) -> String {
        let name = match label.parse::<Watch>() {
            Ok(Watch::Name(name) | Watch::Every(name)) => name,
            Ok(watch) => self.program_of(&watch).unwrap_or_else(|| match watch {
                Watch::Port(port) => format!(":{port}"),
                Watch::Pid(pid) => format!("pid {pid}"),
                Watch::Name(name) | Watch::Every(name) => name,
            }),
            Err(_) => label.to_owned(),
        };
        quote(&name, 24)
    }

    /// The same of one that was not heard at the end, with the agents that watch what is called so: one of them is silent.
    pub(crate) fn of_unheard(&self, label: &str) -> String {
        let watching = self.targets.iter().filter(|target| target.watch.to_string() == label);
        let agents: Vec<_> = watching.filter_map(|target| Some(quote(target.agent.as_ref()?, 24))).collect();
        let name = self.of(label);
        if agents.is_empty() { name } else { format!("{name} at agent {}", agents.join(" or ")) }
    }

    fn program_of(&self, watch: &Watch) -> Option<String> {
        let target = self.targets.iter().find(|target| target.watch == *watch)?;
        let name = program(target)?;
        let bearers = self.targets.iter().filter(|other| program(other).as_deref() == Some(&name)).count();
        (bearers == 1).then_some(name)
    }
}

/// The last component of the executable's path, as the kernel names it or as it was called.
fn program(target: &TargetEnvironment) -> Option<String> {
    let path = target.executable.as_deref().or_else(|| target.command_line.first().map(String::as_str))?;
    let name = path.rsplit('/').next().unwrap_or(path).split_whitespace().next()?;
    Some(name.trim_end_matches(':').to_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(watch: Watch, executable: Option<&str>, argument: &str) -> TargetEnvironment {
        TargetEnvironment {
            watch,
            pid: 1,
            executable: executable.map(str::to_owned),
            version: None,
            command_line: vec![argument.to_owned()],
            descriptors: None,
            cgroup_quota_cores: None,
            agent: None,
        }
    }

    #[test]
    fn a_server_is_called_by_its_program_unless_another_one_is_too() {
        let targets = [
            target(Watch::Port(1935), Some("/opt/srs/objs/srs"), "./objs/srs"),
            target(Watch::Pid(7), None, "nginx: master process"),
            target(Watch::Pid(8), Some("/usr/bin/weir"), "weir"),
            target(Watch::Pid(9), Some("/usr/bin/weir"), "weir"),
        ];
        let names = Names { targets: &targets };
        for (label, name) in [
            ("name=mediamtx", "mediamtx"),
            ("port=1935", "srs"),
            ("pid=7", "nginx"),
            ("pid=8", "pid 8"),
            ("port=80", ":80"),
            ("what?", "what?"),
        ] {
            assert_eq!(names.of(label), name);
        }
    }

    #[test]
    fn a_server_that_is_not_heard_is_named_with_its_agent() {
        let at = |agent: &str, pid| TargetEnvironment {
            agent: Some(agent.to_owned()),
            ..target(Watch::Pid(pid), None, "nginx: master")
        };
        let targets = [at("east", 7), at("west", 8), at("north", 8)];
        let names = Names { targets: &targets };
        assert_eq!(names.of_unheard("pid=7"), "pid 7 at agent east");
        assert_eq!(names.of_unheard("pid=8"), "pid 8 at agent west or north");
        assert_eq!(names.of_unheard("port=80"), ":80");
    }
}
