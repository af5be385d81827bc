//! What a broker calls what went wrong ("Error Codes").

use std::fmt;

/// An error code of Kafka; 0 is success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub i16);

macro_rules! codes {
    ($($name:ident = $code:literal, $words:literal;)*) => {
        impl ErrorCode {
            $(#[doc = $words] pub const $name: Self = Self($code);)*

            /// What it says, for those that are named here.
            fn words(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some($words),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    NONE = 0, "no error";
    OFFSET_OUT_OF_RANGE = 1, "the offset is not in the log";
    CORRUPT_MESSAGE = 2, "the records are damaged";
    UNKNOWN_TOPIC_OR_PARTITION = 3, "there is no such topic or partition";
    LEADER_NOT_AVAILABLE = 5, "the partition has no leader at the moment";
    NOT_LEADER_OR_FOLLOWER = 6, "another broker leads the partition now";
    REQUEST_TIMED_OUT = 7, "not all in-sync replicas had the records in time";
    MESSAGE_TOO_LARGE = 10, "the records are larger than the topic takes (max.message.bytes)";
    COORDINATOR_LOAD_IN_PROGRESS = 14, "the broker is starting up";
    COORDINATOR_NOT_AVAILABLE = 15, "the cluster is starting up";
    INVALID_TOPIC_EXCEPTION = 17, "the topic's name is not allowed";
    RECORD_LIST_TOO_LARGE = 18, "the records are larger than a segment of the log (segment.bytes)";
    NOT_ENOUGH_REPLICAS = 19, "fewer replicas are in sync than the topic asks for (min.insync.replicas)";
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, "fewer replicas are in sync than the topic asks for (min.insync.replicas)";
    TOPIC_AUTHORIZATION_FAILED = 29, "this user may not do that with the topic";
    CLUSTER_AUTHORIZATION_FAILED = 31, "this user may not do that in the cluster";
    INVALID_TIMESTAMP = 32, "the topic does not take records of that time";
    UNSUPPORTED_SASL_MECHANISM = 33, "the broker does not offer that way to log in";
    ILLEGAL_SASL_STATE = 34, "the broker expects no such step of a login";
    UNSUPPORTED_VERSION = 35, "the broker does not speak that version";
    TOPIC_ALREADY_EXISTS = 36, "the topic is there already";
    INVALID_PARTITIONS = 37, "the cluster allows no such number of partitions";
    INVALID_REPLICATION_FACTOR = 38, "the cluster has fewer brokers than copies are asked for";
    NOT_CONTROLLER = 41, "another broker is the controller now";
    POLICY_VIOLATION = 44, "the cluster's policy forbids that";
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, "the broker misses records of this producer";
    DUPLICATE_SEQUENCE_NUMBER = 46, "the records are there already";
    INVALID_PRODUCER_EPOCH = 47, "another producer has taken this one's place";
    UNKNOWN_PRODUCER_ID = 59, "the broker does not know this producer any more";
    SASL_AUTHENTICATION_FAILED = 58, "the broker does not take user and password";
    INVALID_RECORD = 87, "the topic does not take such a record";
}

impl ErrorCode {
    /// Whether it is success.
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// Whether the cluster is only not ready yet: the same request soon after may go through.
    pub fn is_transient(self) -> bool {
        matches!(
            self,
            Self::LEADER_NOT_AVAILABLE
                | Self::NOT_LEADER_OR_FOLLOWER
                | Self::COORDINATOR_LOAD_IN_PROGRESS
                | Self::COORDINATOR_NOT_AVAILABLE
                | Self::NOT_CONTROLLER
        )
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.words() {
            Some(words) => f.write_str(words),
            None => write!(f, "error {} of Kafka's protocol", self.0),
        }
    }
}
