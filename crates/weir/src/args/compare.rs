//! `weir compare`.

use super::values::margin;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use weir_answers::compare::ChangeLimit;

/// `weir compare`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Compare {
    /// The base, and what is compared with it: a run directory, a folder of runs, a series, or a variant of one (DIR:VARIANT). One
    /// series alone: its variants with its first
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath, required_unless_present = "base", conflicts_with_all = ["base", "to"])]
    pub(crate) sides: Vec<String>,
    /// Directories that are the base together: --base weir-runs/old-* --to weir-runs/new-*
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, num_args = 1.., requires = "to")]
    pub(crate) base: Vec<String>,
    /// Directories that are compared with it together
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, num_args = 1.., requires = "base")]
    pub(crate) to: Vec<String>,
    /// The largest change that does not matter: a figure whose interval lies within it is the same
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = margin)]
    pub(crate) margin: f64,
    /// A change that is a regression, exit code 96 if its interval lies wholly beyond it: 'startup.p99 > +10%', 'fps < -1';
    /// repeatable
    #[arg(long, value_name = "EXPR")]
    pub(crate) fail_on: Vec<ChangeLimit>,
    /// A figure to compare, or a part of its name; repeatable [default: those of a series' table]
    #[arg(long = "figure", value_name = "NAME")]
    pub(crate) figures: Vec<String>,
    /// Compare what is not alike, and say so: other loads, machines, versions of weir, runs that cannot be believed
    #[arg(long)]
    pub(crate) anyway: bool,
    /// Where the comparison goes as JSON; - for stdout, instead of the text
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,
    /// What is printed
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = weir_report::COMPARISON_FORMATS)]
    pub(crate) format: String,
    /// Print errors only
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
