//! One stream as MPEG-TS, written once for all viewers by SRT.

use crate::hls::{Tracks, TransportWriter, Unit, UnitReader};
use crate::worker::{StreamKey, Worker};

/// One stream.
pub(super) struct Feed {
    pub(super) key: StreamKey,
    /// Its viewers, as the port names them.
    pub(super) viewers: Vec<usize>,
    publication: u64,
    /// The next packet of the stream.
    next: u64,
    /// The version of the settings that were looked at last.
    settings: Option<u64>,
    reader: UnitReader,
    writer: Option<(Tracks, TransportWriter)>,
}

impl Feed {
    pub(super) fn new(key: StreamKey, worker: &Worker) -> Self {
        let stream = worker.stream(key);
        let cached = stream.log.last_keyframe().filter(|_| stream.log.history().gop_cache);
        Self {
            key,
            viewers: Vec::new(),
            publication: stream.publication,
            next: cached.unwrap_or_else(|| stream.log.end()),
            settings: None,
            reader: UnitReader::default(),
            writer: None,
        }
    }

    /// What the stream has brought since the last time, as packets of MPEG-TS. A publication begins with its first keyframe.
    pub(super) fn follow(&mut self, worker: &Worker) -> Vec<u8> {
        let stream = worker.stream(self.key);
        if stream.publication != self.publication {
            (self.publication, self.next) = (stream.publication, stream.log.start());
            (self.settings, self.reader, self.writer) = (None, UnitReader::default(), None);
        }
        let writer = &mut self.writer;
        let mut take = |tracks: &Tracks, unit: Unit<'_>| {
            let begins = unit.is_video && unit.keyframe || tracks.video.is_none();
            if begins && writer.as_ref().is_none_or(|(written, _)| written != tracks) {
                *writer = Some((tracks.clone(), TransportWriter::new(tracks, unit.decoding)));
            }
            if let Some((_, writer)) = writer {
                if begins && unit.is_video {
                    writer.begin_segment();
                }
                writer.write(&unit);
            }
        };
        for entry in stream.log.from(self.next) {
            if let Some(opening) = &entry.opening
                && self.settings != Some(opening.version())
            {
                self.settings = Some(opening.version());
                opening.settings.packets.iter().for_each(|setup| self.reader.read(setup, &mut take));
            }
            self.reader.read(&entry.packet, &mut take);
        }
        self.next = stream.log.end();
        self.writer.as_mut().map(|(_, writer)| writer.take()).unwrap_or_default()
    }
}
