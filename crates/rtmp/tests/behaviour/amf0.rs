//! Values that are written and read again, and bytes that are no values.

use std::borrow::Cow;

use proptest::collection::vec;
use proptest::prelude::*;
use weir_rtmp::amf0::{Decoder, Error, MAX_DEPTH, MAX_VALUES, Object, Value, decode, encode, encode_all};

fn text() -> BoxedStrategy<Cow<'static, str>> {
    ".{0,12}".prop_map(Cow::Owned).boxed()
}

fn value() -> impl Strategy<Value = Value<'static>> {
    let leaf = prop_oneof![
        any::<i32>().prop_map(|number| Value::Number(f64::from(number) / 8.0)),
        any::<bool>().prop_map(Value::Boolean),
        text().prop_map(Value::String),
        Just(Value::String("long".repeat(20_000).into())),
        Just(Value::Null),
        Just(Value::Undefined),
        Just(Value::Unsupported),
        any::<u16>().prop_map(Value::Reference),
        (any::<i32>(), any::<i16>()).prop_map(|(milliseconds, time_zone)| Value::Date {
            milliseconds: f64::from(milliseconds),
            time_zone
        }),
        text().prop_map(Value::XmlDocument),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        let object = vec((text(), inner.clone()), 0..5).prop_map(Object).boxed();
        prop_oneof![
            object.clone().prop_map(Value::Object),
            object.clone().prop_map(Value::EcmaArray),
            vec(inner, 0..5).prop_map(Value::StrictArray),
            (text(), object).prop_map(|(class, object)| Value::TypedObject { class, object }),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_encoded_is_what_is_decoded(values in vec(value(), 0..4)) {
        let mut bytes = Vec::new();
        encode_all(&values, &mut bytes);
        prop_assert_eq!(decode(&bytes), Ok(values));
    }

    #[test]
    fn values_cut_short_are_an_error(value in value(), cut in any::<prop::sample::Index>()) {
        let mut bytes = Vec::new();
        encode(&value, &mut bytes);
        let length = cut.index(bytes.len());
        prop_assert_eq!(Decoder::new(&bytes[..length]).value(), Err(Error::Truncated { at: length }));
    }

    #[test]
    fn any_bytes_are_values_or_an_error(bytes in vec(prop_oneof![0..18_u8, any::<u8>()], 0..200)) {
        if let Ok(values) = decode(&bytes) {
            let mut again = Vec::new();
            encode_all(&values, &mut again);
            // Not compared as values: a number may be NaN.
            prop_assert_eq!(decode(&again).map(|again| format!("{again:?}")), Ok(format!("{values:?}")));
        }
    }
}

#[test]
fn values_are_written_as_the_specification_shows() {
    let mut bytes = Vec::new();
    encode(&Object::new().with("app", "x").with("n", 1.0).into(), &mut bytes);
    assert_eq!(bytes, b"\x03\0\x03app\x02\0\x01x\0\x01n\0\x3F\xF0\0\0\0\0\0\0\0\0\x09");
}

#[test]
fn strings_are_borrowed() {
    let bytes = b"\x02\0\x04live";
    let Ok(Value::String(Cow::Borrowed(text))) = Decoder::new(bytes).value() else { panic!("not borrowed") };
    assert!(bytes.as_ptr_range().contains(&text.as_ptr()));
}

#[test]
fn text_that_is_not_utf_8_is_still_read() {
    assert_eq!(decode(b"\x02\0\x02\xCF\xD6").unwrap()[0].as_str(), Some("\u{FFFD}\u{FFFD}"));
}

#[test]
fn an_arrays_count_is_not_trusted() {
    assert_eq!(decode(b"\x08\xFF\xFF\xFF\xFF\0\0\x09"), Ok(vec![Value::EcmaArray(Object::new())]));
    assert_eq!(decode(b"\x0A\xFF\xFF\xFF\xFF\x05"), Err(Error::Truncated { at: 6 }));
}

#[test]
fn depth_is_limited() {
    let nested = |depth: usize| [b"\x0A\0\0\0\x01".repeat(depth), vec![5]].concat();
    assert!(decode(&nested(MAX_DEPTH)).is_ok());
    assert_eq!(decode(&nested(MAX_DEPTH + 1)), Err(Error::TooDeep { at: (MAX_DEPTH + 1) * 5 }));
}

#[test]
fn the_number_of_values_is_limited() {
    assert!(decode(&[5; MAX_VALUES]).is_ok());
    assert_eq!(decode(&[5; MAX_VALUES + 1]), Err(Error::TooManyValues { at: MAX_VALUES }));
}

#[test]
fn a_marker_that_nobody_sends_is_an_error() {
    for marker in [0x04, 0x09, 0x0E, 0x11, 0xFF] {
        assert_eq!(decode(&[5, marker]), Err(Error::Marker { at: 1, marker }));
    }
}
