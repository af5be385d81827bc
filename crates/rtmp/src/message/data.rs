//! Data messages: metadata and its like (RTMP 1.0 section 7.1.2).
//!
//! A publisher wraps metadata in `@setDataFrame`, which asks the server to keep it and to give it to every viewer.

use super::MessageKind;
use crate::amf0::{self, Decoder, Object, Value};

/// What a publisher writes before the data that the server is to keep.
pub const SET_DATA_FRAME: &str = "@setDataFrame";

/// The name of a stream's metadata.
pub const ON_META_DATA: &str = "onMetaData";

/// The AMF 0 values of a data message. One of kind [`MessageKind::DataAmf3`] has a zero byte before them.
pub fn values(kind: MessageKind, payload: &[u8]) -> &[u8] {
    match (kind, payload) {
        (MessageKind::DataAmf3, [0, values @ ..]) => values,
        _ => payload,
    }
}

/// What a viewer is sent of what a publisher sent: all but a leading `@setDataFrame`.
pub fn for_viewers(values: &[u8]) -> &[u8] {
    let mut decoder = Decoder::new(values);
    match decoder.value() {
        Ok(value) if value.as_str() == Some(SET_DATA_FRAME) => &values[decoder.position()..],
        _ => values,
    }
}

/// Whether the values that viewers are sent are a stream's metadata.
pub fn is_metadata(for_viewers: &[u8]) -> bool {
    Decoder::new(for_viewers).value().is_ok_and(|name| name.as_str() == Some(ON_META_DATA))
}

/// The properties of a stream's metadata; `None` when the values are not metadata.
pub fn metadata(for_viewers: &[u8]) -> Result<Option<Object<'_>>, amf0::Error> {
    let mut values = Decoder::new(for_viewers);
    if values.value()?.as_str() != Some(ON_META_DATA) {
        return Ok(None);
    }
    Ok(match values.value()? {
        Value::Object(object) | Value::EcmaArray(object) | Value::TypedObject { object, .. } => Some(object),
        _ => None,
    })
}

/// Appends the payload with which a publisher sets a stream's metadata.
pub fn set_metadata(properties: Object<'_>, out: &mut Vec<u8>) {
    amf0::encode(&SET_DATA_FRAME.into(), out);
    append_metadata(properties, out);
}

/// Appends the payload by which viewers are told of a stream's metadata.
pub fn append_metadata(properties: Object<'_>, out: &mut Vec<u8>) {
    amf0::encode(&ON_META_DATA.into(), out);
    amf0::encode(&Value::EcmaArray(properties), out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn viewers_are_sent_the_metadata_without_its_wrapper() {
        let properties = Object::new().with("width", 1280.0);
        let mut payload = Vec::new();
        set_metadata(properties.clone(), &mut payload);
        assert!(!is_metadata(&payload));
        let sent = for_viewers(&payload);
        assert!(is_metadata(sent));
        assert_eq!(metadata(sent), Ok(Some(properties)));
        assert_eq!(for_viewers(sent), sent);
    }

    #[test]
    fn an_amf3_data_message_has_a_byte_before_its_values() {
        assert_eq!(values(MessageKind::DataAmf3, &[0, 2]), [2]);
        assert_eq!(values(MessageKind::DataAmf0, &[0, 2]), [0, 2]);
    }
}
