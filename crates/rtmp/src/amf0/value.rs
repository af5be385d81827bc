//! One AMF 0 value.

use std::borrow::Cow;

/// A value (AMF 0 section 2). Text that is not UTF-8 is decoded with replacement characters, so that a server that
/// describes its errors in another encoding is still understood.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// A double (section 2.2).
    Number(f64),
    /// A truth value (section 2.3).
    Boolean(bool),
    /// A string, short or long (sections 2.4 and 2.14).
    String(Cow<'a, str>),
    /// Named properties (section 2.5).
    Object(Object<'a>),
    /// Null (section 2.7).
    Null,
    /// Undefined (section 2.8).
    Undefined,
    /// The number of an object earlier in the message (section 2.9).
    Reference(u16),
    /// Named properties that were an array (section 2.10).
    EcmaArray(Object<'a>),
    /// Values in order (section 2.12).
    StrictArray(Vec<Value<'a>>),
    /// A point in time (section 2.13).
    Date {
        /// Since 1970-01-01 UTC.
        milliseconds: f64,
        /// Reserved; zero in what weir writes.
        time_zone: i16,
    },
    /// What the sender could not express (section 2.15).
    Unsupported,
    /// An XML document as text (section 2.17).
    XmlDocument(Cow<'a, str>),
    /// Named properties of a named class (section 2.18).
    TypedObject {
        /// The class.
        class: Cow<'a, str>,
        /// Its properties.
        object: Object<'a>,
    },
}

impl<'a> Value<'a> {
    /// The number, if it is one.
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The text, if it is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The properties, if it has any: of an object, a typed object or an ECMA array.
    pub fn as_object(&self) -> Option<&Object<'a>> {
        match self {
            Self::Object(object) | Self::EcmaArray(object) | Self::TypedObject { object, .. } => Some(object),
            _ => None,
        }
    }

    /// A property, if it has that one.
    pub fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.as_object()?.get(name)
    }
}

impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for Value<'_> {
    fn from(boolean: bool) -> Self {
        Self::Boolean(boolean)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::String(Cow::Borrowed(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::String(Cow::Owned(text))
    }
}

impl<'a> From<Object<'a>> for Value<'a> {
    fn from(object: Object<'a>) -> Self {
        Self::Object(object)
    }
}

/// Named properties in the order they were written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object<'a>(pub Vec<(Cow<'a, str>, Value<'a>)>);

impl<'a> Object<'a> {
    /// No properties yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same object with one property more.
    #[must_use]
    pub fn with(mut self, name: &'a str, value: impl Into<Value<'a>>) -> Self {
        self.0.push((Cow::Borrowed(name), value.into()));
        self
    }

    /// The first property of that name.
    pub fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }
}
