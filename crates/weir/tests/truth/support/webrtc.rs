//! Streams on air by WebRTC, and figures of those who play them.

use super::{Air, Publishing, Run, air, config};
use std::net::SocketAddr;
use weir_origin::{ANY_PORT, Origin, RTC};
use weir_testing::soon;

/// A stream on air that WebRTC plays too, with these faults.
pub(crate) fn on_air(faults: &[&str]) -> Air {
    air(&config(faults).listening(&RTC, ANY_PORT))
}

pub(crate) fn whep(air: &Air) -> String {
    format!("whep+http://{}/live/a", air.origin.address("rtc").unwrap())
}

pub(crate) fn count(run: &Run, figure: &str) -> u64 {
    let value = run.spread(figure);
    value["total"].as_f64().or_else(|| value["count"].as_f64()).unwrap_or_else(|| panic!("{figure}: {value}"))
        as u64
}

/// An origin with these faults that takes and gives WebRTC, and RTMP.
pub(crate) fn origin(faults: &[&str]) -> Origin {
    Origin::start(&config(faults).listening(&RTC, ANY_PORT)).unwrap()
}

/// Where a stream of an origin is published, and where it is played, by WebRTC.
pub(crate) fn places(origin: &Origin) -> (String, String) {
    let at: SocketAddr = origin.address("rtc").unwrap();
    (format!("whip+http://{at}/whip/live/a"), format!("whep+http://{at}/live/a"))
}

/// Waits until `live/a` is there.
pub(crate) fn is_on_air(origin: &Origin) {
    soon("the stream is on air", || {
        origin.counts().stream("live/a").is_some_and(|stream| stream.live && stream.received.video > 0)
    });
}

/// Puts `live/a` on air by WHIP, with a keyframe a second.
pub(crate) fn on_air_by_whip(faults: &[&str]) -> Air {
    let origin = origin(faults);
    let url = places(&origin).0;
    let publishing = Publishing::start(&url, &["--gop", "1s"]);
    is_on_air(&origin);
    Air::of(origin, url, publishing)
}
