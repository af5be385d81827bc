//! What a relay carried, and how it is said.

use serde::Serialize;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::Duration;

/// What one direction of the relay did.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct DirectionCounts {
    /// Datagrams that were sent on, and their bytes.
    pub(super) forwarded: u64,
    pub(super) forwarded_bytes: u64,
    /// Datagrams that --loss took.
    pub(super) dropped: u64,
    /// Datagrams that found no room before --rate, or in memory.
    pub(super) overflowed: u64,
    /// Datagrams that a socket of the relay's own had no room for, or that the kernel did not send: no loss that was asked for.
    pub(super) lost_here: u64,
    /// Datagrams that lay unread in a socket of the relay's own when it ended, and which nothing was decided on.
    pub(super) unread: u64,
    /// Datagrams that had not arrived when the relay ended.
    pub(super) on_its_way: u64,
    /// Datagrams that were sent on later than they came.
    pub(super) delayed: u64,
    /// How long those that were sent on took, in seconds.
    pub(super) mean_delay: f64,
    pub(super) max_delay: f64,
    #[serde(skip)]
    delays: Duration,
}

/// What it carried: from clients to the peer, and back.
#[derive(Debug, Serialize)]
pub(super) struct Account {
    /// Clients that were taken. One that was silent for a minute is forgotten, and counts again when it comes back.
    pub(super) clients: u64,
    /// Datagrams of clients beyond those that there is room for.
    pub(super) refused_clients: u64,
    /// Datagrams of clients for which the system gave no socket or no thread.
    pub(super) failed_clients: u64,
    pub(super) to_peer: DirectionCounts,
    pub(super) to_clients: DirectionCounts,
}

/// What came to a socket and was not read.
pub(super) struct LeftInSocket {
    dropped: u64,
    unread: u64,
}

impl LeftInSocket {
    /// Of a socket that is read no more: what it dropped, and what it still holds. It takes a moment.
    pub(super) fn of(socket: &UdpSocket) -> Self {
        // A kernel that cannot be asked says nothing of it.
        let dropped = weir_shard::dropped_datagrams(socket.as_fd()).unwrap_or(0);
        // What an earlier datagram has met would be said in place of one that came.
        let _ = (socket.take_error(), socket.set_read_timeout(Some(Duration::from_micros(1))));
        let unread = (0..1 << 16).take_while(|_| socket.recv(&mut [0]).is_ok()).count() as u64;
        Self { dropped, unread }
    }
}

impl DirectionCounts {
    /// A datagram was sent on, `took` after it came, of which `held` was the link's doing.
    pub(super) fn forward(&mut self, bytes: usize, took: Duration, held: Duration) {
        self.forwarded += 1;
        self.forwarded_bytes += bytes as u64;
        // What takes a thread its turn is no delay of the link.
        self.delayed += u64::from(held >= Duration::from_millis(1));
        self.delays += took;
        self.max_delay = self.max_delay.max(took.as_secs_f64());
    }

    /// A socket is read no more.
    pub(super) fn leave(&mut self, left: &LeftInSocket) {
        self.lost_here += left.dropped;
        self.unread += left.unread;
    }

    /// With the mean of its delays.
    pub(super) fn finished(self) -> Self {
        Self { mean_delay: self.delays.as_secs_f64() / (self.forwarded.max(1) as f64), ..self }
    }

    fn text(&self) -> String {
        let Self { forwarded, forwarded_bytes, dropped, overflowed, lost_here, unread, on_its_way, .. } =
            self;
        let mut text = format!(
            "forwarded {forwarded} datagrams ({forwarded_bytes} bytes), dropped {dropped}, overflowed {overflowed}, delayed {}; delay mean {:.1} ms, max {:.1} ms",
            self.delayed,
            self.mean_delay * 1e3,
            self.max_delay * 1e3,
        );
        if *unread > 0 {
            text += &format!("; {unread} more lay unread when it ended");
        }
        if *on_its_way > 0 {
            text += &format!("; {on_its_way} were still on their way");
        }
        if *lost_here > 0 {
            text += &format!(
                "; {lost_here} more were lost here: a socket of the relay's own was full (raise net.core.rmem_max, or send less), or the system did not send them"
            );
        }
        text
    }
}

impl Account {
    pub(super) fn text(&self) -> String {
        let mut refused = String::new();
        for (count, words) in [
            (self.refused_clients, "of further clients were refused: 512 are taken"),
            (self.failed_clients, "were not taken: the system gave no socket or thread for their clients"),
        ] {
            if count > 0 {
                refused += &format!("{count} datagrams {words}\n");
            }
        }
        let (to_peer, to_clients) = (self.to_peer.text(), self.to_clients.text());
        format!(
            "{}\nto the peer: {to_peer}\nback: {to_clients}\n{refused}",
            weir_metrics::several(self.clients, "client")
        )
    }
}
