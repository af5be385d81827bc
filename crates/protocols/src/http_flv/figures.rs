//! The figures that only HTTP-FLV has.

weir_metrics::figures! {
    base = weir_metrics::common::FIGURES.len() as u16;
    pub(crate) FIGURES;
    AUDIO_FRAMES: Counter = "flv.audio_frames", Count, "audio frames received";
    SEQUENCE_HEADERS: Counter = "flv.sequence_headers", Count, "audio and video decoder configurations received";
    SCRIPT_TAGS: Counter = "flv.script_tags", Count, "script data tags (metadata and its like) received";
    ENHANCED: Counter = "flv.enhanced", Count, "audio and video tags received in the form of enhanced RTMP";
    UNREADABLE_TAGS: Counter = "flv.unreadable_tags", Count, "audio and video tags whose first bytes cannot be read";
}
