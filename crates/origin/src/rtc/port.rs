//! The session that has a worker's UDP port: what comes and goes there is its viewers'.

use super::desk::Desk;
use crate::worker::Worker;
use weir_shard::{Context, Event, Outgoing, Session};

/// The session of a port. Its state is at the worker's desk, where signalling brings viewers.
#[derive(Debug)]
pub(crate) struct Port;

impl Session<Worker> for Port {
    fn handle(&mut self, event: Event<'_>, context: &mut Context<'_, Worker>) {
        let now = context.now;
        let is_stop = matches!(event, Event::Stop);
        match event {
            Event::Datagrams(batch) => {
                serve(context, |desk, worker, link| desk.receive(batch, now, worker, link));
            }
            Event::Woken => {
                serve(context, |desk, worker, link| desk.go_on(now, worker, link));
            }
            Event::Stop => {
                serve(context, |desk, worker, link| desk.close(now, worker, link));
            }
            _ => {}
        }
        let (next, wakes) = serve(context, |desk, worker, link| {
            desk.time(now, worker, link);
            (desk.next, std::mem::take(&mut desk.wakes))
        })
        .unwrap_or_default();
        context.wake_all(wakes);
        match next {
            Some(next) => context.set_timer(next.max(now + MOST_OFTEN)),
            None => context.clear_timer(),
        }
        if is_stop {
            context.close();
        }
    }
}

/// Deadlines of many viewers that are so near to each other are served together.
const MOST_OFTEN: std::time::Duration = std::time::Duration::from_millis(1);

/// Takes the desk out of the worker, which it needs itself, and puts it back.
fn serve<T>(
    context: &mut Context<'_, Worker>,
    act: impl FnOnce(&mut Desk, &mut Worker, &mut Outgoing<'_>) -> T,
) -> Option<T> {
    let mut desk = context.world.rtc.take()?;
    let (worker, mut link) = context.split();
    let result = act(&mut desk, worker, &mut link);
    worker.rtc = Some(desk);
    Some(result)
}
