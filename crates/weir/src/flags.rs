//! The flags of settings that texts of the libraries name: what the command line calls them, in one place.

use weir_setting::Setting;

/// The flag of a setting: its name with dashes, or what people write for short.
pub(crate) fn flag(setting: &Setting<'_>) -> String {
    match setting.name() {
        "clients_of_scenario" => "-c".to_owned(),
        "duration" => "-d".to_owned(),
        "interfaces" => "--interface".to_owned(),
        "output" => "-o".to_owned(),
        "qos_of_ingest" => "-q".to_owned(),
        name => format!("--{}", name.replace('_', "-")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::help;
    use clap::Command;

    fn flags_of(command: &Command) -> Vec<String> {
        let own = command.get_arguments().flat_map(|it| {
            let long = it.get_long().map(|long| format!("--{long}"));
            long.into_iter().chain(it.get_short().map(|short| format!("-{short}")))
        });
        own.chain(command.get_subcommands().flat_map(flags_of)).collect()
    }

    #[test]
    fn every_setting_that_a_text_names_is_a_flag_of_the_command_line() {
        let flags = flags_of(&help::command());
        let all = weir_setting::ALL.iter();
        let unknown: Vec<_> = all.map(flag).filter(|flag| !flags.contains(flag)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
