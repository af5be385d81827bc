//! Virtual viewers and publishers, one module a protocol.
