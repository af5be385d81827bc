//! The figures that only RTMP has.

weir_metrics::figures! {
    base = weir_metrics::common::FIGURES.len() as u16;
    pub(crate) FIGURES;
    AUDIO_FRAMES: Counter = "rtmp.audio_frames", Count, "audio frames received or sent";
    SEQUENCE_HEADERS: Counter = "rtmp.sequence_headers", Count, "audio and video decoder configurations received or sent";
    DATA_MESSAGES: Counter = "rtmp.data_messages", Count, "data messages (metadata and its like) received or sent";
    ENHANCED: Counter = "rtmp.enhanced", Count, "audio and video messages received in the form of enhanced RTMP";
    UNREADABLE_TAGS: Counter = "rtmp.unreadable_tags", Count, "audio and video messages whose first bytes are no FLV tag";
    DIGEST_HANDSHAKES: Counter = "rtmp.digest_handshakes", Count, "handshakes that the server answered with digests";
    STATUSES: Counter = "rtmp.statuses", Count, "onStatus and _error messages from the server";
    STREAM_ENDS: Counter = "rtmp.stream_ends", Count, "times that a server said the stream had ended, taken back or not";
    SERVER_ACKS: Counter = "rtmp.server_acks", Count, "Acknowledgement messages from the server";
}
