//! Groups of figures that some kinds of clients never fill: a threshold on one of these figures would pass or fail whatever happens.
//! Which figures are of a group says each figure's declaration.

use weir_metrics::FigureGroup;

/// Groups of figures that a kind of clients never fills, and what to ask of them instead.
#[derive(Clone, Copy, Debug)]
pub struct Unfilled {
    /// The groups. Only those of which no client of the kind ever records anything, since a threshold on their figures is refused.
    pub groups: &'static [FigureGroup],
    /// Why they are empty, and what to ask instead: what follows a colon, with names of settings in braces.
    pub instead: &'static str,
}

impl Unfilled {
    /// What to ask instead of a figure of this group, if one of these has it.
    pub fn instead_of(unfilled: &[Self], group: FigureGroup) -> Option<&'static str> {
        unfilled.iter().find(|it| it.groups.contains(&group)).map(|it| it.instead)
    }
}

/// No media time passes.
const NO_PLAYOUT: &[FigureGroup] = &[FigureGroup::Stalls, FigureGroup::Starvation, FigureGroup::Playout];
/// What a clock stamp or a number of a unit tells its receiver.
const RECEPTION: &[FigureGroup] = &[FigureGroup::Latency, FigureGroup::Numbering, FigureGroup::Loss];

const MESSAGES_ARE_NO_PLAYOUT: Unfilled = Unfilled {
    groups: NO_PLAYOUT,
    instead: "messages have no media time and come when they come; ask for example for messages.rate > 100/s",
};
const MESSAGES_ARE_NO_PICTURES: Unfilled = Unfilled {
    groups: &[FigureGroup::Pictures],
    instead: "messages are no pictures; ask for example for messages > 1000",
};
const NO_FIRST_MESSAGE: Unfilled = Unfilled {
    groups: &[FigureGroup::FirstMedia],
    instead: "nothing says when a first message is to come; ask for startup.p99 < 1s",
};
const RECEIVES_NOTHING: Unfilled = Unfilled {
    groups: RECEPTION,
    instead: "a publisher receives nothing; ask it of a workload that plays, or of `weir play`",
};
const PLAYS_NOTHING: Unfilled = Unfilled {
    groups: NO_PLAYOUT,
    instead: "a publisher plays nothing; ask it of a workload that plays, or of `weir play`",
};
const DECODES_NOTHING: Unfilled = Unfilled {
    groups: &[FigureGroup::Decoding],
    instead: "only viewers of pictures and sound are decoded ({decode})",
};
const SENDS_NOTHING: Unfilled = Unfilled {
    groups: &[FigureGroup::Sending],
    instead: "a viewer sends nothing; ask it of a workload that publishes, or of `weir publish`",
};

/// Viewers of media by units that have numbers or stamps.
pub(crate) const VIEWER: &[Unfilled] = &[SENDS_NOTHING];

/// Viewers of MPEG-TS.
pub(crate) const TS_VIEWER: &[Unfilled] = &[
    SENDS_NOTHING,
    Unfilled { groups: RECEPTION, instead: "its packets have no clock stamp; ask for ts.lost_packets == 0" },
    Unfilled {
        groups: &[FigureGroup::Pictures],
        instead: "its pictures are not counted; ask for bitrate.ratio >= 95%",
    },
];

/// Viewers of HLS, who load segments and parts whole; witnesses look into them.
pub(crate) const SEGMENT_VIEWER: &[Unfilled] = &[
    SENDS_NOTHING,
    Unfilled {
        groups: &[FigureGroup::Numbering, FigureGroup::Loss],
        instead: "segments number no units; ask for hls.lost_packets == 0 or frames.ratio >= 95%",
    },
    Unfilled {
        groups: &[FigureGroup::Decoding],
        instead: "no decoder is given its segments; ask for frames.ratio >= 95%",
    },
    Unfilled {
        groups: &[FigureGroup::Playout, FigureGroup::Expected],
        instead: "segments come whole, at moments of the viewer's own; ask for stalled.ratio <= 1%",
    },
];

/// Publishers of media.
pub(crate) const PUBLISHER: &[Unfilled] = &[RECEIVES_NOTHING, PLAYS_NOTHING, DECODES_NOTHING];

/// Streams of filler, either way.
pub(crate) const FILLER: &[Unfilled] = {
    const INSTEAD: &str =
        "filler has no frames, no numbers, no clock and no schedule; ask for example for media.rate > 1MB";
    &[
        Unfilled { groups: &[FigureGroup::Sending, FigureGroup::Pictures], instead: INSTEAD },
        Unfilled { groups: NO_PLAYOUT, instead: INSTEAD },
        Unfilled { groups: RECEPTION, instead: INSTEAD },
        DECODES_NOTHING,
    ]
};

/// MQTT subscribers.
pub(crate) const SUBSCRIBER: &[Unfilled] = &[
    DECODES_NOTHING,
    MESSAGES_ARE_NO_PLAYOUT,
    MESSAGES_ARE_NO_PICTURES,
    NO_FIRST_MESSAGE,
    SENDS_NOTHING,
    Unfilled {
        groups: &[FigureGroup::Publishing],
        instead: "a subscriber publishes nothing; ask it of a workload that publishes, or of `weir publish`",
    },
    Unfilled {
        groups: &[FigureGroup::Expected],
        instead: "nothing says how much is to come; say so ({expect} 2Mbps), or ask for messages.rate > 100/s",
    },
];

/// MQTT clients that only connect.
pub(crate) const CONNECTION: &[Unfilled] = {
    const INSTEAD: &str = "clients that only connect receive no message; ask for example for startup.p99 < 1s or mqtt.connects.rate > 100/s";
    const OF_MESSAGES: &[FigureGroup] = &[
        FigureGroup::Media,
        FigureGroup::Expected,
        FigureGroup::Request,
        FigureGroup::FirstMedia,
        FigureGroup::Pictures,
        FigureGroup::Sending,
        FigureGroup::Subscribing,
        FigureGroup::Publishing,
    ];
    &[
        Unfilled { groups: OF_MESSAGES, instead: INSTEAD },
        Unfilled { groups: NO_PLAYOUT, instead: INSTEAD },
        Unfilled { groups: RECEPTION, instead: INSTEAD },
        DECODES_NOTHING,
    ]
};

/// MQTT publishers.
pub(crate) const MESSAGE_PUBLISHER: &[Unfilled] = &[
    DECODES_NOTHING,
    RECEIVES_NOTHING,
    PLAYS_NOTHING,
    MESSAGES_ARE_NO_PICTURES,
    NO_FIRST_MESSAGE,
    Unfilled {
        groups: &[FigureGroup::Subscribing],
        instead: "a publisher receives no message; ask it of a workload that plays, or of `weir play`",
    },
];

/// Workloads that save messages.
pub(crate) const INGESTER: &[Unfilled] = &[
    DECODES_NOTHING,
    MESSAGES_ARE_NO_PLAYOUT,
    MESSAGES_ARE_NO_PICTURES,
    Unfilled {
        groups: &[FigureGroup::Latency, FigureGroup::Numbering],
        instead: "it is not measured where messages are saved; ask for lag.p99 < 1s or lost == 0",
    },
];
