//! A topic to subscribe to, for code that is not a virtual client.

use super::template::ClientNames;
use super::workload::plain;
use super::{LINK_SCHEMES, topic};
use crate::endpoints::EndpointFinder;
use crate::target::{Credentials, Target};
use crate::workload_error::WorkloadError;
use weir_shard::Endpoint;
use weir_shard::tls::ClientTls;

/// What a URL such as `mqtt://user:password@host/topic/#` leads to.
#[derive(Clone, Debug)]
pub struct MqttSource {
    /// The URL's parts; shown without user and password.
    pub target: Target,
    /// The way to the broker.
    pub endpoint: Endpoint,
    /// The topic filter.
    pub filter: String,
    /// User and password, if the URL names them.
    pub credentials: Option<Credentials>,
}

impl MqttSource {
    /// Reads a URL and finds the way. Asks the resolver, so it may take a while.
    ///
    /// # Errors
    /// A URL that leads nowhere, a malformed topic filter, or TLS settings that cannot be made.
    pub fn find(url: &str, tls: &ClientTls) -> Result<Self, WorkloadError> {
        let target = Target::parse(url, "ingest", LINK_SCHEMES)?;
        let mut filters =
            topic::filters(&target, &[], &ClientNames { number: "0".to_owned(), ..ClientNames::default() })?;
        let filter = filters.swap_remove(0);
        let endpoint = EndpointFinder::new(LINK_SCHEMES, tls).find(&target)?;
        let credentials = target.credentials.as_ref().map(plain);
        Ok(Self { target, endpoint, filter, credentials })
    }
}
