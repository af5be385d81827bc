//! A stream on air: the origin in this process, whose counts are the truth, and weir's publisher.

use super::process::weir;
use super::run::{Measuring, Run, start_measuring};
use std::time::Duration;
use weir_origin::{ANY_PORT, Origin, OriginConfig, RTMP};
use weir_testing::{KilledOnDrop, soon};

/// The origin of a test, with a publisher on `live/a`.
pub(crate) struct Air {
    pub(crate) origin: Origin,
    pub(crate) url: String,
    pub(crate) publishing: Publishing,
}

/// weir, publishing.
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
    let publishing = Publishing::start(&url, &["--gop", "1s"]);
    soon("the stream is on air", || {
        origin.counts().stream("live/a").is_some_and(|stream| stream.live && stream.received.video > 0)
    });
    Air { origin, url, publishing }
}

impl Publishing {
    pub(crate) fn start(url: &str, arguments: &[&str]) -> Self {
        let mut command = weir();
        command.args(["publish", url, "-d", "300s", "--drain", "200ms", "-q"]).args(arguments);
        Self(start_measuring(&mut command))
    }

    /// Ends it by Ctrl-C; what it sent.
    pub(crate) fn finish(self) -> Run {
        self.0.process.interrupt();
        self.0.finish()
    }

    pub(crate) fn process(&self) -> &KilledOnDrop {
        &self.0.process
    }

    /// Ends it without a goodbye.
    pub(crate) fn kill(&mut self) {
        self.0.process.kill();
    }
}

impl Air {
    /// A stream that is on air.
    pub(crate) fn of(origin: Origin, url: String, publishing: Publishing) -> Self {
        Self { origin, url, publishing }
    }

    /// Ends the publisher by Ctrl-C, now.
    pub(crate) fn end_publisher(&self) {
        self.publishing.process().interrupt();
    }
}
