//! A viewer that changes between variants as fast as their segments come.

use super::Viewer;
use super::link::{LinkName, Loading, TrackName};
use crate::hls::bandwidth::Throughput;
use crate::hls::figures::{SWITCHES, VARIANT_BANDWIDTH};
use crate::hls::inspector::Inspector;
use crate::hls::variant::Variant;
use std::sync::Arc;
use std::time::Duration;
use weir_clients::{End, Request, ShardRecorder};
use weir_metrics::Failure;
use weir_shard::Context;

/// The variants of a Multivariant Playlist.
pub(super) struct Ladder {
    pub(super) variants: Vec<Variant>,
    /// Where it came from: their URIs are relative to that.
    pub(super) base: Arc<Request>,
    /// The one that is played.
    pub(super) current: usize,
    pub(super) throughput: Throughput,
}

impl Viewer {
    /// A segment has come whole in this time: the next may be of another variant.
    pub(super) fn adapt(
        &mut self,
        bytes: u64,
        took: Duration,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        let planned = self.state.planned();
        let Some(ladder) = self.ladder.as_deref_mut() else { return Ok(()) };
        let recorder = context.world.of(planned);
        ladder.throughput.add(bytes, took);
        if let Some(variant) = ladder.variants.get(ladder.current) {
            recorder.record(VARIANT_BANDWIDTH, variant.bandwidth);
        }
        let next = ladder.throughput.choose(&ladder.variants, ladder.current);
        let Some(variant) = ladder.variants.get(next).filter(|_| next != ladder.current) else {
            return Ok(());
        };
        if !self.main.schedule.may_switch() {
            return Ok(());
        }
        let playlist = ladder.base.named(&variant.uri, None).map_err(|cause| {
            (Failure::MalformedInput, format!("the playlist names what is no URL of HTTP: {cause}"))
        })?;
        ladder.current = next;
        recorder.count(SWITCHES, 1);
        (self.main.playlist, self.main.base) = (Arc::new(playlist), None);
        self.main.forget();
        // Its pictures may have another rate, and other times.
        self.inspector.iter_mut().for_each(|inspector| **inspector = Inspector::default());
        self.main.schedule.switch(context.now);
        // A playlist of the variant before is of no use any more, and the server may hold it.
        for name in [LinkName::First, LinkName::Second] {
            if let Some(link) = self.link_mut(name)
                && let Some((TrackName::Main, Loading::Playlist(..) | Loading::Hint(..))) = link.loading
            {
                link.connection.abort(context);
                link.loading = None;
            }
        }
        Ok(())
    }
}
