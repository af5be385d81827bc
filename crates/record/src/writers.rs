//! Whose records a decoder reads: the schemas of writers, by what stands in front of their records.

use crate::error::Problem;
use crate::resolve::Resolution;
use crate::schema::Schema;
use crate::writer_id::{SchemaUnavailable, WriterId};
use std::collections::HashMap;
use std::sync::Arc;

/// Schemas of writers that a decoder keeps. A topic has a handful; what is sent to exhaust memory has any number.
const KEPT: usize = 1_024;

/// Where the schemas of writers are found.
pub trait WriterSchemas: Send {
    /// The schema that is known by this. It is asked for once; what is not found is asked for again with each record, so that
    /// an answer that takes long is to be remembered.
    ///
    /// # Errors
    /// Why it cannot be had, in one line.
    fn find(&mut self, writer: WriterId) -> Result<Schema, String>;

    /// What the last error of [`Self::find`] means.
    fn lack(&self) -> SchemaUnavailable {
        SchemaUnavailable::Lasting
    }
}

/// Each writer has this schema, whatever stands in front of its records.
impl WriterSchemas for Schema {
    fn find(&mut self, _: WriterId) -> Result<Schema, String> {
        Ok(self.clone())
    }
}

/// How records of the writers that are known are read: `None` as the reader's own.
#[derive(Default)]
pub(crate) struct Writers {
    source: Option<Box<dyn WriterSchemas>>,
    known: HashMap<WriterId, Option<Arc<Resolution>>>,
    last: Option<WriterId>,
    /// How the records of the last one are read.
    pub(crate) current: Option<Arc<Resolution>>,
}

impl Writers {
    pub(crate) fn of(source: Box<dyn WriterSchemas>) -> Self {
        Self { source: Some(source), ..Self::default() }
    }

    /// Records come from a writer with this schema from now on.
    pub(crate) fn set(&mut self, writer: &Schema, reader: &Schema) {
        self.last = None;
        self.current = resolved(writer, reader);
    }

    /// Records come from this writer from now on.
    #[inline]
    pub(crate) fn select(&mut self, writer: WriterId, reader: &Schema) -> Result<(), Problem> {
        if self.last == Some(writer) {
            return Ok(());
        }
        self.look_up(writer, reader)
    }

    #[cold]
    fn look_up(&mut self, writer: WriterId, reader: &Schema) -> Result<(), Problem> {
        let resolution = match self.known.get(&writer) {
            Some(known) => known.clone(),
            None => {
                let own = writer == WriterId::Fingerprint(reader.fingerprint());
                let found = match &mut self.source {
                    _ if own => reader.clone(),
                    Some(source) => source.find(writer).map_err(|reason| Problem::Writer {
                        writer,
                        lack: source.lack(),
                        reason: reason.into(),
                    })?,
                    None => return Err(without_source(writer, reader)),
                };
                let resolution = resolved(&found, reader);
                if self.known.len() >= KEPT {
                    self.known.clear();
                }
                self.known.insert(writer, resolution.clone());
                resolution
            }
        };
        (self.last, self.current) = (Some(writer), resolution);
        Ok(())
    }
}

/// How records of a writer are read; `None` as the reader's own.
fn resolved(writer: &Schema, reader: &Schema) -> Option<Arc<Resolution>> {
    (!writer.reads_alike(reader)).then(|| Arc::new(Resolution::new(writer, reader)))
}

fn without_source(writer: WriterId, reader: &Schema) -> Problem {
    match writer {
        WriterId::Id(id) => Problem::NoRegistry(id),
        WriterId::Fingerprint(found) => Problem::Fingerprint { found, expected: reader.fingerprint() },
    }
}
