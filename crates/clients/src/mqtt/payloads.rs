//! The payloads of a run's messages, made before it begins.

use super::draw::mixed;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Payloads that follow each other, and come again from the first when all have been. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Payloads {
    /// What each is made of when its message is sent, in the place of all others.
    template: Option<Arc<str>>,
    bytes: Arc<Vec<u8>>,
    /// Where each ends.
    ends: Arc<Vec<usize>>,
    /// Of payloads that are beginnings of the one that is here: how long they are, and the seed of that.
    lengths: Option<(usize, usize, u64)>,
}

impl Payloads {
    /// Payloads that are made of a template, message by message.
    pub(super) fn of_template(template: String) -> Self {
        Self { template: Some(template.into()), ..Self::default() }
    }

    /// Beginnings of these bytes, of lengths that are drawn from a seed.
    pub(super) fn beginnings(bytes: &[u8], lengths: &RangeInclusive<usize>, seed: u64) -> Self {
        let mut payloads =
            Self { lengths: Some((*lengths.start(), *lengths.end(), seed)), ..Self::default() };
        payloads.push(bytes);
        payloads
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
        if let Some((least, most, seed)) = self.lengths {
            let length = least as u64 + mixed(seed, number) % (most - least + 1) as u64;
            return &self.bytes[..length as usize];
        }
        let index = number.checked_rem(self.ends.len() as u64).unwrap_or_default() as usize;
        let begin = index.checked_sub(1).and_then(|before| self.ends.get(before));
        let end = self.ends.get(index).copied().unwrap_or_default();
        &self.bytes[begin.copied().unwrap_or_default()..end]
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether they are not all the same.
    pub(super) fn differ(&self) -> bool {
        self.ends.len() > 1 || self.lengths.is_some()
    }

    /// The bytes of all.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes of the longest.
    pub(super) fn longest(&self) -> usize {
        if let Some((_, most, _)) = self.lengths {
            return most;
        }
        (0..self.ends.len() as u64).map(|number| self.of(number).len()).max().unwrap_or(0)
    }

    /// The bytes of one in the mean.
    pub(super) fn mean_size(&self) -> f64 {
        self.bytes() as f64 / self.ends.len().max(1) as f64
    }
}
