//! Puts messages together again, as much of them as their reader wants to see.
//!
//! A message that arrives in one piece is handed on where it lies. Of any other, the part that
//! is wanted is copied: a client keeps the head of a video frame, a server all of it. Messages inside an aggregate come
//! out like any others.

use crate::chunk::{Event, MessageHeader};
use crate::message::MessageKind;
use crate::message::aggregate::{self, Splitter};

/// A message that cannot be put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssemblyError {
    /// An aggregate message does not add up.
    #[error(transparent)]
    Aggregate(#[from] aggregate::Error),
    /// An aggregate message began on one chunk stream while another was under way on another. No peer is known to
    /// do so.
    #[error("two aggregate messages at once, on chunk streams {first} and {second}")]
    TwoAggregates {
        /// The chunk stream of the one under way.
        first: u32,
        /// The chunk stream of the other.
        second: u32,
    },
    /// A message that has to be kept whole is longer than that allows.
    #[error("a {kind} message of {length} bytes, allowed are {limit}")]
    TooLong {
        /// The message's kind.
        kind: MessageKind,
        /// Its length.
        length: u32,
        /// The longest allowed.
        limit: u32,
    },
    /// The messages that are under way on all chunk streams come to more than is kept of them.
    #[error("unfinished messages of {length} bytes on all chunk streams together, allowed are {limit}")]
    TooMuch {
        /// Their length, as announced.
        length: usize,
        /// What is allowed.
        limit: usize,
    },
}

/// Capacity that a buffer keeps from one message to the next: keyframes of most streams fit.
const KEPT_CAPACITY: usize = 256 * 1024;

/// How much of a message to keep, decided when it starts.
pub(crate) trait Appetite {
    fn wanted(&self, header: &MessageHeader) -> Result<u32, AssemblyError>;

    /// Bytes that are kept of messages under way, all together.
    fn most_held(&self) -> usize {
        usize::MAX
    }
}

/// What is under way between two inputs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Assembly {
    partials: Vec<Partial>,
    splitter: Option<Splitter>,
    /// Wanted bytes of all messages under way. They count when they are announced, so that it does not matter in which
    /// pieces they come.
    held: usize,
}

/// The kept part of a message under way. Its buffer stays when the message is over.
#[derive(Clone, Debug)]
struct Partial {
    header: MessageHeader,
    wanted: usize,
    kept: Vec<u8>,
    under_way: bool,
}

/// A message under way all of whose wanted bytes so far lie in the present input, in one piece.
struct InPlace<'a> {
    header: MessageHeader,
    wanted: usize,
    bytes: &'a [u8],
}

impl Assembly {
    /// Begins to read an input. [`Pass::finish`] has to be called at its end.
    pub(crate) fn pass<'p, 'a, A: Appetite>(&'p mut self, appetite: &'p A) -> Pass<'p, 'a, A> {
        Pass { assembly: self, appetite, in_place: None }
    }
}

/// One input on its way through an [`Assembly`].
pub(crate) struct Pass<'p, 'a, A> {
    assembly: &'p mut Assembly,
    appetite: &'p A,
    in_place: Option<InPlace<'a>>,
}

impl<'a, A: Appetite> Pass<'_, 'a, A> {
    /// Takes the next event of the chunk stream, and calls `on` with each message that is complete: its header and
    /// its first bytes, as many as were wanted.
    #[inline]
    pub(crate) fn take<E: From<AssemblyError>>(
        &mut self,
        event: Event<'a>,
        on: &mut impl FnMut(&MessageHeader, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        match event {
            Event::Start(header) if header.kind == MessageKind::Aggregate => self.begin_aggregate(header)?,
            _ if self.assembly.splitter.is_some() => self.take_beside_aggregate(event, on)?,
            event => self.take_plain(event, on)?,
        }
        Ok(())
    }

    /// Keeps what the input holds of messages that are still under way.
    pub(crate) fn finish(mut self) {
        self.spill();
    }

    #[inline]
    fn take_plain<E: From<AssemblyError>>(
        &mut self,
        event: Event<'a>,
        on: &mut impl FnMut(&MessageHeader, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        match event {
            Event::Start(header) => {
                self.spill();
                let wanted = self.appetite.wanted(&header)? as usize;
                self.assembly.held += wanted;
                let (length, limit) = (self.assembly.held, self.appetite.most_held());
                if length > limit {
                    return Err(AssemblyError::TooMuch { length, limit }.into());
                }
                self.in_place = Some(InPlace { header, wanted, bytes: &[] });
            }
            Event::Payload { chunk_stream_id, bytes } => match &mut self.in_place {
                Some(message) if message.header.chunk_stream_id == chunk_stream_id => {
                    if message.bytes.is_empty() {
                        message.bytes = &bytes[..bytes.len().min(message.wanted)];
                    } else if message.bytes.len() < message.wanted {
                        self.spill();
                        self.append(chunk_stream_id, bytes);
                    }
                }
                _ => self.append(chunk_stream_id, bytes),
            },
            Event::End { chunk_stream_id } => match &self.in_place {
                Some(message) if message.header.chunk_stream_id == chunk_stream_id => {
                    let InPlace { header, bytes, wanted } = *message;
                    self.in_place = None;
                    self.assembly.held -= wanted;
                    on(&header, bytes)?;
                }
                _ => {
                    if let Some(partial) = self.partial(chunk_stream_id) {
                        partial.under_way = false;
                        on(&partial.header, &partial.kept)?;
                        let wanted = partial.release();
                        self.assembly.held -= wanted;
                    }
                }
            },
            Event::Abort { chunk_stream_id } => {
                let in_place =
                    self.in_place.take_if(|message| message.header.chunk_stream_id == chunk_stream_id);
                let partial = self.partial(chunk_stream_id).map(Partial::release);
                self.assembly.held -= in_place.map_or(0, |message| message.wanted) + partial.unwrap_or(0);
            }
        }
        Ok(())
    }

    fn begin_aggregate(&mut self, header: MessageHeader) -> Result<(), AssemblyError> {
        if let Some(splitter) = &self.assembly.splitter {
            return Err(AssemblyError::TwoAggregates {
                first: splitter.aggregate().chunk_stream_id,
                second: header.chunk_stream_id,
            });
        }
        self.assembly.splitter = Some(Splitter::new(header));
        Ok(())
    }

    /// An event while an aggregate is under way, of the aggregate or of another chunk stream.
    #[cold]
    fn take_beside_aggregate<E: From<AssemblyError>>(
        &mut self,
        event: Event<'a>,
        on: &mut impl FnMut(&MessageHeader, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(mut splitter) = self.assembly.splitter.take() else { return Ok(()) };
        let aggregate = splitter.aggregate().chunk_stream_id;
        match event {
            Event::Payload { chunk_stream_id, mut bytes } if chunk_stream_id == aggregate => {
                while let Some(inside) = splitter.next(&mut bytes).map_err(AssemblyError::from)? {
                    self.take_plain(inside, on)?;
                }
            }
            Event::End { chunk_stream_id } if chunk_stream_id == aggregate => {
                splitter.finish().map_err(AssemblyError::from)?;
                return Ok(());
            }
            Event::Abort { chunk_stream_id } if chunk_stream_id == aggregate => {
                return self.take_plain(event, on);
            }
            event => self.take_plain(event, on)?,
        }
        self.assembly.splitter = Some(splitter);
        Ok(())
    }

    /// Copies what has been read in place, because its bytes do not continue or are about to go.
    fn spill(&mut self) {
        let Some(InPlace { header, wanted, bytes }) = self.in_place.take() else { return };
        let partials = &mut self.assembly.partials;
        let free = partials.iter().position(|partial| !partial.under_way).unwrap_or_else(|| {
            partials.push(Partial { header, wanted, kept: Vec::new(), under_way: true });
            partials.len() - 1
        });
        let partial = &mut partials[free];
        partial.header = header;
        partial.wanted = wanted;
        partial.under_way = true;
        partial.kept.clear();
        partial.kept.extend_from_slice(bytes);
    }

    fn append(&mut self, chunk_stream_id: u32, bytes: &[u8]) {
        if let Some(partial) = self.partial(chunk_stream_id) {
            let missing = partial.wanted - partial.kept.len();
            partial.kept.extend_from_slice(&bytes[..bytes.len().min(missing)]);
        }
    }

    fn partial(&mut self, chunk_stream_id: u32) -> Option<&mut Partial> {
        let mut partials = self.assembly.partials.iter_mut();
        partials.find(|partial| partial.under_way && partial.header.chunk_stream_id == chunk_stream_id)
    }
}

impl Partial {
    /// The message is over: gives up what a long one needed, and says how much of it was wanted.
    fn release(&mut self) -> usize {
        self.under_way = false;
        self.kept.clear();
        self.kept.shrink_to(KEPT_CAPACITY);
        self.wanted
    }
}
