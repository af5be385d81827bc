//! What viewers over HTTP have in common.

use crate::secret::variable;
use weir_clients::{Credentials, HttpOptions};

/// The variable with `user:password` for HTTP.
const CREDENTIALS: &str = "WEIR_HTTP_CREDENTIALS";

/// Credentials of the environment, for URLs that name none.
pub(crate) fn options() -> HttpOptions {
    let credentials = variable(CREDENTIALS).map(|text| Credentials::parse(&text));
    HttpOptions { credentials, ..HttpOptions::default() }
}
