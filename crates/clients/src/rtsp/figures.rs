//! The figures that only RTSP has.

weir_metrics::figures! {
    base = weir_metrics::common::FIGURES.len() as u16;
    pub FIGURES;
    PACKETS: Counter = "rtsp.packets", Count, "RTP packets received or sent";
    AUDIO_FRAMES: Counter = "rtsp.audio_frames", Count, "audio frames received or sent";
    CONFIGURATIONS: Counter = "rtsp.configurations", Count, "decoder configurations received, in descriptions and in packets";
    OTHER_FRAMES: Counter = "rtsp.other_frames", Count, "pictures received whose codec weir does not read: which of them are keyframes is unknown";
    EXTENDED: Counter = "rtsp.other_codecs", Count, "frames received of codecs other than H.264, AAC and G.711";
    OTHER_PACKETS: Counter = "rtsp.other_packets", Count, "packets received of tracks beside the first of pictures and of sound";
    BROKEN_FRAMES: Counter = "rtsp.broken_frames", Count, "pictures received of which packets were missing";
    MALFORMED: Counter = "rtsp.malformed", Count, "packets received that are not RTP or RTCP, or whose payload cannot be read";
    STRAYS: Counter = "rtsp.strays", Count, "packets received on no channel or port of a track, or of no payload type or sequence that was described";
    GAPS: Counter = "rtsp.gaps", Count, "runs of packets that are missing";
    RESTARTS: Counter = "rtsp.restarts", Count, "times that the numbers of a track's packets began again";
    SENDER_REPORTS: Counter = "rtsp.sender_reports", Count, "RTCP sender reports received or sent";
    RECEIVER_REPORTS: Counter = "rtsp.receiver_reports", Count, "RTCP receiver reports sent or received";
    REPORTED_LOST: Counter = "rtsp.reported_lost", Count, "publishers: packets that the server's last reports said were lost";
    KEEP_ALIVES: Counter = "rtsp.keep_alives", Count, "requests that kept a session alive";
    LOGINS: Counter = "rtsp.logins", Count, "requests that were repeated with a login";
    OPTIONS_TIME: Spread = "rtsp.options_time", Micros, "from OPTIONS to its response";
    DESCRIBE_TIME: Spread = "rtsp.describe_time", Micros, "from DESCRIBE to its response";
    ANNOUNCE_TIME: Spread = "rtsp.announce_time", Micros, "from ANNOUNCE to its response";
    SETUP_TIME: Spread = "rtsp.setup_time", Micros, "from each SETUP to its response";
    PLAY_TIME: Spread = "rtsp.play_time", Micros, "from PLAY to its response";
    RECORD_TIME: Spread = "rtsp.record_time", Micros, "from RECORD to its response";
    KEEP_ALIVE_TIME: Spread = "rtsp.keep_alive_time", Micros, "from each request that keeps a session alive to its response, of viewers witnesses only";
    JITTER: Spread = "rtsp.jitter", Micros, "interarrival jitter of pictures' packets (RFC 3550), or of sound's if there are no pictures, once in five seconds, witnesses only";
}
