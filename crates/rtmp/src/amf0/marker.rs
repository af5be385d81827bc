//! The byte before each value (AMF 0 section 2.1).

pub(super) const NUMBER: u8 = 0x00;
pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const STRING: u8 = 0x02;
pub(super) const OBJECT: u8 = 0x03;
pub(super) const NULL: u8 = 0x05;
pub(super) const UNDEFINED: u8 = 0x06;
pub(super) const REFERENCE: u8 = 0x07;
pub(super) const ECMA_ARRAY: u8 = 0x08;
pub(super) const OBJECT_END: u8 = 0x09;
pub(super) const STRICT_ARRAY: u8 = 0x0A;
pub(super) const DATE: u8 = 0x0B;
pub(super) const LONG_STRING: u8 = 0x0C;
pub(super) const UNSUPPORTED: u8 = 0x0D;
pub(super) const XML_DOCUMENT: u8 = 0x0F;
pub(super) const TYPED_OBJECT: u8 = 0x10;
