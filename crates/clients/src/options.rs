//! What every workload is made with, whatever its protocol; what only one protocol has stands with that protocol.

use crate::client_state::Timeouts;
use crate::decoding::{DecodedWitness, Decoders};
use crate::material::MaterialOptions;
use crate::playback_model::Reading;
use crate::playout::Playout;
use crate::reconnect::Return;
use crate::resolve::Resolve;
use std::sync::Arc;
use std::time::Duration;
use weir_shard::tls::ClientTls;

/// How to play.
#[derive(Clone, Debug)]
pub struct PlayOptions {
    /// Longest stay in each phase before playing.
    pub timeouts: Timeouts,
    /// This many clients are witnesses before any other.
    pub first_witnesses: u32,
    /// One in this many of the remaining clients is a witness; 0 for none.
    pub witness_every: u32,
    /// How much the modelled player buffers before it begins to play.
    pub playout_buffer: Duration,
    /// How much it buffers before it plays on after a stall; `None` for as much as at the start.
    pub rebuffer: Option<Duration>,
    /// How long a stream that has ended may take to come back before its viewers have failed.
    pub end_grace: Duration,
    /// What decodes some of the witnesses, if that is asked for.
    pub decoders: Option<Arc<Decoders>>,
    /// How long viewers try to come back when their links are lost.
    pub returns: Return,
    /// Which of the addresses of a name they go to.
    pub resolve: Resolve,
    /// How to secure links.
    pub tls: ClientTls,
}

impl Default for PlayOptions {
    fn default() -> Self {
        Self {
            timeouts: Timeouts::all(Duration::from_secs(10)),
            first_witnesses: 4,
            witness_every: 200,
            playout_buffer: Duration::from_secs(1),
            rebuffer: None,
            end_grace: Duration::from_secs(2),
            decoders: None,
            returns: Return::default(),
            resolve: Resolve::default(),
            tls: ClientTls::default(),
        }
    }
}

impl PlayOptions {
    /// Whether a client is a witness, which reads at every event.
    pub fn is_witness(&self, client: u32) -> bool {
        client < self.first_witnesses || self.witness_every > 0 && client.is_multiple_of(self.witness_every)
    }

    /// How a client reads its link.
    pub fn reading(&self, client: u32) -> Reading {
        if self.is_witness(client) { Reading::Witness } else { Reading::Crowd }
    }

    /// What a client hands to decoders, if it is one of those whose streams are decoded.
    pub(crate) fn decoded(&self, client: u32) -> Option<DecodedWitness> {
        let decoders = self.decoders.as_ref().filter(|_| self.is_witness(client))?;
        Some(DecodedWitness::new(Arc::clone(decoders)))
    }

    /// The modelled player.
    pub fn playout(&self) -> Playout {
        Playout::new(self.playout_buffer, self.rebuffer.unwrap_or(self.playout_buffer))
    }
}

/// How to publish, and what.
#[derive(Clone, Debug)]
pub struct PublishOptions {
    /// Longest stay in each phase before publishing.
    pub timeouts: Timeouts,
    /// How long a server may take nothing.
    pub send_timeout: Duration,
    /// What to publish, where that is pictures and sound.
    pub material: MaterialOptions,
    /// Whether what is published carries the time at which it was sent: a clock stamp in every video frame, a mark in
    /// every message.
    pub stamp: bool,
    /// How long publishers try to come back when their links are lost.
    pub returns: Return,
    /// Which of the addresses of a name they go to.
    pub resolve: Resolve,
    /// How to secure links.
    pub tls: ClientTls,
}

impl Default for PublishOptions {
    fn default() -> Self {
        Self {
            timeouts: Timeouts::all(Duration::from_secs(10)),
            send_timeout: Duration::from_secs(10),
            material: MaterialOptions::default(),
            stamp: true,
            returns: Return::default(),
            resolve: Resolve::default(),
            tls: ClientTls::default(),
        }
    }
}
