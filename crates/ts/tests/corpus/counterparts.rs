//! Other programs that count.
