//! Object container files ("Object Container Files"): header, blocks, markers.

use super::codec::Codec;
use super::read::Bytes;
use super::{CONTAINER, write};
use crate::error::{Fault, Problem};

/// What stands in front.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header<'p> {
    pub(crate) schema: &'p [u8],
    pub(crate) codec: Codec,
    pub(crate) marker: [u8; 16],
}

/// A block, as it lies in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) count: usize,
    /// Where its bytes begin.
    pub(crate) at: usize,
    /// Where they end.
    pub(crate) end: usize,
}

impl<'p> Header<'p> {
    pub(crate) fn read(bytes: &mut Bytes<'p>) -> Result<Self, Fault> {
        match bytes.array("the header") {
            Ok(magic) if *magic == CONTAINER => {}
            _ => return bytes.fault(Problem::Magic("an object container file")),
        }
        let (mut schema, mut codec) = (None, Codec::Null);
        loop {
            let (count, end) = bytes.block(2)?;
            if count == 0 {
                break;
            }
            for _ in 0..count {
                let key = bytes.sized("the header")?;
                let value = bytes.sized("the header")?;
                match key {
                    b"avro.schema" => schema = Some(value),
                    b"avro.codec" => {
                        let Some(known) = Codec::ALL.into_iter().find(|it| it.name().as_bytes() == value)
                        else {
                            let name: String = String::from_utf8_lossy(value).chars().take(40).collect();
                            return bytes.fault(Problem::Codec(name.into()));
                        };
                        codec = known;
                    }
                    _ => {}
                }
            }
            bytes.close_block(end)?;
        }
        let marker = *bytes.array("the header")?;
        let Some(schema) = schema else { return bytes.fault(Problem::Header("avro.schema")) };
        Ok(Self { schema, codec, marker })
    }

    pub(crate) fn write(schema: &str, codec: Codec, marker: &[u8; 16], out: &mut Vec<u8>) {
        out.extend_from_slice(&CONTAINER);
        write::long(2, out);
        write::sized(b"avro.codec", out);
        write::sized(codec.name().as_bytes(), out);
        write::sized(b"avro.schema", out);
        write::sized(schema.as_bytes(), out);
        out.push(0);
        out.extend_from_slice(marker);
    }
}

impl Block {
    /// Reads count and length of the next block, and holds its marker against that of the header.
    pub(crate) fn read(bytes: &mut Bytes<'_>, marker: &[u8; 16]) -> Result<Self, Fault> {
        let begin = bytes.at();
        let count = bytes.long("the count of a block")?;
        let left = bytes.left();
        let Ok(items) = usize::try_from(count) else {
            return Err(Fault::new(Problem::Count { count, left }, begin));
        };
        let data = bytes.sized("a block")?;
        let end = bytes.at();
        let found: &[u8; 16] = bytes.array("the marker of a block")?;
        if found != marker {
            return Err(Fault::new(Problem::SyncMarker, end));
        }
        Ok(Self { count: items, at: end - data.len(), end })
    }
}
