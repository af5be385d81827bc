//! What a process, its threads, its sockets and the host did in the last second.
