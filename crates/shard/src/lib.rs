//! One thread, one event loop: sessions, links, timers.
