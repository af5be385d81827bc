//! A link in memory: what came is read once, what is written is taken from it.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// One end, shared by the library and by what feeds it.
#[derive(Clone, Debug)]
pub(super) struct Pipe(Rc<RefCell<Buffers>>);

#[derive(Debug)]
struct Buffers {
    /// What came, and how much of it was read.
    input: Vec<u8>,
    read: usize,
    output: Vec<u8>,
    /// Bytes of output with which it takes no more.
    most_output: usize,
}

impl Default for Pipe {
    fn default() -> Self {
        Self::holding(usize::MAX)
    }
}

impl Pipe {
    /// One that takes no more while this many bytes wait to be taken out.
    pub(super) fn holding(most_output: usize) -> Self {
        let (input, output) = (Vec::new(), Vec::new());
        Self(Rc::new(RefCell::new(Buffers { input, read: 0, output, most_output })))
    }

    /// Whether bytes that came were not read.
    pub(super) fn has_input(&self) -> bool {
        !self.0.borrow().input.is_empty()
    }

    pub(super) fn feed(&self, bytes: &[u8]) {
        self.0.borrow_mut().input.extend_from_slice(bytes);
    }

    pub(super) fn take_output(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.borrow_mut().output)
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut buffers = self.0.borrow_mut();
        let waiting = &buffers.input[buffers.read..];
        if waiting.is_empty() {
            return Poll::Pending;
        }
        let length = waiting.len().min(buffer.remaining());
        buffer.put_slice(&waiting[..length]);
        buffers.read += length;
        if buffers.read == buffers.input.len() {
            // Thousands of connections wait between two reads: none keeps a buffer for that.
            (buffers.input, buffers.read) = (Vec::new(), 0);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut buffers = self.0.borrow_mut();
        if buffers.output.len() >= buffers.most_output {
            return Poll::Pending;
        }
        buffers.output.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
