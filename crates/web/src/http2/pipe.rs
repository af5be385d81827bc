//! A link in memory: what came is read once, what is written is taken from it.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// One end, shared by the library and by what feeds it.
#[derive(Clone, Debug, Default)]
pub(super) struct Pipe(Rc<RefCell<Buffers>>);

#[derive(Debug, Default)]
struct Buffers {
    /// What came, and how much of it was read.
    input: Vec<u8>,
    read: usize,
    output: Vec<u8>,
}

impl Pipe {
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
        self.0.borrow_mut().output.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
