//! How fast the network interfaces of the machine are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs;

use super::line::line_of;

/// A network interface whose speed the kernel knows. Most virtual machines have none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceSpeed {
    /// Its name.
    pub name: String,
    /// Bits that it carries in a second in each direction: `/sys/class/net/NAME/speed`.
    pub bits_per_second: u64,
}

/// Those of weir's network namespace, by name.
pub(super) fn read_all() -> Vec<InterfaceSpeed> {
    let names = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let speeds = names.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let bits_per_second = speed(&line_of(&format!("/sys/class/net/{name}/speed"))?)?;
        Some(InterfaceSpeed { name, bits_per_second })
    });
    let mut speeds: Vec<_> = speeds.collect();
    speeds.sort_by(|one, other| one.name.cmp(&other.name));
    speeds
}

/// The file is in Mbit/s, and -1 stands for an unknown speed.
fn speed(text: &str) -> Option<u64> {
    let megabits: u64 = text.parse().ok().filter(|megabits| *megabits > 0)?;
    megabits.checked_mul(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_in_megabits_and_may_be_unknown() {
        assert_eq!(speed("1000"), Some(1_000_000_000));
        for unknown in ["-1", "0", "", "fast", "99999999999999999999"] {
            assert_eq!(speed(unknown), None, "{unknown}");
        }
    }
}
