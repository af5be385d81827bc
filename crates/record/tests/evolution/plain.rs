//! Values without what does not matter where two implementations are compared.

use serde_json::{Value as Json, json};
use weir_record::Value;

/// A value without the branches of its unions, and with all bits of its numbers.
pub(crate) fn plain(value: Value<'_>) -> Json {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    match value {
        Value::Null => Json::Null,
        Value::Boolean(value) => value.into(),
        Value::Int(value) => value.into(),
        Value::Long(value) => value.into(),
        Value::Float(value) => plain(Value::Double(value.into())),
        Value::Double(value) => json!({"number": hex(&value.to_be_bytes())}),
        Value::Bytes(bytes) | Value::Fixed(bytes) => json!({"bytes": hex(bytes)}),
        Value::String(text) | Value::Enum(text) => text.into(),
        Value::Array(array) => array.items().map(plain).collect(),
        Value::Map(map) => {
            Json::Object(map.entries().map(|(key, value)| (key.into(), plain(value))).collect())
        }
        Value::Record(record) => {
            Json::Object(record.fields().map(|(name, value)| (name.into(), plain(value))).collect())
        }
    }
}
