//! The floor of a bench: the same bytes in a loop that does nothing else, in a process of its own, round by round beside weir.

use crate::support::Failure;
use std::process::Command;

/// One round, by this very program with these arguments behind `--floor`: the numbers that it prints.
pub(crate) fn round<const COUNT: usize>(arguments: &[String]) -> Result<[f64; COUNT], Failure> {
    let output = Command::new(std::env::current_exe()?).arg("--floor").args(arguments).output()?;
    let text = String::from_utf8(output.stdout)?;
    let numbers = text.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>()?;
    numbers.try_into().map_err(|_| "the floor said nothing".into())
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
