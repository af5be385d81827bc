//! The peer of background TCP streams.

use crate::counts::BulkCounts;
use crate::protocol_states::{ProtocolState, StateReport};
use crate::worker::Worker;
use std::io::IoSlice;
use std::time::Duration;
use weir_bulk::{CONSENT, Request, ZEROS};
use weir_metrics::Moment;
use weir_shard::{Context, Session};

/// How often a client that sends gets a report of the bytes received.
const REPORT: Duration = Duration::from_millis(100);

/// A session of one stream.
#[derive(Debug)]
pub(crate) enum BulkSession {
    /// Has not said what it wants; what has come of its line.
    Asking(Vec<u8>),
    /// The client sends.
    Receiving {
        /// Bytes so far.
        total: u64,
        /// Bytes that the peer's last report covered.
        told: u64,
        /// When the next report may be sent.
        next: Moment,
    },
    /// The client receives blocks of `block` bytes; `left` bytes of the one under way are still to be sent.
    Sending { block: usize, left: usize },
}

impl BulkSession {
    /// The session of a connection that was just accepted.
    pub(crate) fn new(worker: &mut Worker) -> Self {
        worker.accept();
        Self::Asking(Vec::new())
    }

    fn read(&mut self, bytes: &[u8], context: &mut Context<'_, Worker>) {
        match self {
            Self::Asking(line) => {
                let before = line.len();
                line.extend_from_slice(&bytes[..bytes.len().min(64)]);
                match Request::parse(line) {
                    Ok(None) => {}
                    Ok(Some((request, length))) => {
                        let rest = &bytes[length - before..];
                        context.send(CONSENT);
                        context.established();
                        context.world.count(|counts: &mut BulkCounts| counts.streams += 1);
                        *self = match request {
                            Request::Up => Self::Receiving { total: 0, told: 0, next: context.now },
                            Request::Down { block } => {
                                Self::Sending { block: block as usize, left: block as usize }
                            }
                        };
                        self.read(rest, context);
                        self.send(context);
                    }
                    Err(error) => {
                        context.send(format!("{error}\n").as_bytes());
                        context.close();
                    }
                }
            }
            Self::Receiving { total, .. } => {
                *total += bytes.len() as u64;
                context.world.count(|counts: &mut BulkCounts| counts.received += bytes.len() as u64);
                self.report_total(context);
            }
            // A client that receives sends nothing more.
            Self::Sending { .. } => {}
        }
    }

    /// Reports the bytes received to a client that sends, if it is time.
    fn report_total(&mut self, context: &mut Context<'_, Worker>) {
        let Self::Receiving { total, told, next } = self else { return };
        if *total == *told {
            return;
        }
        // A client that does not read the totals gets no more of them.
        if *next <= context.now && context.unsent() == 0 {
            context.send(&total.to_be_bytes());
            *told = *total;
            *next = context.now + REPORT;
        } else {
            context.set_timer((*next).max(context.now + REPORT / 10));
        }
    }

    /// Sends what the link takes of a block. After a whole one it leaves the others their turn.
    fn send(&mut self, context: &mut Context<'_, Worker>) {
        let Self::Sending { block, left } = self else { return };
        let sent = context.write(&[IoSlice::new(&ZEROS[..*left])]);
        context.world.count(|counts: &mut BulkCounts| counts.sent += sent as u64);
        *left -= sent;
        if *left == 0 {
            *left = *block;
            context.set_timer(context.now);
        }
    }
}

impl ProtocolState for BulkCounts {
    fn report(&self) -> StateReport {
        Box::new(*self)
    }
}

impl Session<Worker> for BulkSession {
    fn handle_input(&mut self, bytes: &[u8], context: &mut Context<'_, Worker>) {
        self.read(bytes, context);
    }

    fn handle_writable(&mut self, context: &mut Context<'_, Worker>) {
        self.send(context);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_, Worker>) {
        match self {
            Self::Asking(_) => {}
            Self::Receiving { .. } => self.report_total(context),
            Self::Sending { .. } => self.send(context),
        }
    }
}
