//! `weir history`.

use super::values::tag;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// `weir history`.
#[derive(Clone, Debug, Args)]
pub(crate) struct History {
    /// A folder with run directories, at any depth up to four: weir-runs
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,
    /// Name of the runs; needed if there are several
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// A label that the runs carry: site=lab; repeatable
    #[arg(long = "tag", value_name = "K=V", value_parser = tag)]
    pub(crate) tags: Vec<(String, String)>,
    /// A figure to look at, or a part of its name; repeatable [default: those of a series' table]
    #[arg(long = "figure", value_name = "NAME")]
    pub(crate) figures: Vec<String>,
    /// Where the history goes as JSON; - for stdout, instead of the text
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,
    /// What is printed
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = weir_report::COMPARISON_FORMATS)]
    pub(crate) format: String,
}
