//! What can go wrong with a store: in what its URL says, and while it saves, by what to do about it.

use weir_setting::CACERT;

/// A store that did not save.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It cannot be reached, or cannot take anything now: the same rows may go in later.
    #[error("{0}")]
    Unavailable(String),
    /// One of the rows is not to its taste; the others may go in without it.
    #[error("{0}")]
    Refused(String),
    /// It has no such role or database, or asks for a password and was given none, or a wrong one: waiting does not help.
    #[error("{0}")]
    AccessDenied(String),
    /// It can never take these rows.
    #[error("{0}")]
    Unfit(String),
}

/// A text that names no database, or not how to reach it. Does not show it: there may be a password in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseError {
    /// No URL of a database.
    #[error("this is no database; write postgres://user@host:port/database")]
    Unknown,
    /// A URL of ClickHouse that has more than user, password, host, port and database.
    #[error(
        "a place in ClickHouse has no options but sslmode=disable (no TLS); write clickhouse://user@host:port/database, or clickhouses:// for TLS, with \
         {} unless the system trusts the certificate",
        CACERT.to("FILE")
    )]
    Options,
    /// An `sslmode` that there is not.
    #[error("there is no such sslmode; write disable, prefer, require, verify-ca or verify-full")]
    Mode,
    /// A certificate that is named without its key, or the reverse.
    #[error("sslcert and sslkey belong together; name both files")]
    Identity,
    /// Certificates that cannot be read: those of `sslrootcert`, or one's own.
    #[error("{names}: {reason}", names = if *.identity { "sslrootcert, sslcert or sslkey" } else { "sslrootcert" })]
    Certificates {
        /// Whether there is one of one's own among them.
        identity: bool,
        /// What is wrong.
        reason: String,
    },
}

/// A text that names no cluster of Kafka. Does not show it: there may be a password in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClusterError {
    /// No URL of a cluster.
    #[error(
        "this is no cluster of Kafka; write kafka://host:9092/topic, kafka://one:9092,two:9092/topic, or by TLS and with a \
         user kafkas://user@host:9093/topic"
    )]
    Unknown,
    /// A topic that there cannot be.
    #[error("this is no topic; its name has letters, digits, '.', '_' and '-', 244 at most")]
    Topic,
    /// A URL with more than user, password, brokers and topic.
    #[error(
        "a cluster of Kafka has no options but sslmode=disable (no TLS); write kafka://user@host:9092/topic, or kafkas:// for TLS, with {} unless \
         the system trusts the certificate",
        CACERT.to("FILE")
    )]
    Options,
    /// A password of nobody.
    #[error("a password without a user; write kafkas://user@host:9093/topic")]
    User,
    /// A user or a password that no login can carry.
    #[error("user and password are UTF-8 without zero bytes; write % of a URL as %25")]
    Credentials,
}
