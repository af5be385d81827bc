//! The figures that only HLS has.

weir_metrics::figures! {
    base = weir_metrics::common::FIGURES.len() as u16;
    pub(crate) FIGURES;
    CONNECTIONS: Counter = "hls.connections", Count, "links that viewers began";
    REQUESTS: Counter = "hls.requests", Count, "requests for playlists and segments, redirects apart";
    PLAYLIST_BYTES: Counter = "hls.playlist_bytes", Bytes, "bytes of playlists";
    RELOADS: Counter = "hls.reloads", Count, "media playlists that were loaded again";
    STALE: Counter = "hls.stale", Count, "reloads of a playlist that had not changed for two and a half target durations";
    REFUSED: Counter = "hls.refused", Count, "answers other than 2xx to requests for segments, and to reloads of playlists";
    NOT_FOUND: Counter = "hls.not_found", Count, "those of segments that were 404 or 410";
    SEGMENTS: Counter = "hls.segments", Count, "media segments that came whole";
    LOADED: Counter = "hls.loaded", Micros, "media time of segments and parts that came whole, by their playlists";
    ANNOUNCED: Counter = "hls.announced", Micros, "media time that playlists announced to viewers from where they started";
    LOW_LATENCY: Counter = "hls.low_latency", Count, "viewers that played partial segments";
    PARTS: Counter = "hls.parts", Count, "partial segments that came whole";
    DELTAS: Counter = "hls.deltas", Count, "playlists that left out what their viewer knew (EXT-X-SKIP)";
    EARLY: Counter = "hls.early", Count, "answers to requests for what was to come that came without it";
    SKIPPED: Counter = "hls.skipped", Count, "segments that had left the playlist, in whole or in part, before a viewer asked for them";
    GAPS: Counter = "hls.gaps", Count, "segments that are marked as missing (EXT-X-GAP)";
    WENT_BACK: Counter = "hls.went_back", Count, "reloads of a playlist that ended before the one loaded earlier";
    TARGET_EXCEEDED: Counter = "hls.target_exceeded", Count, "announced segments whose rounded duration is above the target duration";
    MULTIVARIANT: Counter = "hls.multivariant", Count, "viewers that chose a variant of a multivariant playlist";
    AUDIO_APART: Counter = "hls.audio_apart", Count, "viewers whose variant has its sound in a playlist of its own, which is not loaded";
    MULTIVARIANT_TIME: Spread = "hls.multivariant_time", Micros, "from the request for a multivariant playlist until it was whole";
    PLAYLIST_TIME: Spread = "hls.playlist_time", Micros, "from the request for a media playlist until it was whole";
    PLAYLIST_AGE: Spread = "hls.playlist_age", Micros, "at each reload, how long ago the playlist was last seen to change; 0 where it has changed";
    BLOCK_TIME: Spread = "hls.block_time", Micros, "from a request for what was to come until its playlist was whole";
    PART_TIME: Spread = "hls.part_time", Micros, "from the request for a partial segment until it was whole";
    SEGMENT_TIME: Spread = "hls.segment_time", Micros, "from the request for a segment until it was whole";
}
