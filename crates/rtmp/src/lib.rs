//! RTMP and FLV, sans-IO: bytes in, events out.
