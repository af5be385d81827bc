//! Values that a scenario has as texts: parsed when they are read, and kept as they were written.

use crate::scenario::as_text::as_text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use weir_metrics::{BitRate, parse_bytes, parse_duration};

/// One text, or a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct OneOrMany(pub Vec<String>);

impl OneOrMany {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl JsonSchema for OneOrMany {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "OneOrMany".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] })
    }
}

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = OneOrMany;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a URL or a list of URLs")
            }

            fn visit_str<E>(self, text: &str) -> Result<OneOrMany, E> {
                Ok(OneOrMany(vec![text.to_owned()]))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<OneOrMany, A::Error> {
                let mut urls = Vec::new();
                while let Some(url) = list.next_element()? {
                    urls.push(url);
                }
                Ok(OneOrMany(urls))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// Declares a value that is written as a text: parsed when read, kept as it was written.
macro_rules! written {
    ($(#[doc = $doc:literal])* $name:ident($inner:ty), $parse:expr) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            text: String,
            value: $inner,
        }

        impl $name {
            /// The value.
            pub fn get(&self) -> $inner {
                self.value
            }
        }

        impl std::str::FromStr for $name {
            type Err = weir_metrics::ParseUnitError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let parse: fn(&str) -> Result<$inner, weir_metrics::ParseUnitError> = $parse;
                Ok(Self { value: parse(text)?, text: text.to_owned() })
            }
        }

        as_text!($name, |it| it.text.clone());
    };
}

written! {
    /// A span of time as it was written: `10m`.
    Span(Duration), parse_duration
}
written! {
    /// A bit rate as it was written: `500kbps`.
    BitRateText(BitRate), |text| text.parse()
}

written! {
    /// A number of bytes as it was written: `512KiB`.
    SizeText(u64), parse_bytes
}

impl SizeText {
    /// This number of bytes.
    pub fn from_bytes(value: u64) -> Self {
        Self { text: format!("{value}B"), value }
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl From<Duration> for Span {
    fn from(value: Duration) -> Self {
        Self { text: format!("{}s", value.as_secs_f64()), value }
    }
}

impl Default for Span {
    fn default() -> Self {
        Duration::ZERO.into()
    }
}
