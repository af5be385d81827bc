//! Until when a server is waited for: whoever asks it something says so, and the link ends when that moment is over. A peer that sends a
//! byte at a time does not move it. It knows no database and no protocol.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::time::Sleep;

/// A moment that both sides of a link share: the one that asks, and the one that reads what is answered.
#[derive(Clone, Debug, Default)]
pub(super) struct Deadline(Arc<Mutex<Option<End>>>);

#[derive(Clone, Debug)]
struct End {
    at: Instant,
    /// What a person is told when it is over.
    words: Arc<str>,
}

impl Deadline {
    fn end(&self) -> MutexGuard<'_, Option<End>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is asked from now on has this long, all of it together.
    pub(super) fn allow(&self, time: Duration, words: impl Into<Arc<str>>) {
        *self.end() = Some(End { at: Instant::now() + time, words: words.into() });
    }

    /// What is asked from now on may take any time.
    pub(super) fn lift(&self) {
        *self.end() = None;
    }

    /// What a person is told, if the time is over.
    pub(super) fn expired(&self) -> Option<Arc<str>> {
        self.end().as_ref().filter(|end| end.at <= Instant::now()).map(|end| end.words.clone())
    }
}

/// Wakes the task that reads a link when its deadline is over.
#[derive(Debug, Default)]
pub(super) struct Alarm {
    deadline: Deadline,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    pub(super) fn new(deadline: Deadline) -> Self {
        Self { deadline, sleep: None }
    }

    /// Ready with the error that ends the link. One who sets a deadline polls the link next: a new one is noticed here.
    pub(super) fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let Some(End { at, words }) = self.deadline.end().clone() else { return Poll::Pending };
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at.into())));
        if sleep.deadline() != at.into() {
            sleep.as_mut().reset(at.into());
        }
        sleep.as_mut().poll(cx).map(|()| io::Error::new(io::ErrorKind::TimedOut, &*words))
    }
}
