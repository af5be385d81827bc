//! The figures that every protocol fills. `docs/method.md` defines each.

crate::figures! {
    base = 0;
    pub FIGURES;
    PLANNED: Counter = "slots_planned", Count, "slots whose time came";
    STARTED: Counter = "started", Count, "clients whose connection was begun";
    CONNECTED: Counter = "connected", Count, "clients whose link was established";
    PLAYED: Counter = "played", Count, "clients that received a decodable frame, or were accepted as publishers";
    ON_TIME: Counter = "slots_on_time", Count, "slots that began on time and did not fail";
    LATE: Counter = "slots_late", Count, "slots that began more than 100 ms after their time and did not fail";
    MISSED: Counter = "slots_missed", Count, "slots that never began";
    FAILED: Counter = "slots_failed", Count, "slots that failed";
    RECEIVED: Counter = "received", Bytes, "bytes read from links, protocol overhead included";
    SENT: Counter = "sent", Bytes, "bytes written to links, protocol overhead included";
    MEDIA: Counter = "media", Bytes, "bytes of media payload received, or sent by a publisher";
    UNITS: Counter = "units", Count, "media units (RTMP messages, RTP or TS packets) received or sent";
    FRAMES: Counter = "frames", Count, "video frames received or sent";
    KEYFRAMES: Counter = "keyframes", Count, "video keyframes received or sent";
    SOURCE: Counter = "source", Bytes, "media bytes of whole groups of pictures, for the source's rate";
    SOURCE_TIME: Counter = "source_time", Micros, "media time of the groups of pictures behind `source`";
    STALLS: Counter = "stalls", Count, "times that a modelled player ran out of media";
    STALLED: Counter = "stalled", Micros, "time that modelled players waited for media";
    LOST: Counter = "lost", Count, "media units known to be missing";
    REORDERED: Counter = "reordered", Count, "media units that arrived after a later one";
    DUPLICATE: Counter = "duplicate", Count, "media units that arrived twice";
    SOCKET_DROPS: Counter = "socket_drops", Count, "datagrams that weir's own sockets dropped because they were full";
    STAMPED: Counter = "stamped", Count, "frames that carried a clock stamp, witnesses only; `lost` counts beside them";
    WALL_LATENCIES: Counter = "wall_latencies", Count, "values of `latency` that two wall clocks gave, good to their agreement";
    TIMESTAMP_JUMPS: Counter = "timestamp_jumps", Count, "breaks in a stream's timestamps";
    READS: Counter = "reads", Count, "reads from links";
    ACTIVE: Gauge(Sum) = "active", Count, "clients that are connecting or connected at the interval's end";
    PLAYING: Gauge(Sum) = "playing", Count, "clients that receive or publish at the interval's end";
    SHARD_BUSY: Gauge(Max) = "shard_busy", Micros, "of the interval's second, time that the busiest shard's thread ran or waited for a CPU";
    TURN_LAG: Gauge(Max) = "turn_lag", Micros, "of the interval's second, the longest that a shard's thread overslept, or took for one turn";
    WITNESSES: Gauge(Sum) = "witnesses", Count, "clients that read at every event";
    START_LAG: Spread = "start_lag", Micros, "actual start of a client after its planned start";
    SEND_LAG: Spread = "send_lag", Micros, "a publisher's write after the frame's time on the media timeline";
    CONNECT: Spread = "connect", Micros, "from the planned start to an established link";
    HANDSHAKE: Spread = "handshake", Micros, "from the established link to the end of the protocol's handshake";
    REQUEST: Spread = "request", Micros, "from the handshake to the server's consent";
    FIRST_BYTE: Spread = "first_byte", Micros, "from the server's consent to the first media unit";
    FIRST_FRAME: Spread = "first_frame", Micros, "from the first media unit to the first decodable frame";
    STARTUP: Spread = "startup", Micros, "from the planned start to the first decodable frame";
    STALL_LENGTH: Spread = "stall_length", Micros, "length of each stall";
    LATENCY: Spread = "latency", Micros, "from capture to receipt of a stamped frame, witnesses only";
    TIMESTAMP_JUMP: Signed = "timestamp_jump", Micros, "size of each break in a stream's timestamps";
    DRIFT: Signed = "drift", Micros, "arrival against media time since the first frame, witnesses only";
}
