//! The session that has a worker's UDP port: what comes and goes there is its viewers'.

use super::hub::Hub;
use crate::worker::Worker;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;
use weir_rtc::transport::{Certificate, Clock as TransportClock};
use weir_shard::{Context, Datagrams, Outgoing, Session, Shard, clock};

/// The session of a port. Its state is at the worker's hub, where signalling brings viewers.
#[derive(Debug)]
pub(crate) struct Port;

impl Session<Worker> for Port {
    fn handle_datagrams(&mut self, datagrams: Datagrams<'_>, context: &mut Context<'_, Worker>) {
        let now = context.now;
        serve(context, |hub, worker, link| hub.receive(datagrams, now, worker, link));
    }

    fn handle_woken(&mut self, context: &mut Context<'_, Worker>) {
        let now = context.now;
        serve(context, |hub, worker, link| hub.go_on(now, worker, link));
    }

    fn handle_stop(&mut self, context: &mut Context<'_, Worker>) {
        let now = context.now;
        serve(context, |hub, worker, link| hub.close(now, worker, link));
        context.close();
    }

    fn after_event(&mut self, context: &mut Context<'_, Worker>) {
        let now = context.now;
        let (next, wakes) = serve(context, |hub, worker, link| {
            hub.handle_timeout(now, worker, link);
            (hub.next, std::mem::take(&mut hub.wakes))
        })
        .unwrap_or_default();
        context.wake_all(wakes);
        context.set_timer(next.map(|next| next.max(now + MOST_OFTEN)));
    }
}

/// Deadlines of many viewers that are so near to each other are served together.
const MOST_OFTEN: std::time::Duration = std::time::Duration::from_millis(1);

/// Takes the hub out of the worker, which it needs itself, and puts it back.
fn serve<T>(
    context: &mut Context<'_, Worker>,
    act: impl FnOnce(&mut Hub, &mut Worker, &mut Outgoing<'_>) -> T,
) -> Option<T> {
    let mut hub = context.world.take_state::<Hub>()?;
    let (worker, mut link) = context.split();
    let result = act(&mut hub, worker, &mut link);
    worker.put_state(hub);
    Some(result)
}

/// Takes a UDP port for this worker's peers, if it has none yet.
pub(crate) fn open_port(shard: &mut Shard<Worker>, address: IpAddr) -> io::Result<()> {
    if shard.world.state::<Hub>().is_some() {
        return Ok(());
    }
    let failed = |error: &dyn std::fmt::Display| io::Error::other(error.to_string());
    let certificate = Certificate::generate().map_err(|error| failed(&error))?;
    let local = SocketAddr::new(address, 0);
    let (port, local) = shard.open_datagrams(local, Box::new(Port)).map_err(|error| failed(&error))?;
    let transport_clock = TransportClock::new(clock::now(), Instant::now());
    shard.world.put_state(Box::new(Hub::new(port, local, certificate, transport_clock)));
    Ok(())
}
