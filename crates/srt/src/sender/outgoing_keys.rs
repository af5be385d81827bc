//! Keys of packets to be sent: which one is next, and when the one after it is announced (draft-sharabayko-srt-01, section 6.1.6).

use crate::encryption::{EVEN, Encryption, Keys, ODD};
use crate::sequence::SequenceNumber;
use crate::statistics::Statistics;
use std::time::Duration;
use weir_metrics::Moment;

/// Tries to announce a key before it waits for the next packet.
const ANNOUNCE_AGAIN: Duration = Duration::from_millis(100);

/// Keys of packets to be sent.
#[derive(Debug)]
pub(super) struct OutgoingKeys {
    keys: Keys,
    active: u8,
    used: u32,
    refresh_after: u32,
    announce_before: u32,
    announcement: Announcement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Announcement {
    None,
    /// The next key was announced last at this moment.
    Waiting(Moment),
    Taken,
}

impl OutgoingKeys {
    pub(super) fn new(keys: Keys, encryption: &Encryption) -> Self {
        Self {
            active: if keys.has(EVEN) { EVEN } else { ODD },
            keys,
            used: 0,
            refresh_after: encryption.refresh_after.max(2),
            announce_before: encryption.announce_before.clamp(1, encryption.refresh_after.max(2) / 2),
            announcement: Announcement::None,
        }
    }

    fn other(&self) -> u8 {
        if self.active == EVEN { ODD } else { EVEN }
    }

    /// Encrypts the payload of the next packet. With which key, and whether that was there.
    pub(super) fn apply(
        &mut self,
        number: SequenceNumber,
        payload: &mut [u8],
        counts: &mut Statistics,
    ) -> (u8, bool) {
        //= draft-sharabayko-srt-01, section 6.1.6
        //# Once the sender gets to the 2^25th packet using the odd key (key #1), it will then start to
        //# send packets with the even key (key #2), knowing that the receiver has what it needs to
        //# decrypt them.
        if self.used >= self.refresh_after && self.announcement == Announcement::Taken {
            (self.active, self.used, self.announcement) = (self.other(), 0, Announcement::None);
            counts.key_refreshes += 1;
        }
        self.used = self.used.saturating_add(1);
        (self.active, self.keys.apply(self.active, number, payload))
    }

    /// A message that announces the next key, if it is time to.
    pub(super) fn announcement(&mut self, now: Moment) -> Option<Vec<u8>> {
        match self.announcement {
            Announcement::None if self.used >= self.refresh_after - self.announce_before => {
                self.keys.renew(self.other())?;
            }
            Announcement::Waiting(at) if at + ANNOUNCE_AGAIN <= now => {}
            _ => return None,
        }
        self.announcement = Announcement::Waiting(now);
        let mut message = Vec::new();
        self.keys.write(&mut message);
        Some(message)
    }

    /// When to announce it again.
    pub(super) fn poll_timeout(&self) -> Option<Moment> {
        match self.announcement {
            Announcement::Waiting(at) => Some(at + ANNOUNCE_AGAIN),
            _ => None,
        }
    }

    /// The peer has taken the keys of this message.
    pub(super) fn on_response(&mut self, message: &[u8]) {
        let mut ours = Vec::new();
        self.keys.write(&mut ours);
        if matches!(self.announcement, Announcement::Waiting(_)) && ours == message {
            self.announcement = Announcement::Taken;
        }
    }
}
