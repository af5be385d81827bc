//! Options that belong together: declared once, by a struct that [`clap::Args`] is derived for.

use clap::{Arg, Args, Command};
use std::any::TypeId;

/// Options that protocols may share, by the struct that declares them. Each field is an option: its name is the key in a
/// scenario, its type, default, unit (in the name of its value) and help are those of the flag.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    id: fn() -> TypeId,
    augment: fn(Command) -> Command,
}

impl Group {
    /// The options that a struct declares.
    pub const fn of<Options: Args + 'static>() -> Self {
        Self { id: TypeId::of::<Options>, augment: Options::augment_args }
    }

    /// Adds the options to a command, below the heading that the struct names, or none.
    pub fn add_to(&self, command: Command) -> Command {
        (self.augment)(command.next_help_heading(None))
    }

    /// The declarations of its options, in their order.
    pub fn options(&self) -> Vec<Arg> {
        (self.augment)(Command::new("")).get_arguments().cloned().collect()
    }

    /// Whether two are the same.
    pub fn is(&self, other: &Self) -> bool {
        (self.id)() == (other.id)()
    }
}
