//! The name of an inbox, by which subscriptions, wills and connections know it.

/// Names what waits for one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct InboxKey(pub(super) usize);
