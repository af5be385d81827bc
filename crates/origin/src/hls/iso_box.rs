//! Boxes of ISO/IEC 14496-12: appends them, their sizes put in when they are whole.

/// A file under way.
#[derive(Debug, Default)]
pub(super) struct Boxes(pub(super) Vec<u8>);

impl Boxes {
    /// A box (section 4.2).
    pub(super) fn plain(&mut self, kind: &[u8; 4], fill: impl FnOnce(&mut Self)) {
        let begin = self.0.len();
        self.word(0);
        self.0.extend(kind);
        fill(self);
        // A file here is far below 4 GiB.
        let size = (self.0.len() - begin) as u32;
        self.put(begin, size);
    }

    /// A box with a version and flags.
    pub(super) fn full(&mut self, kind: &[u8; 4], version: u8, flags: u32, fill: impl FnOnce(&mut Self)) {
        self.plain(kind, |boxes| {
            boxes.word(u32::from(version) << 24 | flags);
            fill(boxes);
        });
    }

    /// A descriptor (ISO/IEC 14496-1, section 8.3.3) with a size of one byte.
    pub(super) fn descriptor(&mut self, tag: u8, fill: impl FnOnce(&mut Self)) {
        self.0.extend([tag, 0]);
        let begin = self.0.len();
        fill(self);
        self.0[begin - 1] = (self.0.len() - begin) as u8;
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn zeros(&mut self, count: usize) {
        self.0.resize(self.0.len() + count, 0);
    }

    pub(super) fn short(&mut self, value: u16) {
        self.0.extend(value.to_be_bytes());
    }

    pub(super) fn word(&mut self, value: u32) {
        self.0.extend(value.to_be_bytes());
    }

    pub(super) fn long(&mut self, value: u64) {
        self.0.extend(value.to_be_bytes());
    }

    /// Writes over four bytes.
    pub(super) fn put(&mut self, at: usize, value: u32) {
        self.0[at..at + 4].copy_from_slice(&value.to_be_bytes());
    }

    /// The matrix that changes nothing (ISO/IEC 14496-12, section 6.2.2).
    pub(super) fn matrix(&mut self) {
        for value in [0x1_0000, 0, 0, 0, 0x1_0000, 0, 0, 0, 0x4000_0000] {
            self.word(value);
        }
    }
}
