//! The stream's timestamps jump.

use crate::support::{air, config, play};

#[test]
fn one_jump_for_each_viewer_forth_and_back() {
    for (by, seconds) in [("5s", 5.0), ("-3s", -3.0)] {
        let air = air(&config(&[&format!("jump unit=40 kind=video by={by} viewers=1..3")]));
        let run = play(&air.url, "clients: 4, duration: 4s");
        assert_eq!(run.well(), 4, "{:?}", run.failures());
        assert_eq!(run.total("timestamp_jumps"), 3.0, "by {by}: {}", run.spread("timestamp_jump"));
        let size = run.spread("timestamp_jump");
        assert_eq!(size["count"], 3);
        for bound in ["min", "max"] {
            let found = size[bound].as_f64().unwrap();
            // Three digits of the histogram, and the grid of whole milliseconds.
            assert!((found - seconds).abs() <= 0.006, "{bound} {found} s, expected {seconds} s");
        }
        assert_eq!(run.total("stalls"), 0.0, "media time goes on after a jump");
    }
}
