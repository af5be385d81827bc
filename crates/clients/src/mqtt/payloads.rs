//! The payloads of a run's messages, made before it begins.

use std::sync::Arc;

/// Payloads that follow each other, and come again from the first when all have been. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Payloads {
    /// What each is made of when its message is sent, in the place of all others.
    template: Option<Arc<str>>,
    bytes: Arc<Vec<u8>>,
    /// Where each ends.
    ends: Arc<Vec<usize>>,
}

impl Payloads {
    /// Payloads that are made of a template, message by message.
    pub(super) fn of_template(template: String) -> Self {
        Self { template: Some(template.into()), ..Self::default() }
    }

    pub(super) fn template(&self) -> Option<&str> {
        self.template.as_deref()
    }

    pub(super) fn push(&mut self, payload: &[u8]) {
        let bytes = Arc::make_mut(&mut self.bytes);
        bytes.extend_from_slice(payload);
        Arc::make_mut(&mut self.ends).push(bytes.len());
    }

    /// The payload of a message; an empty one if there are none.
    #[inline]
    pub(super) fn of(&self, number: u64) -> &[u8] {
        let index = number.checked_rem(self.ends.len() as u64).unwrap_or_default() as usize;
        let begin = index.checked_sub(1).and_then(|before| self.ends.get(before));
        let end = self.ends.get(index).copied().unwrap_or_default();
        &self.bytes[begin.copied().unwrap_or_default()..end]
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of all.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes of the longest.
    pub(super) fn longest(&self) -> usize {
        (0..self.len() as u64).map(|number| self.of(number).len()).max().unwrap_or(0)
    }

    /// The bytes of one in the mean.
    pub(super) fn mean_size(&self) -> f64 {
        self.bytes() as f64 / self.len().max(1) as f64
    }
}
