//! Counters, gauges and histograms that add: what leaves a shard once a second.
