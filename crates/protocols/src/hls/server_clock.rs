//! What is known of the server's wall clock by the `Date` of its answers: dates in playlists are told by it.

use super::date;
use weir_web::Fields;

/// A second, the step of `Date`, in microseconds.
const SECOND: i64 = 1_000_000;

/// By how much the server's clock is ahead of this machine's, between two bounds in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ServerClock {
    bounds: Option<(i64, i64)>,
}

impl ServerClock {
    /// An answer whose head came at one time to what was asked for at another, in microseconds since 1970 by this machine's clock.
    pub(super) fn take(&mut self, fields: &Fields, asked: i64, came: i64) {
        // What a cache hands out has the date of the origin server's answer (RFC 9110, section 6.6.1).
        let date = fields.get("date").filter(|_| fields.get("age").is_none()).and_then(date::read_http);
        if let Some(seconds) = date {
            self.note(seconds, asked, came);
        }
    }

    fn note(&mut self, seconds: i64, asked: i64, came: i64) {
        // Its clock showed this second at some time between the two. Some servers note the second before they wait.
        let (least, most) = (seconds * SECOND - came, (seconds + 1) * SECOND - asked);
        self.bounds = match self.bounds {
            Some((low, high)) if low.max(least) <= high.min(most) => Some((low.max(least), high.min(most))),
            // Another server behind the same name, whose clock is another.
            _ => Some((least, most)),
        };
    }

    /// The middle between the bounds, and how far they are from it.
    pub(super) fn ahead(self) -> Option<(i64, u64)> {
        self.bounds.map(|(low, high)| ((low + high) / 2, low.abs_diff(high) / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_answers_bound_a_clock_to_less_than_a_second() {
        let mut clock = ServerClock::default();
        assert_eq!(clock.ahead(), None);
        // 300 ms ahead; each answer takes 10 ms.
        for asked in (0..40).map(|it| it * 390_000 + 100_000_000_000) {
            let seconds = (asked + 5_000 + 300_000) / SECOND;
            clock.note(seconds, asked, asked + 10_000);
        }
        let (middle, error) = clock.ahead().unwrap();
        assert!(error < 50_000 && middle.abs_diff(300_000) <= error, "{middle} {error}");
        // Another server.
        clock.note(50, 100_000_000_000, 100_000_010_000);
        assert_eq!(clock.ahead(), Some((-99_949_505_000, 505_000)));
    }
}
