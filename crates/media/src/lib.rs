//! Synthetic H.264 and AAC at any bit rate, looped files, and the clock stamp.
