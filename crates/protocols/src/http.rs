//! What clients over HTTP have in common.

use crate::given::Given;
use crate::secret::variable;
use clap::Args;
use weir_clients::{Credentials, GivenFields, HttpOptions, WorkloadError};
use weir_setting::HEADER;

/// The variable with `user:password` for HTTP.
const CREDENTIALS: &str = "WEIR_HTTP_CREDENTIALS";

/// What each request has beside what weir says.
#[derive(Args)]
#[command(next_help_heading = "HTTP")]
pub(crate) struct Fields {
    /// A field of each request, such as `Cookie: a=b`; repeatable. Values are secrets, and follow a redirect to the same
    /// scheme, host and port only, as do cookies that the server sets
    #[arg(short = 'H', long, value_name = "NAME: VALUE")]
    header: Vec<String>,
}

/// Credentials of the environment, for URLs that name none, and the fields that were given.
pub(crate) fn options(given: &Given) -> Result<HttpOptions, WorkloadError> {
    let credentials = variable(CREDENTIALS).map(|text| Credentials::parse(&text));
    Ok(HttpOptions { credentials, given: fields(given)?, ..HttpOptions::default() })
}

/// The fields that were given.
pub(crate) fn fields(given: &Given) -> Result<GivenFields, WorkloadError> {
    let Fields { header } = given.read()?;
    GivenFields::parse(&header).map_err(|error| WorkloadError::Options(format!("{HEADER}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::HEADER;

    #[test]
    fn fields_are_read_and_shown_by_name_alone() {
        let mut given = Given::default().with(HEADER, "X-Token: secret");
        assert!(format!("{:?}", options(&given).unwrap().given).contains("X-Token"));
        given.forget_secrets();
        assert_eq!(given.texts(HEADER), ["X-Token: …"]);
        let wrong = options(&Given::default().with(HEADER, "secret")).err().unwrap().to_string();
        assert!(wrong.contains("Name: value") && !wrong.contains("secret"), "{wrong}");
    }
}
