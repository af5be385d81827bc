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
    AUDIO_APART: Counter = "hls.audio_apart", Count, "viewers whose variant has its sound in a playlist of its own, which they load as well";
    SWITCHES: Counter = "hls.switches", Count, "changes of a viewer from one variant to another (--variant auto)";
    KEYS: Counter = "hls.keys", Count, "keys of encrypted segments that came whole";
    SEALED: Counter = "hls.sealed", Count, "playlists with segments that no key alone decrypts (SAMPLE-AES, systems of rights), each viewer's once";
    DECRYPTED: Counter = "hls.decrypted", Count, "encrypted segments that witnesses decrypted";
    UNDECRYPTED: Counter = "hls.undecrypted", Count, "encrypted segments that witnesses could not decrypt with the key that the playlist names";
    HINTS_UNUSED: Counter = "hls.hints_unused", Count, "parts that were asked for before they were there, and then named otherwise, refused or never answered";
    CACHE_HITS: Counter = "hls.cache_hits", Count, "playlists, segments and parts that a cache had, by what their answers say";
    CACHE_MISSES: Counter = "hls.cache_misses", Count, "those that no cache had, of answers that say something of caches";
    CLOCKS_APART: Counter = "hls.clocks_apart", Count, "viewers whose server's clock is more than a quarter of a second away from this machine's, by the Date of its answers";
    MULTIVARIANT_TIME: Spread = "hls.multivariant_time", Micros, "from the request for a multivariant playlist until it was whole";
    PLAYLIST_TIME: Spread = "hls.playlist_time", Micros, "from the request for a media playlist until it was whole";
    PLAYLIST_AGE: Spread = "hls.playlist_age", Micros, "at each reload, how long ago the playlist was last seen to change; 0 where it has changed";
    BLOCK_TIME: Spread = "hls.block_time", Micros, "from a request for what was to come until its playlist was whole";
    PART_TIME: Spread = "hls.part_time", Micros, "from the request for a partial segment until it was whole";
    VARIANT_BANDWIDTH: Spread = "hls.variant_bandwidth", Count, "BANDWIDTH of the variant of each segment that came whole, in bits per second (--variant auto)";
    CACHE_AGE: Spread = "hls.cache_age", Micros, "age of playlists that a cache handed out, in whole seconds";
    LATENCY: Signed = "hls.latency", Micros, [Own, Lower, "Behind live"], "from capture, by the playlist's dates, until the modelled player shows it";
    EDGE_LATENCY: Signed = "hls.edge_latency", Micros, [Own, Lower], "from capture of the end of a playlist that has changed, by its dates, until it was whole here";
    CLOCK_AHEAD: Signed = "hls.clock_ahead", Micros, "what the server's clock is ahead of this machine's, by the Date of its answers to each viewer";
    CLOCK_ERROR: Spread = "hls.clock_error", Micros, "by how much each value of `hls.clock_ahead` may be wrong";
    HINT_TIME: Spread = "hls.hint_time", Micros, "from the request for a part that was to come until it was whole";
    SEGMENT_TIME: Spread = "hls.segment_time", Micros, "from the request for a segment until it was whole";
}
