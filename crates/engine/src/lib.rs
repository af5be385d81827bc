//! Plan, shards, intervals, summary and verdict of a run.
