//! A stream on air: the origin, whose counts are the truth, and weir's publisher, both in this process.

use super::run::{Measuring, Run, start};
use std::time::Duration;
use weir_origin::{ANY_PORT, Origin, OriginConfig, RTMP};
use weir_testing::soon;

/// The origin of a test, with a publisher on `live/a`.
pub(crate) struct Air {
    pub(crate) origin: Origin,
    pub(crate) url: String,
    publishing: Publishing,
}

/// weir, publishing, for as long as this lives.
pub(crate) struct Publishing(Measuring);

/// An origin on a free loopback port that sends every packet at once, with these faults.
pub(crate) fn config(faults: &[&str]) -> OriginConfig {
    let config = OriginConfig {
        merge: Duration::ZERO,
        faults: faults.iter().map(|fault| fault.parse().unwrap()).collect(),
        ..OriginConfig::default()
    };
    config.listening(&RTMP, ANY_PORT)
}

/// Puts a stream of a keyframe a second on air, and waits until it is there.
pub(crate) fn air(config: &OriginConfig) -> Air {
    let origin = Origin::start(config).unwrap();
    let url = format!("rtmp://{}/live/a", origin.address("rtmp").unwrap());
    let publishing = Publishing::start(&url, "gop: 1s");
    soon("the stream is on air", || {
        origin.counts().stream("live/a").is_some_and(|stream| stream.live && stream.received.video > 0)
    });
    Air { origin, url, publishing }
}

impl Publishing {
    /// A publisher with these keys.
    pub(crate) fn start(url: &str, keys: &str) -> Self {
        Self::of(&format!("drain: 200ms\nworkloads: [{{publish: '{url}', duration: 300s, {keys}}}]"))
    }

    /// What a scenario says of a publisher.
    pub(crate) fn of(text: &str) -> Self {
        Self(start(text))
    }

    /// Ends it as Ctrl-C does; what it sent.
    pub(crate) fn finish(self) -> Run {
        self.0.interrupt();
        self.0.finish()
    }
}

impl Air {
    /// A stream that is on air.
    pub(crate) fn of(origin: Origin, url: String, publishing: Publishing) -> Self {
        Self { origin, url, publishing }
    }

    /// Ends the publisher: the origin that has heard it, and what it sent.
    pub(crate) fn end(self) -> (Origin, Run) {
        (self.origin, self.publishing.finish())
    }

    /// Viewers of it that all play for at least this time, and then see their stream end: all that was sent has come to them.
    pub(crate) fn play_to_its_end(&self, url: &str, viewers: usize, span: Duration) -> Run {
        let watching = start(&format!(
            "drain: 200ms\nworkloads: [{{play: '{url}', clients: {viewers}, duration: 60s}}]"
        ));
        soon("all play", || self.origin.counts().present() == viewers);
        std::thread::sleep(span);
        self.end_publisher();
        watching.finish()
    }

    /// Ends the publisher, now.
    pub(crate) fn end_publisher(&self) {
        self.publishing.0.interrupt();
    }
}
