//! `weir schema`: the published schemas, as `docs/` has them, packed by the build script. To make them from the types again
//! would take a program that is half a megabyte larger.

use crate::args;
use crate::exit::{Exit, Failure};
use crate::print::written;
use flate2::read::DeflateDecoder;
use std::io::{Read, Write};

/// Name and text of each, with a zero behind each.
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/schemas"));

/// Prints a schema.
pub(crate) fn schema(args: &args::Schema) -> Result<Exit, Failure> {
    let mut texts = String::new();
    DeflateDecoder::new(PACKED).read_to_string(&mut texts).expect("the build script packs text");
    let mut texts = texts.split('\0').skip_while(|name| *name != args.what);
    let text = texts.nth(1).unwrap_or_default();
    let mut out = std::io::stdout().lock();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))?;
    Ok(Exit::Passed)
}
