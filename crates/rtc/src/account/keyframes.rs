//! Keyframes, where they can be seen: in an extension, or by decryption.

use std::time::Duration;

/// Keyframes of a track and the media time between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keyframes {
    last_micros: Option<i64>,
    count: u64,
    last: Option<Duration>,
    shortest: Option<Duration>,
    longest: Option<Duration>,
}

impl Keyframes {
    /// A keyframe of this media time; the packets of one frame count once.
    pub(super) fn frame(&mut self, media_micros: i64) {
        let interval = match self.last_micros {
            Some(last) if media_micros <= last => return,
            Some(last) => Some(Duration::from_micros(media_micros.abs_diff(last))),
            None => None,
        };
        self.last_micros = Some(media_micros);
        self.count += 1;
        if let Some(interval) = interval {
            self.last = Some(interval);
            self.shortest = Some(self.shortest.map_or(interval, |shortest| shortest.min(interval)));
            self.longest = self.longest.max(Some(interval));
        }
    }

    pub(super) fn restart(&mut self) {
        self.last_micros = None;
    }

    /// How many were seen. Zero says nothing of a stream that hides them.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Media time between the last two.
    pub fn last_interval(&self) -> Option<Duration> {
        self.last
    }

    /// The shortest interval.
    pub fn shortest_interval(&self) -> Option<Duration> {
        self.shortest
    }

    /// The longest interval.
    pub fn longest_interval(&self) -> Option<Duration> {
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_lie_between_keyframes_and_a_frame_counts_once() {
        let mut keyframes = Keyframes::default();
        for micros in [5, 5, 1_000_005, 5, 3_000_005] {
            keyframes.frame(micros);
        }
        assert_eq!(keyframes.count(), 3);
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(keyframes.last_interval(), seconds(2));
        assert_eq!(keyframes.shortest_interval(), seconds(1));
        assert_eq!(keyframes.longest_interval(), seconds(2));
    }
}
