//! How much media came in each second, out of what was read in it.
//!
//! Clients of the crowd leave up to two seconds of their streams in the kernel, and a thread that is busy ends a second
//! late. Neither says anything about the stream: what waits unread has come, and what came after the second's end
//! belongs to the next. Only sums and times are known here, no client and no clock.

use weir_metrics::Moment;

/// The media of one workload on one thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrivals {
    /// Bytes of media in what was read so far.
    media: u64,
    /// Bytes that were read so far.
    received: u64,
    /// Bytes that had come when the last second was closed, read or not.
    came: u64,
    /// Media that was handed out so far: what came up to `until`.
    handed_out: u64,
    until: Moment,
}

impl Arrivals {
    /// Nothing has come before `origin`, the beginning of second 0.
    pub(crate) fn new(origin: Moment) -> Self {
        Self { media: 0, received: 0, came: 0, handed_out: 0, until: origin }
    }

    /// A second ends at `end`, and is closed `now`, at that moment or later. Since the last call `received` bytes were
    /// read, with `media` bytes of media in them, and `unread` bytes wait. Says how much media came in the second.
    ///
    /// What waits has as large a share of media as what was read. What came since the second's beginning came evenly, so
    /// that the part of it that came after the second's end is left to the next one.
    pub(crate) fn second(&mut self, end: Moment, now: Moment, media: u64, received: u64, unread: u64) -> u64 {
        self.media += media;
        self.received += received;
        self.came = self.received + unread;
        let waiting = u128::from(unread) * u128::from(self.media) / u128::from(self.received.max(1));
        // What was taken to wait may have been less (a message that is not whole): the rest of it is not taken back.
        let came = (u128::from(self.media) + waiting).saturating_sub(u128::from(self.handed_out));
        let length = end.since(self.until).as_nanos();
        let passed = now.since(self.until).as_nanos().max(length).max(1);
        let of_the_second = (came * length / passed) as u64;
        self.handed_out += of_the_second;
        self.until = self.until.max(end);
        of_the_second
    }

    /// A second ends at `end` with an edge, at which all that had come was read: as [`Self::second`], of what was read. When the last
    /// of it came, before the edge or after it, is known of each client by itself.
    pub(crate) fn edge(&mut self, end: Moment, media: u64, received: u64) -> u64 {
        self.received += received;
        self.until = self.until.max(end);
        // Where nothing has come since the last second, what is left is how wrong its guess of what waited was.
        let is_new = self.received > std::mem::replace(&mut self.came, self.received);
        if is_new {
            return self.rest(media);
        }
        self.media += media;
        0
    }

    /// The last call, when everything was read: as [`Self::second`], of what is left.
    pub(crate) fn rest(&mut self, media: u64) -> u64 {
        self.media += media;
        let left = self.media.saturating_sub(self.handed_out);
        self.handed_out += left;
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    fn at(nanos: u64) -> Moment {
        Moment::from_nanos(7 * SECOND + nanos)
    }

    /// Bytes of 500 clients, 30 kB a second each, up to a time.
    fn sent(nanos: u64) -> u64 {
        500 * 30 * nanos / 1_000_000
    }

    /// The seconds of a run whose clients read all that waits at these times.
    fn seconds(reads: &[u64], lags: &[u64]) -> Vec<u64> {
        let mut arrivals = Arrivals::new(at(0));
        let (mut read, mut counted) = (0, 0);
        let seconds = lags.iter().zip(1..).map(|(lag, number)| {
            let closed = number * SECOND + lag;
            read = reads.iter().filter(|at| **at <= closed).map(|at| sent(*at)).fold(read, u64::max);
            // One byte in thirty is a header.
            let media = read / 30 * 29;
            let new = media - std::mem::replace(&mut counted, media);
            arrivals.second(at(number * SECOND), at(closed), new, new * 30 / 29, sent(closed) - read)
        });
        seconds.collect()
    }

    #[test]
    fn a_steady_stream_that_is_read_in_batches_is_steady_in_every_second() {
        let reads: Vec<u64> = (1..12).map(|number| number * 1_720_000_000).collect();
        let each = sent(SECOND) / 30 * 29;
        for (number, media) in seconds(&reads, &[0; 15]).into_iter().enumerate().skip(2) {
            assert!(media.abs_diff(each) * 100 < each, "second {number}: {media} instead of {each}");
        }
    }

    #[test]
    fn a_second_that_is_closed_late_has_what_came_in_it() {
        let always: Vec<u64> = (1..400).map(|number| number * 25_000_000).collect();
        let each = sent(SECOND) / 30 * 29;
        let lags = [0, 90_000_000, 0, 900_000_000, 0, 2_500_000_000, 1_500_000_000, 500_000_000, 0];
        for (number, media) in seconds(&always, &lags).into_iter().enumerate() {
            // A read every 25 ms.
            assert!(media.abs_diff(each) * 20 < each, "second {number}: {media} instead of {each}");
        }
    }

    #[test]
    fn a_server_that_stops_sending_is_seen_in_that_second() {
        let mut arrivals = Arrivals::new(at(0));
        let second = |arrivals: &mut Arrivals, number: u64, read, unread| {
            arrivals.second(at(number * SECOND), at(number * SECOND), read, read, unread)
        };
        assert_eq!(second(&mut arrivals, 1, 700, 300), 1_000);
        assert_eq!(second(&mut arrivals, 2, 300, 400), 400, "the server stops after 0.4 s");
        assert_eq!(second(&mut arrivals, 3, 400, 0), 0);
        assert_eq!(second(&mut arrivals, 4, 0, 0), 0);
    }

    #[test]
    fn a_guess_of_what_waited_that_was_wrong_is_no_media_of_a_second_in_which_nothing_came() {
        let mut arrivals = Arrivals::new(at(0));
        // Half of what was read was media, and all of what waited.
        assert_eq!(arrivals.second(at(SECOND), at(SECOND), 500, 1_000, 100), 550);
        assert_eq!(arrivals.edge(at(2 * SECOND), 100, 100), 0);
        assert_eq!(arrivals.edge(at(3 * SECOND), 10, 20), 60, "it is handed out with what comes next");
    }

    proptest! {
        #[test]
        fn all_that_was_read_is_handed_out_once(
            seconds in prop::collection::vec((0u64..1_000_000, 0u64..50_000, 0u64..200_000, 0u64..3 * SECOND), 1..30),
            last in 200_000u64..400_000,
        ) {
            let mut arrivals = Arrivals::new(at(0));
            let (mut read, mut handed_out) = (0, 0);
            for (number, (media, headers, unread, lag)) in (1..).zip(seconds) {
                read += media;
                let end = number * SECOND;
                handed_out += arrivals.second(at(end), at(end + lag), media, media + headers, unread);
                prop_assert!(handed_out <= read + unread + 200_000);
            }
            handed_out += arrivals.rest(last);
            prop_assert_eq!(handed_out, read + last);
        }
    }
}
