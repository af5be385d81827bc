//! The figures that only SRT has, behind those of transport streams.

use weir_clients::ts;
use weir_metrics::{Counter, Figure, Recorder, Schema};
use weir_srt::Statistics;

const OWN: usize = FIGURES.len();
const ALL: usize = ts::FIGURES.len() + OWN;

/// Those of transport streams, then these.
pub(super) const SCHEMA: Schema = Schema::new(&JOINED);

const JOINED: [Figure; ALL] = {
    let mut joined = [FIGURES[0]; ALL];
    let mut at = 0;
    while at < ALL {
        joined[at] = if at < ALL - OWN { ts::FIGURES[at] } else { FIGURES[at + OWN - ALL] };
        at += 1;
    }
    joined
};

weir_metrics::figures! {
    base = (weir_metrics::common::FIGURES.len() + ts::FIGURES.len()) as u16;
    pub(super) FIGURES;
    ROUND_TRIP: Spread = "srt.round_trip", Micros, "smoothed round trip, once a second of each client (msRTT)";
    ROUND_TRIP_VARIANCE: Spread = "srt.round_trip_variance", Micros, "how far round trips are from it, once a second of each client";
    LATENCY: Spread = "srt.latency", Micros, "latency that was agreed on, of each connection: of what is received, or of what is published";
    HELD: Spread = "srt.held", Micros, "viewers: media that waits for its time, once a second of each client (msRcvBuf)";
    UNACKNOWLEDGED: Spread = "srt.unacknowledged", Count, "publishers: packets that the server has not acknowledged, once a second of each client (pktSndBuf)";
    RECEIVED: Counter = "srt.received", Count, "data packets received, repeated ones included (pktRecv)";
    MISSING: Counter = "srt.missing", Count, "packets that were missing when a later one came (pktRcvLoss): recovered, reordered or dropped";
    RECOVERED: Counter = "srt.recovered", Count, "missing packets that were sent again and came in time";
    REORDERED: Counter = "srt.reordered", Count, "missing packets that had only been overtaken";
    DROPPED: Counter = "srt.dropped", Count, "missing packets that had not come when their time was over (pktRcvDrop)";
    BELATED: Counter = "srt.belated", Count, "packets that came after they had been dropped (pktRcvBelated)";
    DUPLICATES: Counter = "srt.duplicates", Count, "packets that came once more";
    RETRANSMISSIONS: Counter = "srt.retransmissions_received", Count, "packets received that say that they were sent again (pktRcvRetrans)";
    UNDECRYPTED: Counter = "srt.undecrypted", Count, "packets that no key opens (pktRcvUndecrypt)";
    DISCARDED: Counter = "srt.discarded", Count, "packets for which there was no room, or whose number is nowhere near";
    MALFORMED: Counter = "srt.malformed", Count, "datagrams that are not SRT, or of another connection";
    LOSS_REPORTS: Counter = "srt.loss_reports_sent", Count, "loss reports sent (pktSentNAK)";
    ACKS: Counter = "srt.acks_sent", Count, "full acknowledgements sent (pktSentACK)";
    SENT: Counter = "srt.sent", Count, "data packets that have left, without repeated ones (pktSentUnique)";
    RETRANSMITTED: Counter = "srt.retransmitted", Count, "packets sent again (pktRetrans)";
    REPORTED_MISSING: Counter = "srt.reported_missing", Count, "packets that the server reported missing, each time counted (pktSndLoss)";
    SEND_DROPPED: Counter = "srt.send_dropped", Count, "packets given up before the server had acknowledged them (pktSndDrop)";
    SEND_DISCARDED: Counter = "srt.send_discarded", Count, "packets given up in weir: its socket had refused or held them, or it had not come to sending them";
    LOSS_REPORTS_RECEIVED: Counter = "srt.loss_reports_received", Count, "loss reports received (pktRecvNAK)";
    ACKS_RECEIVED: Counter = "srt.acks_received", Count, "acknowledgements received (pktRecvACK)";
    KEY_REFRESHES: Counter = "srt.key_refreshes", Count, "keys that took the place of earlier ones";
    SHUTDOWNS: Counter = "srt.shutdowns", Count, "connections that the server has ended";
    ENCRYPTED: Counter = "srt.encrypted", Count, "connections whose payloads are encrypted";
}

/// One of a connection's counts.
type Count = fn(&Statistics) -> u64;

/// What of a connection's counts each figure is.
const COUNTS: &[(Counter, Count)] = &[
    (RECEIVED, |it| it.received),
    (MISSING, |it| it.missing),
    (RECOVERED, |it| it.recovered),
    (REORDERED, |it| it.reordered),
    (DROPPED, |it| it.dropped),
    (BELATED, |it| it.belated),
    (DUPLICATES, |it| it.duplicates),
    (RETRANSMISSIONS, |it| it.retransmissions_received),
    (UNDECRYPTED, |it| it.undecrypted),
    (DISCARDED, |it| it.discarded),
    (MALFORMED, |it| it.malformed),
    (LOSS_REPORTS, |it| it.loss_reports_sent),
    (ACKS, |it| it.acknowledgements_sent),
    (SENT, |it| it.sent),
    (RETRANSMITTED, |it| it.retransmitted),
    (REPORTED_MISSING, |it| it.reported_missing),
    (SEND_DROPPED, |it| it.send_dropped),
    (SEND_DISCARDED, |it| it.send_discarded),
    (LOSS_REPORTS_RECEIVED, |it| it.loss_reports_received),
    (ACKS_RECEIVED, |it| it.acknowledgements_received),
    (KEY_REFRESHES, |it| it.key_refreshes),
];

/// Adds what a connection has counted since the last time.
pub(super) fn book(counts: &Statistics, booked: &mut Statistics, recorder: &mut Recorder) {
    let before = std::mem::replace(booked, *counts);
    if before == *counts {
        return;
    }
    for (figure, of) in COUNTS {
        let new = of(counts) - of(&before);
        if new > 0 {
            recorder.count(*figure, new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_name_the_figures_behind_those_of_transport_streams() {
        for (counter, name) in [(RECEIVED, "srt.received"), (ENCRYPTED, "srt.encrypted")] {
            assert_eq!(SCHEMA.position(name), Some(usize::from(counter.0)));
        }
        assert_eq!(SCHEMA.position("ts.lost_packets"), ts::SCHEMA.position("ts.lost_packets"));
    }

    #[test]
    fn what_was_counted_is_booked_once() {
        let mut recorder = Recorder::new(SCHEMA);
        let mut booked = Statistics::default();
        let counts = Statistics { received: 5, dropped: 2, ..Statistics::default() };
        book(&counts, &mut booked, &mut recorder);
        book(&Statistics { received: 6, ..counts }, &mut booked, &mut recorder);
        assert_eq!((recorder.counter(RECEIVED), recorder.counter(DROPPED)), (6, 2));
    }
}
