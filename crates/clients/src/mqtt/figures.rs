//! The figures that only MQTT has.

weir_metrics::figures! {
    base = weir_metrics::common::FIGURES.len() as u16;
    pub FIGURES;
    ACKNOWLEDGED: Counter = "mqtt.acknowledged", Count, [Publishing, Higher], "messages that the broker has acknowledged for good: PUBACK, PUBCOMP";
    REFUSED: Counter = "mqtt.refused", Count, [Publishing], "messages that the broker has acknowledged with an error";
    ACKNOWLEDGED_AGAIN: Counter = "mqtt.acknowledged_again", Count, [Publishing], "acknowledgements of messages that the broker had acknowledged before";
    UNMATCHED: Counter = "mqtt.unmatched", Count, [Publishing], "acknowledged messages that had no subscriber";
    UNACKNOWLEDGED: Counter = "mqtt.unacknowledged", Count, [Publishing], "messages of QoS 1 and 2 that were not acknowledged when their publisher ended, or its session was lost";
    UNANSWERED: Counter = "mqtt.unanswered", Count, [Publishing], "of these, those whose publisher had a link and waited for the broker at its end";
    BEGAN_ALONE: Counter = "mqtt.began_alone", Count, [Publishing], "publishers that had to wait for all clients and began when the time for that was over";
    UNSENT: Counter = "mqtt.unsent", Count, [Publishing], "messages whose time had come and that were not sent when their publisher ended";
    HELD_UP: Counter = "mqtt.held_up", Count, [Publishing], "times that a message was due and the window or the link was full";
    ANSWERS: Counter = "mqtt.answers", Count, [Publishing], "requests of publishers with a Response Topic that were answered";
    NO_ANSWER: Counter = "mqtt.no_answer", Count, [Publishing], "requests that no answer came to within the timeout, or before their publisher ended";
    STRANGE_ANSWERS: Counter = "mqtt.strange_answers", Count, [Publishing], "messages on a Response Topic that answer no request which waits: late, twice, or another's";
    RESPONSES: Counter = "mqtt.responses", Count, [Subscribing], "requests that a subscriber has answered";
    UNANSWERABLE: Counter = "mqtt.unanswerable", Count, [Subscribing], "requests that a subscriber could not answer: a malformed Response Topic, or a full link";
    DELIVERED_AGAIN: Counter = "mqtt.dup", Count, [Subscribing], "messages received with the DUP flag";
    RETAINED: Counter = "mqtt.retained", Count, [Subscribing], "messages received that the broker had kept; left out of latency and loss";
    UNMARKED: Counter = "mqtt.unmarked", Count, [Subscribing], "messages received without a mark of weir's";
    LOWER_QOS: Counter = "mqtt.lower_qos", Count, [Subscribing], "subscriptions granted at a lower QoS than was asked for";
    EXCESS: Counter = "mqtt.excess", Count, [Subscribing], "messages received beyond the Receive Maximum that the broker was told";
    CUT: Counter = "mqtt.cut", Count, [Subscribing], "messages that had begun to come when the link or their subscriber ended";
    CONNECTS: Counter = "mqtt.connects", Count, "CONNECTs that the broker accepted: a client's first, and those after it";
    RECONNECTS: Counter = "mqtt.reconnects", Count, "connections of clients after their first";
    SESSIONS_LOST: Counter = "mqtt.sessions_lost", Count, "of these, those at which the broker did not have the session that it was to keep";
    PINGS: Counter = "mqtt.pings", Count, "PINGREQs that the broker answered";
    IN_FLIGHT: Gauge(Sum) = "mqtt.in_flight", Count, [Publishing], "messages sent and not acknowledged at the interval's end";
    MISSING: Gauge(Sum) = "mqtt.missing", Count, [Subscribing], "messages that have not come to a subscriber although later ones have";
    AWAY: Spread = "mqtt.away", Micros, "from the break of a client's link to the broker's consent on the next one";
    PUBLISH_LAG: Spread = "mqtt.publish_lag", Micros, [Publishing], "from a message's time on the schedule to its sending, the broker's back-pressure included";
    ROUND_TRIP: Spread = "mqtt.round_trip", Micros, [Publishing], "from a request's sending to its answer, through the broker and whoever answers";
    ACKNOWLEDGE_TIME: Spread = "mqtt.acknowledge_time", Micros, [Publishing], "from a message's sending to the broker's last acknowledgement";
    RESPONSE_TIME: Spread = "mqtt.response_time", Micros, [Publishing], "from a message's time on the schedule to the broker's last acknowledgement";
}
