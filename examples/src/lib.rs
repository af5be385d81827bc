//! A crate that has a server to test: `tests/nginx.rs` starts it, and has weir load it.
