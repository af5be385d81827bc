//! What can go wrong with a store, by what to do about it.

/// A store that did not save.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It cannot be reached, or cannot take anything now: the same rows may go in later.
    #[error("{0}")]
    Unavailable(String),
    /// One of the rows is not to its taste; the others may go in without it.
    #[error("{0}")]
    Refused(String),
    /// It asks for a password and was given none, or a wrong one: waiting does not help.
    #[error("{0}")]
    Locked(String),
    /// It can never take these rows.
    #[error("{0}")]
    Unfit(String),
}
