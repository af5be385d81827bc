//! YAML as scenarios have it: without tags of applications (`!include`, `!secret`), which would mean nothing here and be left out without
//! a word.

use serde::de::DeserializeOwned;
use serde_saphyr::Error;

/// Reads a document.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let options = serde_saphyr::options! { reject_unsupported_tags: true };
    serde_saphyr::from_str_with_options(text, options)
}
