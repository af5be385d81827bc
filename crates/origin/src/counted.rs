//! What an origin has done by each protocol that counts something of its own.

use crate::counts::BulkCounts;
use crate::mqtt::MessageCounts;
use crate::origin::Origin;
use crate::rtc::{self, HubReport};
use crate::rtsp::RtspCounts;
use std::sync::Arc;

impl Origin {
    /// What its broker has taken and handed on up to now.
    pub fn messages(&self) -> MessageCounts {
        self.of_protocol().next().unwrap_or_default()
    }

    /// What it has done by WebRTC up to now.
    pub fn rtc(&self) -> rtc::Counts {
        let mut counts = rtc::Counts::default();
        self.of_protocol().for_each(|report: HubReport| counts.add(&report.counts));
        counts
    }

    /// What its bulk streams have carried up to now.
    pub fn bulk(&self) -> BulkCounts {
        let mut counts = BulkCounts::default();
        self.of_protocol().for_each(|other| counts.add(&other));
        counts
    }

    /// What it has done by RTSP up to now; datagrams of a viewer once it is gone.
    pub fn rtsp(&self) -> RtspCounts {
        let mut counts = RtspCounts::default();
        self.of_protocol().for_each(|other| counts.add(&other));
        counts
    }

    /// Streams whose sound viewers by WebRTC are not sent, because it is neither Opus nor G.711 and nothing is transcoded.
    pub fn mute_streams(&self) -> Vec<Arc<str>> {
        let mut names: Vec<_> =
            self.of_protocol().flat_map(|report: HubReport| report.mute_streams).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}
