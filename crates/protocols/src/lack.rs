//! Figures that all clients have by their declaration and that some kinds of clients never fill: a threshold on one of them would
//! pass or fail whatever happens. Only what no client of a kind ever records is listed here, since a threshold on it is refused.

/// Figures that a kind of clients never fills, and what to ask of them instead.
#[derive(Clone, Copy, Debug)]
pub struct Lack {
    /// Groups of names of figures, and of ratios that are made of them, as thresholds have them: `stalls`, `stalled.ratio`.
    pub figures: &'static [&'static [&'static str]],
    /// Why they have none, and what to ask instead: what follows a colon.
    pub instead: &'static str,
}

impl Lack {
    /// Whether this figure is among them.
    pub fn has(&self, name: &str) -> bool {
        self.figures.iter().any(|group| group.contains(&name))
    }
}

/// How a modelled player stands still.
const STALLS: &[&str] = &[
    "stalls",
    "stalled",
    "stalled_viewers",
    "stall_length",
    "stalled.ratio",
    "starved",
    "starving",
    "starved.ratio",
];

/// What a modelled player makes of the media time of each frame.
const MEDIA_TIME: &[&str] = &[
    "stall_free.ratio",
    "drift",
    "burst",
    "arrival_gap",
    "edge_age",
    "recovery",
    "source",
    "source_time",
    "source_frames",
    "source_frame_time",
    "ahead",
    "frames_ahead",
    "timestamp_jumps",
    "timestamp_jump",
    "blackouts",
    "without_pictures",
    "without_sound",
    "last_picture",
    "last_sound",
];

/// What decoders make of pictures and sound.
const DECODING: &[&str] = &[
    "decoded",
    "decoded.ratio",
    "handed_in",
    "decoder_errors",
    "decoder_cpu",
    "not_handed_in",
    "decoders_missing",
    "decoders_failed",
    "decoded_width",
    "decoded_height",
];

/// How a publisher keeps its schedule and its count.
const SENDING: &[&str] = &["send_lag", "units_short"];

const PICTURES: &[&str] = &["frames", "keyframes", "frames.ratio", "edge_picture_age"];

/// What a clock stamp or a number of a unit tells its receiver.
const RECEPTION: &[&str] = &["latency", "lost", "lost.ratio", "reordered", "duplicate", "numbered"];

/// What only MQTT subscribers record.
const OF_SUBSCRIBERS: &[&str] = &[
    "mqtt.dup",
    "mqtt.retained",
    "mqtt.unmarked",
    "mqtt.lower_qos",
    "mqtt.excess",
    "mqtt.cut",
    "mqtt.missing",
    "mqtt.responses",
    "mqtt.unanswerable",
    "open_ends",
];

/// What only MQTT publishers record.
const OF_PUBLISHERS: &[&str] = &[
    "mqtt.acknowledged",
    "mqtt.refused",
    "mqtt.acknowledged_again",
    "mqtt.unmatched",
    "mqtt.unacknowledged",
    "mqtt.unanswered",
    "mqtt.unsent",
    "mqtt.began_alone",
    "mqtt.answers",
    "mqtt.no_answer",
    "mqtt.strange_answers",
    "mqtt.round_trip",
    "mqtt.held_up",
    "mqtt.in_flight",
    "mqtt.publish_lag",
    "mqtt.acknowledge_time",
    "mqtt.response_time",
];

const NO_MEDIA_TIME: Lack = Lack {
    figures: &[STALLS, MEDIA_TIME],
    instead: "messages have no media time and come when they come; ask for example for messages.rate > 100/s",
};
const NO_PICTURES: Lack =
    Lack { figures: &[PICTURES], instead: "messages are no pictures; ask for example for messages > 1000" };
const NO_FIRST: Lack = Lack {
    figures: &[&["first_byte", "first_frame"]],
    instead: "nothing says when a first message is to come; ask for startup.p99 < 1s",
};
const RECEIVES_NOTHING: Lack = Lack {
    figures: &[RECEPTION],
    instead: "a publisher receives nothing; ask it of a workload that plays, or of `weir play`",
};
const PLAYS_NOTHING: Lack = Lack {
    figures: &[STALLS, MEDIA_TIME],
    instead: "a publisher plays nothing; ask it of a workload that plays, or of `weir play`",
};
const DECODES_NOTHING: Lack =
    Lack { figures: &[DECODING], instead: "only viewers of pictures and sound are decoded (--decode)" };
const SENDS_NOTHING: Lack = Lack {
    figures: &[SENDING],
    instead: "a viewer sends nothing; ask it of a workload that publishes, or of `weir publish`",
};

/// Viewers of media by units that have numbers or stamps.
pub(crate) const VIEWER: &[Lack] = &[SENDS_NOTHING];

/// Viewers of MPEG-TS.
pub(crate) const TS_VIEWER: &[Lack] = &[
    SENDS_NOTHING,
    Lack { figures: &[RECEPTION], instead: "its packets have no clock stamp; ask for ts.lost_packets == 0" },
    Lack { figures: &[PICTURES], instead: "its pictures are not counted; ask for bitrate.ratio >= 95%" },
];

/// Viewers of HLS, who load Media Segments whole and look into none.
pub(crate) const SEGMENT_VIEWER: &[Lack] = {
    const INSTEAD: &str = "segments come whole, at moments of the viewer's own; ask for stalled.ratio <= 1%";
    &[
        SENDS_NOTHING,
        Lack { figures: &[RECEPTION], instead: "it looks into no segment; ask for stalled.ratio <= 1%" },
        Lack { figures: &[PICTURES], instead: "it looks into no segment; ask for hls.segments >= 100" },
        Lack { figures: &[DECODING], instead: "it looks into no segment; ask for hls.segments >= 100" },
        Lack { figures: &[MEDIA_TIME, &["bitrate.ratio"]], instead: INSTEAD },
    ]
};

/// Publishers of media.
pub(crate) const PUBLISHER: &[Lack] = &[RECEIVES_NOTHING, PLAYS_NOTHING, DECODES_NOTHING];

/// Streams of filler, either way.
pub(crate) const FILLER: &[Lack] = {
    const INSTEAD: &str =
        "filler has no frames, no numbers, no clock and no schedule; ask for example for media.rate > 1MB";
    &[
        Lack { figures: &[SENDING], instead: INSTEAD },
        Lack { figures: &[STALLS, MEDIA_TIME], instead: INSTEAD },
        Lack { figures: &[PICTURES], instead: INSTEAD },
        Lack { figures: &[RECEPTION], instead: INSTEAD },
        DECODES_NOTHING,
    ]
};

/// MQTT subscribers.
pub(crate) const SUBSCRIBER: &[Lack] = &[
    DECODES_NOTHING,
    NO_MEDIA_TIME,
    NO_PICTURES,
    NO_FIRST,
    SENDS_NOTHING,
    Lack {
        figures: &[OF_PUBLISHERS],
        instead: "a subscriber publishes nothing; ask it of a workload that publishes, or of `weir publish`",
    },
    Lack {
        figures: &[&["bitrate.ratio"]],
        instead: "nothing says how much is to come; say so (--expect 2Mbps), or ask for messages.rate > 100/s",
    },
];

/// MQTT clients that only connect.
pub(crate) const CONNECTION: &[Lack] = {
    const INSTEAD: &str = "clients that only connect receive no message; ask for example for startup.p99 < 1s or mqtt.connects.rate > 100/s";
    &[
        Lack { figures: &[STALLS, MEDIA_TIME], instead: INSTEAD },
        Lack { figures: &[PICTURES], instead: INSTEAD },
        Lack { figures: &[RECEPTION], instead: INSTEAD },
        Lack { figures: &[OF_SUBSCRIBERS], instead: INSTEAD },
        Lack { figures: &[SENDING], instead: INSTEAD },
        Lack { figures: &[OF_PUBLISHERS], instead: INSTEAD },
        DECODES_NOTHING,
        Lack {
            figures: &[&["units", "media", "request", "first_byte", "first_frame", "bitrate.ratio"]],
            instead: INSTEAD,
        },
    ]
};

/// MQTT publishers.
pub(crate) const MESSAGE_PUBLISHER: &[Lack] = &[
    DECODES_NOTHING,
    RECEIVES_NOTHING,
    PLAYS_NOTHING,
    NO_PICTURES,
    NO_FIRST,
    Lack {
        figures: &[OF_SUBSCRIBERS],
        instead: "a publisher receives no message; ask it of a workload that plays, or of `weir play`",
    },
];

/// Workloads that save messages.
pub(crate) const INGESTER: &[Lack] = &[
    DECODES_NOTHING,
    NO_MEDIA_TIME,
    NO_PICTURES,
    Lack {
        figures: &[&["latency", "reordered", "numbered"]],
        instead: "it is not measured where messages are saved; ask for lag.p99 < 1s or lost == 0",
    },
];
