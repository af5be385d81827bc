//! Chromium counts the freezes that weir counts, with the origin's own page.

use crate::support::webrtc::{count, whep};
use crate::support::{Air, Browser, Publishing, config, play, quiet, soon, undisturbed};
use weir_origin::{ANY_PORT, Origin, RTC};

/// Five frames a second: an interval of 600 ms is a freeze by W3C's rule, and no neighbour on the machine makes one.
fn slow_pictures(faults: &[&str]) -> Air {
    let mut config = config(faults).listening(&RTC, ANY_PORT);
    // Pictures of a cached group come at once, and beside these intervals the first of 200 ms is a freeze.
    config.history.gop_cache = false;
    let origin = Origin::start(&config).unwrap();
    let url = format!("rtmp://{}/live/a", origin.address("rtmp").unwrap());
    let publishing = Publishing::start(&url, &["--fps", "5", "--gop", "1s"]);
    soon("the stream is on air", || origin.counts().stream("live/a").is_some_and(|stream| stream.live));
    Air::of(origin, url, publishing)
}

#[test]
fn chromium_counts_the_freezes_that_weir_counts_and_finds_them_as_long() {
    let _machine = quiet();
    undisturbed(|| {
        let air = slow_pictures(&["stall at=7s for=2s", "stall at=15s for=3s"]);
        let browser = Browser::open(&format!("http://{}/live/a", air.origin.address("rtc").unwrap()));
        browser.says("connected, ", 1, " frames decoded");
        let run = play(&whep(&air), "-c 2 -d 20s --warmup 0s --drain 500ms");
        assert_eq!(run.well(), 2, "{:?}", run.failures());
        let theirs = browser.freezes(2);
        let lengths = ["min", "max"].map(|key| run.spread("rtc.freeze_length")[key].as_f64().unwrap());
        assert_eq!(count(&run, "rtc.freezes"), 2 * 2, "{lengths:?} {theirs:?}");
        // From the frame before the stall, up to 200 ms earlier, to the frame that ends it. What waited comes at once behind a stall;
        // of that Chromium may drop some, and freeze once more until the next keyframe.
        for (stall, ours) in [2.0, 3.0].into_iter().zip(lengths) {
            let close = stall - 0.3..stall + 0.7;
            let has_it = theirs.iter().any(|theirs| close.contains(theirs));
            assert!(close.contains(&ours) && has_it, "{stall} s: {ours} s, Chromium {theirs:?} s");
        }
    });
}
