//! The thread that a broker runs in.

use super::broker::{Broker, Message};
use super::session::MqttSession;
use crate::origin_thread::{Listener, OriginThread, StartThread, StartedThread};
use crate::worker::{OriginSettings, Report};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use weir_shard::{MessageSender, Shard, clock};

/// The longest that it sleeps when nothing happens.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// What starts a broker, one for all its listeners.
pub(crate) const START: StartThread = StartThread(start);

impl OriginThread for MessageSender<Message> {
    fn request_report(&self, reply: Sender<Report>) {
        self.post(Message::Report(reply));
    }

    fn stop(&self) {
        self.post(Message::Stop);
    }
}

/// Starts a broker, in a thread named `weir-mqtt`.
///
/// # Errors
/// The system refuses a thread, or has no descriptor left.
fn start(settings: Arc<OriginSettings>, listeners: Vec<Listener>) -> io::Result<StartedThread> {
    let (ready, started) = channel();
    let thread = std::thread::Builder::new().name("weir-mqtt".to_owned()).spawn(move || {
        let deadlines = settings.patience.deadlines();
        let opened = Shard::new(Broker::new(settings)).and_then(|mut shard| {
            shard.set_deadlines(deadlines);
            for (listener, tls) in listeners {
                shard.listen(listener, tls, |broker, _| Box::new(MqttSession::new(broker, clock::now())))?;
            }
            Ok(shard)
        });
        let mut shard = match opened {
            Ok(shard) => shard,
            Err(error) => {
                let _ = ready.send(Err(error));
                return;
            }
        };
        let _ = ready.send(Ok(shard.message_sender()));
        let own = shard.message_sender();
        while !shard.world.stopping {
            let now = clock::now();
            let will = shard.world.next_will();
            if will.is_some_and(|at| at <= now) {
                // A message of its own wakes those who receive the will.
                own.post(Message::Wills);
            }
            if shard.turn(will.map_or(now + LONGEST_SLEEP, |at| at.min(now + LONGEST_SLEEP))).is_err() {
                return;
            }
        }
    })?;
    let message_sender =
        started.recv().map_err(|_| io::Error::other("the broker's thread ended at once"))??;
    Ok((Box::new(message_sender), thread))
}
