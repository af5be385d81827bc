//! Values that are one text in a file: written as the text, parsed when they are read, and a string in the JSON Schema.

/// Gives a type that has [`FromStr`](std::str::FromStr) its serialisation: by the text of `$text`. With examples it gets a schema.
macro_rules! as_text {
    ($name:ident, $text:expr) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let text: fn(&Self) -> _ = $text;
                serializer.collect_str(&text(self))
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <String as serde::Deserialize>::deserialize(deserializer)?
                    .parse()
                    .map_err(serde::de::Error::custom)
            }
        }
    };
    ($name:ident, $text:expr, $examples:expr) => {
        as_text!($name, $text);

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "examples": $examples })
            }
        }
    };
}

pub(crate) use as_text;
