//! How long an MQTT client may be silent (MQTT 5 section 3.1.2.10), and what shows that it lives while it is not read.

use std::time::Duration;
use weir_metrics::Moment;
use weir_mqtt::Version;

/// The keep-alive of one client.
pub(super) struct KeepAlive {
    /// The longest silence, if there is a limit: one and a half times what was agreed (MQTT-3.1.2-22).
    limit: Option<Duration>,
    /// When the client has last shown that it lives.
    heard: Moment,
    /// Whether the link was not read since then: too much waited to be sent. A PINGREQ may stand in the kernel.
    unread: bool,
    /// What the client had acknowledged when that was last looked at.
    acknowledged: u64,
}

impl KeepAlive {
    /// No limit: that of a client that has not said CONNECT.
    pub(super) fn new(now: Moment) -> Self {
        Self { limit: None, heard: now, unread: false, acknowledged: 0 }
    }

    /// Agrees on the keep-alive that a client asks for, in seconds, with a broker that ends a link after `idle` without a
    /// sign of life. What the client is to be told, if it is to use another: its Server Keep Alive.
    ///
    /// MQTT 5 has that word for this case (section 3.2.2.3.14: "to inform the Client that it will disconnect the Client
    /// for inactivity sooner than the Keep Alive specified by the Client"), and without it the broker must keep to what
    /// the client has asked for (MQTT-3.2.2-22). A client library that knows it pings in time, and its user notices
    /// nothing. MQTT 3.1.1 has no such word: there the client's own keep-alive holds, however long, and `idle` only for
    /// one that asks for none.
    pub(super) fn agree(&mut self, version: Version, asked: u16, idle: Duration) -> Option<u16> {
        let most = u16::try_from(idle.as_secs() / 3 * 2).unwrap_or(u16::MAX).max(1);
        let told = (version == Version::V5 && (asked == 0 || asked > most)).then_some(most);
        let agreed = told.unwrap_or(asked);
        self.limit = (agreed > 0).then(|| Duration::from_millis(u64::from(agreed) * 1_500));
        told
    }

    /// The longest silence, if there is a limit.
    pub(super) fn limit(&self) -> Option<Duration> {
        self.limit
    }

    /// Bytes came from the client.
    pub(super) fn on_bytes(&mut self, now: Moment) {
        (self.heard, self.unread) = (now, false);
    }

    /// Whether the link is read.
    pub(super) fn on_reading(&mut self, is_read: bool) {
        self.unread |= !is_read;
    }

    /// When the silence is too long.
    pub(super) fn deadline(&self) -> Option<Moment> {
        self.limit.map(|limit| self.heard + limit)
    }

    /// Whether the silence is too long. A client that was not read meanwhile, because it has yet to take a long message,
    /// lives as long as it takes some of it. That is looked at once in the time: one that has stopped is ended after
    /// twice the time at the latest.
    pub(super) fn is_over(&mut self, now: Moment, is_read: bool, acknowledged: impl FnOnce() -> u64) -> bool {
        if self.deadline().is_none_or(|at| now < at) {
            return false;
        }
        if !std::mem::replace(&mut self.unread, !is_read) {
            return true;
        }
        let acknowledged = acknowledged();
        if std::mem::replace(&mut self.acknowledged, acknowledged) == acknowledged {
            return true;
        }
        self.heard = now;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(600);

    fn second(n: u64) -> Moment {
        Moment::from_nanos(n * 1_000_000_000)
    }

    fn agreed(version: Version, asked: u16, idle: Duration) -> (Option<u16>, Option<u64>) {
        let mut keep_alive = KeepAlive::new(second(0));
        let told = keep_alive.agree(version, asked, idle);
        (told, keep_alive.limit().map(|limit| limit.as_secs()))
    }

    #[test]
    fn a_client_of_mqtt_5_is_told_when_the_broker_is_less_patient() {
        assert_eq!(agreed(Version::V5, 60, IDLE), (None, Some(90)));
        assert_eq!(agreed(Version::V5, 400, IDLE), (None, Some(600)));
        for asked in [0, 401, 3_600, u16::MAX] {
            assert_eq!(agreed(Version::V5, asked, IDLE), (Some(400), Some(600)));
        }
        // Seconds are whole, and there are no more of them than fit.
        assert_eq!(agreed(Version::V5, 60, Duration::from_millis(200)), (Some(1), Some(1)));
        assert_eq!(agreed(Version::V5, u16::MAX, Duration::from_secs(1 << 40)), (None, Some(98_302)));
    }

    #[test]
    fn a_client_of_mqtt_3_has_what_it_asks_for() {
        assert_eq!(agreed(Version::V311, 60, IDLE), (None, Some(90)));
        assert_eq!(agreed(Version::V311, 3_600, IDLE), (None, Some(5_400)));
        assert_eq!(agreed(Version::V311, 0, IDLE), (None, None));
    }

    #[test]
    fn what_a_client_takes_is_a_sign_of_life_only_while_it_is_not_read() {
        let mut keep_alive = KeepAlive::new(second(0));
        keep_alive.agree(Version::V5, 10, IDLE);
        assert!(!keep_alive.is_over(second(14), true, || 1));
        assert!(keep_alive.is_over(second(15), true, || 2), "it was read, and has not said anything");
        keep_alive.on_reading(false);
        assert!(!keep_alive.is_over(second(15), false, || 3));
        assert!(!keep_alive.is_over(second(30), false, || 4));
        // It is read again, though what waits in the kernel has not come yet.
        assert!(!keep_alive.is_over(second(45), true, || 5));
        assert!(keep_alive.is_over(second(60), true, || 6));
        keep_alive.on_bytes(second(60));
        keep_alive.on_reading(false);
        assert!(!keep_alive.is_over(second(75), false, || 7));
        assert!(keep_alive.is_over(second(90), false, || 7), "it takes nothing");
    }
}
