//! The thread that decodes: a batch is filled while the one before it is saved.

use crate::batch::Batch;
use crate::counts::Counts;
use crate::decode::{Decode, DecodeFailure};
use crate::exchange::Filling;
use crate::inbound::{InboundMessage, ReadBuffer};
use crate::inbox::{Inbox, InboxItem};
use crate::receive::SaverMessage;
use crate::retry::{BACK_OFF, pause};
use crate::rows::Rows;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use weir_setting::MAX_MESSAGE;
use weir_shard::{MessageSender, clock};

/// Bytes of payload from which on a batch is saved, however few records they are.
const BATCH_BYTES: usize = 8 << 20;

/// How batches are bounded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Records of a batch.
    pub(crate) batch: usize,
    /// How long the first record of a batch waits for others.
    pub(crate) linger: Duration,
    /// Records after which there are enough; `None` for never.
    pub(crate) count: Option<u64>,
    /// Bytes of a payload that are taken.
    pub(crate) max_message: usize,
}

impl Bounds {
    /// How long nothing may come before a batch is saved that is not full. A broker that has as many messages in flight
    /// as it may sends no more until some are acknowledged, and does not say so.
    fn quiet(&self) -> Duration {
        self.linger / 10
    }
}

/// What the thread works with.
pub(crate) struct Gatherer<'a> {
    pub(crate) decode: &'a mut Decode,
    pub(crate) bounds: Bounds,
    pub(crate) filling: Filling,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) message_sender: MessageSender<SaverMessage>,
    pub(crate) counts: Arc<Counts>,
    /// Whether all is to end: what cannot be read then is not waited for.
    pub(crate) stop: Arc<AtomicBool>,
    /// Takes one line that a person should read.
    pub(crate) say: &'a (dyn Fn(&str) + Sync),
}

/// How far a batch was filled.
#[derive(Debug)]
enum BatchEnd {
    /// As far as it is to be; there may be another.
    Enough,
    /// Nothing will come any more.
    All,
    /// Up to a message that cannot be read: now, or by this reader.
    Upto(DecodeFailure),
}

/// What is waited for, so that a message can be read.
#[derive(Debug)]
struct RequiredWait {
    wait: Duration,
    words: String,
}

/// The buffer that is being opened, and the next message in it.
type Open = Option<(Arc<ReadBuffer>, usize)>;

impl Gatherer<'_> {
    /// Works until the inbox is closed and empty, there is enough, the saver has ended, or a message can never be read here.
    ///
    /// # Errors
    /// Why not, in one line.
    pub(crate) fn run(mut self) -> Result<(), String> {
        let mut open = None;
        let mut awaited = None;
        while let Some((mut batch, most)) = self.begin() {
            let gathered = self.gather(&mut batch, most, &mut open);
            let is_empty = batch.is_empty();
            if is_empty {
                self.filling.keep(batch);
            } else if self.filling.hand_over(batch).is_err() {
                return Ok(());
            }
            let (failure, is_over) = match gathered {
                BatchEnd::All => (None, true),
                BatchEnd::Enough => (None, false),
                BatchEnd::Upto(failure) => (Some(failure), false),
            };
            if (failure.is_none() || !is_empty) && awaited.take().is_some() {
                (self.say)("schemas are there again: saving goes on");
            }
            match failure {
                None if is_over => return Ok(()),
                None => {}
                Some(DecodeFailure::Away(ref words)) if self.wait(words, &mut awaited) => {}
                Some(DecodeFailure::Away(_)) => return Ok(()),
                Some(failure) => return Err(failure.words()),
            }
        }
        Ok(())
    }

    /// Waits for what a message needs to be read; what came before it is being saved meanwhile. `false` if it is time to stop.
    fn wait(&self, words: &str, awaited: &mut Option<RequiredWait>) -> bool {
        if awaited.as_ref().is_none_or(|it| it.words != words) {
            (self.say)(&format!("{words}; nothing is acknowledged until it is there"));
        }
        let wait = awaited.as_ref().map_or(BACK_OFF.0, |it| (it.wait * 2).min(BACK_OFF.1));
        *awaited = Some(RequiredWait { wait, words: words.to_owned() });
        pause(wait, &self.stop)
    }

    /// An empty batch, and how many records it may have. `None`: no more are wanted.
    fn begin(&mut self) -> Option<(Batch, usize)> {
        loop {
            // What is being saved may be all that is asked for, or may have been there before.
            let (batch, away) = self.filling.take_empty()?;
            let most = self.counts.left(self.bounds.count).saturating_sub(away);
            if most > 0 {
                return Some((batch, most.min(self.bounds.batch as u64) as usize));
            }
            self.filling.keep(batch);
            if self.filling.wait().is_err() {
                return None;
            }
        }
    }

    /// Fills a batch.
    fn gather(&mut self, batch: &mut Batch, most: usize, open: &mut Open) -> BatchEnd {
        let mut until = None;
        loop {
            if let Some((buffer, next)) = open {
                batch.open(buffer);
                let began = Instant::now();
                self.counts.decodings.note(clock::now());
                let mut failed = None;
                while *next < buffer.messages.len() && batch.records() < most && batch.bytes < BATCH_BYTES {
                    let added = batch.add(*next, |message, buffer, rows| {
                        decode(self.decode, self.bounds.max_message, message, buffer, rows)
                    });
                    failed = added.err();
                    if failed.is_some() {
                        break;
                    }
                    *next += 1;
                }
                self.counts.decodings.note(clock::now());
                Counts::add(&self.counts.decode_nanos, began.elapsed().as_nanos() as u64);
                if let Some(failure) = failed {
                    return BatchEnd::Upto(failure);
                }
                if *next < buffer.messages.len() {
                    return BatchEnd::Enough;
                }
                *open = None;
                if batch.records() >= most || batch.bytes >= BATCH_BYTES {
                    return BatchEnd::Enough;
                }
            }
            let deadline = (!batch.is_empty()).then(|| {
                let now = Instant::now();
                (*until.get_or_insert(now + self.bounds.linger)).min(now + self.bounds.quiet())
            });
            match self.inbox.take(deadline) {
                InboxItem::ReadBuffer { buffer, room } => {
                    if room {
                        self.message_sender.post(SaverMessage::Room);
                    }
                    *open = Some((Arc::new(buffer), 0));
                }
                // The saver is still busy with the batch before, so what comes until then may go with this one.
                InboxItem::Nothing if self.filling.wait().is_ok() => {}
                InboxItem::Nothing => return BatchEnd::Enough,
                InboxItem::Closed => return BatchEnd::All,
            }
        }
    }
}

/// The records of a message, or why it could not be decoded.
#[inline]
fn decode(
    decode: &mut Decode,
    max_message: usize,
    message: &InboundMessage,
    buffer: &ReadBuffer,
    rows: &mut Rows,
) -> Result<usize, DecodeFailure> {
    if message.too_large > 0 {
        let size = message.too_large;
        let words = format!("a message of {size} bytes; {max_message} are taken ({MAX_MESSAGE})");
        return Err(DecodeFailure::Dead(words));
    }
    decode.decode(buffer.payload(message), max_message, rows)
}
