//! The figures that only WebRTC has.

weir_metrics::figures! {
    base = weir_metrics::common::FIGURES.len() as u16;
    pub(crate) FIGURES;
    ICE_TIME: Spread = "rtc.ice_time", Micros, "from the server's consent to a path";
    DTLS_TIME: Spread = "rtc.dtls_time", Micros, "from the path to the keys";
    FIRST_PACKET: Spread = "rtc.first_packet", Micros, "from the keys to the first RTP packet";
    FIRST_KEYFRAME: Spread = "rtc.first_keyframe", Micros, "from the first RTP packet to the first packet of a keyframe";
    VIDEO_PACKETS: Counter = "rtc.video_packets", Count, "RTP packets of pictures";
    VIDEO_LOST: Counter = "rtc.video_lost", Count, "RTP packets of pictures that are missing";
    AUDIO_PACKETS: Counter = "rtc.audio_packets", Count, "RTP packets of sound";
    AUDIO_LOST: Counter = "rtc.audio_lost", Count, "RTP packets of sound that are missing";
    GAPS: Counter = "rtc.gaps", Count, "runs of missing packets";
    GAP_LENGTH: Spread = "rtc.gap_length", Count, "packets missing in a row, of each run";
    RECOVERED: Counter = "rtc.recovered", Count, "missing packets that came after they had been asked for";
    NACKS: Counter = "rtc.nacks", Count, "missing packets asked for, each time counted";
    GIVEN_UP: Counter = "rtc.given_up", Count, "missing packets that are not asked for any more";
    PICTURE_REQUESTS: Counter = "rtc.plis", Count, "keyframes asked for";
    REPORTS: Counter = "rtc.receiver_reports", Count, "receiver reports sent";
    SENDER_REPORTS: Counter = "rtc.sender_reports", Count, "sender reports received";
    FRAMES_COMPLETE: Counter = "rtc.frames_complete", Count, "video frames of which every packet came";
    FRAMES_BROKEN: Counter = "rtc.frames_broken", Count, "video frames that lack a packet, or may lack one";
    FRAMES_UNPROVEN: Counter = "rtc.frames_unproven", Count, "broken frames of which nothing is known to be missing: a packet right before them is";
    FREEZES: Counter = "rtc.freezes", Count, "times between two whole frames of three means and 150 ms more than the mean at the least (W3C webrtc-stats)";
    FROZEN: Counter = "rtc.frozen", Micros, "length of all freezes";
    FREEZE_LENGTH: Spread = "rtc.freeze_length", Micros, "length of each freeze";
    FRAME_RATE: Spread = "rtc.frames_per_second", Count, "video frames of each second of each client, those of none included";
    BYTE_RATE: Spread = "rtc.bytes_per_second", Bytes, "bytes of RTP packets of each second of each client";
    SILENT_SECONDS: Counter = "rtc.silent_seconds", Count, "seconds of a client without a video frame";
    JITTER: Spread = "rtc.jitter", Micros, "interarrival jitter of the pictures, once a second of each client";
    ROUND_TRIP: Spread = "rtc.round_trip", Micros, "round trip to the server, once a second of each client, by RTCP or else by ICE";
    KEYFRAME_INTERVAL: Spread = "rtc.keyframe_interval", Micros, "media time between two keyframes that were seen";
    OPENED: Counter = "rtc.decrypted", Count, "RTP packets that were decrypted and are authentic";
    UNAUTHENTIC: Counter = "rtc.unauthentic", Count, "packets that the keys do not open";
    REPLAYED: Counter = "rtc.replayed", Count, "packets that came a second time, of those that were to be decrypted";
    EARLY: Counter = "rtc.early", Count, "RTP and RTCP packets that came before the keys";
    STRANGE: Counter = "rtc.strange", Count, "datagrams of strangers, of no known protocol or payload type";
    MALFORMED: Counter = "rtc.malformed", Count, "malformed packets";
    STRAYS: Counter = "rtc.strays", Count, "packets of a sequence that nothing else belongs to";
    RESTARTS: Counter = "rtc.restarts", Count, "times that sequence numbers began again";
    SENDER_REPORTS_SENT: Counter = "rtc.sender_reports_sent", Count, "publishers: sender reports sent";
    REPORTS_HEARD: Counter = "rtc.reports_heard", Count, "publishers: receiver reports of our stream";
    REPORTED_LOST: Counter = "rtc.reported_lost", Count, "publishers: packets that the server's last report said were lost";
    NACKS_HEARD: Counter = "rtc.nacks_heard", Count, "publishers: packets that the server asked for again, each time counted";
    REPEATED: Counter = "rtc.repeated", Count, "publishers: packets sent again";
    PICTURE_REQUESTS_HEARD: Counter = "rtc.plis_heard", Count, "publishers: keyframes that the server asked for";
    BANDWIDTH_REPORTS: Counter = "rtc.bandwidth_reports", Count, "publishers: reports on bandwidth (transport-wide congestion control, REMB)";
}
