//! A small server a protocol, with scripted faults.
