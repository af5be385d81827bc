//! Endpoints that become known only in a run, because a server redirects a client. A shard never waits for a name
//! server: names are resolved on threads of their own, and clients ask again.

use crate::endpoints::EndpointFinder;
use crate::target::Target;
use crate::workload_error::WorkloadError;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_shard::Endpoint;

/// The most redirect targets that a run looks up: enough for a cluster, and a bound for a server that invents names.
const MOST: usize = 64;

/// What is known of the endpoint that a redirect leads to.
#[derive(Clone, Debug)]
pub(crate) enum Redirect {
    /// The name is being resolved: ask again.
    Sought,
    /// The endpoint.
    Found(Endpoint),
    /// The redirect leads nowhere; the text says why.
    None(String),
}

/// The endpoints of a workload's redirects, shared by its clients.
#[derive(Clone)]
pub struct Redirects(Arc<Mutex<RedirectTable>>);

struct RedirectTable {
    finder: EndpointFinder,
    /// By scheme, host and port.
    redirects: HashMap<(&'static str, String, u16), Redirect>,
}

impl Redirect {
    fn of(found: Result<Endpoint, WorkloadError>) -> Self {
        found.map_or_else(|error| Self::None(error.to_string()), Self::Found)
    }
}

impl Redirects {
    /// What is known to begin with.
    pub fn new(finder: EndpointFinder) -> Self {
        Self(Arc::new(Mutex::new(RedirectTable { finder, redirects: HashMap::new() })))
    }

    /// The way to a target; the first to ask for it starts the search.
    pub(crate) fn find(&self, target: &Target) -> Redirect {
        let place = (target.scheme.name, target.host.clone(), target.port);
        let mut known = self.known();
        if let Some(redirect) = known.redirects.get(&place) {
            return redirect.clone();
        }
        if known.redirects.len() == MOST {
            return Redirect::None(format!("more than {MOST} places were sought in this run"));
        }
        if known.finder.knows(target) {
            let redirect = Redirect::of(known.finder.find(target));
            return known.redirects.entry(place).or_insert(redirect).clone();
        }
        known.redirects.insert(place.clone(), Redirect::Sought);
        drop(known);
        self.seek(target.clone(), place)
    }

    fn seek(&self, target: Target, place: (&'static str, String, u16)) -> Redirect {
        let (searcher, sought) = (self.clone(), place.clone());
        let search = move || {
            // The resolver is asked without the lock, and the endpoints find its answer.
            let resolved = target.resolve();
            let mut known = searcher.known();
            let found = match resolved {
                Ok(address) => Redirect::of(known.finder.find_at(&target, address)),
                Err(error) => Redirect::None(error.to_string()),
            };
            known.redirects.insert(sought, found);
        };
        match std::thread::Builder::new().name("resolver".to_owned()).spawn(search) {
            Ok(_) => Redirect::Sought,
            Err(error) => {
                let none = Redirect::None(error.to_string());
                self.known().redirects.insert(place, none.clone());
                none
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, RedirectTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
