//! All services of a tuner server, prepared, and found by whatever they are asked for by.

use super::material::MaterialError;
use super::programme::{Clips, Programme};
use super::service::{Service, Tuners};
use crate::stream::{History, Terms};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The services that can be tuned to.
#[derive(Debug)]
pub(crate) struct Catalogue {
    pub(crate) terms: Terms,
    /// Whether readers that can are sent the chunked coding.
    pub(crate) chunked: bool,
    pub(crate) stations: Vec<Station>,
}

/// A service, ready to play.
#[derive(Debug)]
pub(crate) struct Station {
    pub(crate) service: Service,
    /// The name of its stream, which no peer can publish under: it begins with a slash.
    pub(crate) name: Arc<str>,
    pub(super) programme: Programme,
    /// Readers over all workers.
    pub(super) audience: AtomicU64,
}

impl Station {
    /// How many readers it has now, over all workers.
    pub(crate) fn readers(&self) -> u64 {
        self.audience.load(Ordering::Relaxed)
    }
}

impl Catalogue {
    /// Prepares everything that will be played.
    pub(crate) fn prepare(config: &Tuners) -> Result<Self, MaterialError> {
        let Tuners { services, merge, queue, queue_bytes, chunked } = config;
        // Any packet is as good as another to begin with: nothing has to be kept for readers that come late.
        let history = History {
            gop_cache: false,
            queue: *queue,
            queue_bytes: *queue_bytes,
            gop: Duration::ZERO,
            gop_bytes: 0,
        };
        let terms = Terms { history, merge: *merge };
        let mut clips = Clips::new();
        let stations = services.iter().enumerate().map(|(place, service)| {
            Ok(Station {
                service: service.clone(),
                name: format!("/{}.ts", place + 1).into(),
                programme: Programme::prepare(service, &mut clips)?,
                audience: AtomicU64::new(0),
            })
        });
        Ok(Self { terms, chunked: *chunked, stations: stations.collect::<Result<_, _>>()? })
    }

    /// The place of the service whose stream has this name.
    pub(crate) fn station_of(&self, name: &str) -> Option<usize> {
        self.stations.iter().position(|station| *station.name == *name)
    }
}
