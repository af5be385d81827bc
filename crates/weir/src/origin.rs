//! `weir origin`: the small server, until Ctrl-C.

use crate::args;
use crate::conduct::interrupt_flag;
use crate::exit::{Exit, Failure};
use std::io::Write;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use weir_origin::{MissingStream, Origin, OriginConfig, Secure};

/// Runs an origin; prints where it listens, one line an address, then what it served.
pub(crate) fn origin(args: &args::Origin) -> Result<Exit, Failure> {
    crate::prepare::raise_descriptors();
    let interrupt = interrupt_flag()?;
    let origin = Origin::start(&config(args)).map_err(Failure::with(Exit::Usage))?;
    if args.until_stdin_ends {
        let interrupt = interrupt.clone();
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            interrupt.store(true, Ordering::Relaxed);
        });
    }
    let mut out = std::io::stdout();
    let addresses = origin.addresses();
    for (scheme, address) in [("rtmp", addresses.rtmp), ("rtmps", addresses.rtmps)] {
        let Some(address) = address else { continue };
        // Whoever started it reads this line; a closed pipe must not end the server.
        let _ = writeln!(out, "listening on {scheme}://{address}");
    }
    let _ = out.flush();
    let started = Instant::now();
    let ended = || args.duration.as_ref().is_some_and(|span| started.elapsed() >= span.get());
    while !interrupt.load(Ordering::Relaxed) && !ended() {
        std::thread::sleep(Duration::from_millis(50));
    }
    let counts = origin.counts();
    let sent = counts.sent();
    let _ = writeln!(
        out,
        "{} links, {} viewers; sent {} payload bytes in {} units",
        counts.links,
        counts.viewers.len(),
        sent.payload_bytes,
        sent.units(),
    );
    origin.stop();
    Ok(Exit::Passed)
}

fn config(args: &args::Origin) -> OriginConfig {
    let mut config = OriginConfig {
        workers: usize::from(args.workers),
        merge: args.merge.get(),
        forward: args.forward.clone(),
        faults: args.faults.clone(),
        ..OriginConfig::default()
    };
    match (&args.cert, &args.key) {
        (Some(chain), Some(key)) => {
            config.rtmps = Some(Secure { address: args.rtmp, chain: chain.clone(), key: key.clone() });
        }
        _ => config.rtmp = Some(args.rtmp),
    }
    config.history.gop_cache = !args.no_gop_cache;
    config.history.queue = args.queue.get();
    if args.refuse_missing {
        config.missing_stream = MissingStream::Refuse;
    }
    config
}
