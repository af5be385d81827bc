//! `weir origin`: the small server, until Ctrl-C.

use crate::args;
use crate::exit::Exit;
use crate::interrupt::interrupt_flag;
use crate::listen::served;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use weir_clients::{KeyNumbers, Link, SecretUrl};
use weir_engine::scenario::Span;
use weir_metrics::several;
use weir_origin::{
    ChannelType, DepartedViewers, Identity, Listen, Material, MaterialError, MissingStream, Origin,
    OriginConfig, RTMP, SRT, SegmentContainer, Service, UnknownSegmentKey,
};
use weir_protocols::{PROTOCOLS, Serve};
use weir_runner::{ErrorKind, RunError};

/// Runs an origin; prints where it listens, one line an address, then what it served.
pub(crate) fn origin(args: &args::Origin) -> Result<Exit, RunError> {
    weir_runner::prepare::raise_descriptors();
    let interrupt = interrupt_flag()?;
    let mut config = config(args).map_err(RunError::with(ErrorKind::Usage))?;
    // Not parsed as an argument: what is wrong there is shown, and this is a key.
    if let Some(key) = &args.hls_key {
        let wrong = |error: UnknownSegmentKey| RunError::new(ErrorKind::Usage, format!("--hls-key: {error}"));
        config.hls.key = Some(key.parse().map_err(wrong)?);
    }
    config.turn = args
        .turn
        .as_deref()
        .map(crate::turn::turn_server)
        .transpose()
        .map_err(RunError::with(ErrorKind::Usage))?;
    if config.listen.iter().any(|it| it.server.name == SRT.name) {
        config.srt_passphrase = weir_protocols::srt_passphrase(args.srt_passphrase_file.as_deref())
            .map_err(RunError::with(ErrorKind::Usage))?;
    }
    let origin = Origin::start(&config).map_err(RunError::with(ErrorKind::Usage))?;
    if args.until_stdin_ends {
        let interrupt = interrupt.clone();
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            interrupt.store(true, Ordering::Relaxed);
        });
    }
    let mut out = std::io::stdout();
    for protocol in PROTOCOLS {
        for scheme in protocol.schemes {
            let Some(Serve { server, .. }) = protocol.serve else { continue };
            let name = if scheme.link == Link::Tls { server.secure_name } else { Some(server.name) };
            if let Some(address) = name.and_then(|name| origin.address(name)) {
                // The process that started it reads this line; a closed pipe must not end the server.
                let _ = writeln!(out, "listening on {}://{address}", scheme.name);
            }
        }
    }
    let _ = out.flush();
    let mut numbers = KeyNumbers::new(args.show_keys);
    let started = Instant::now();
    let ended = || args.duration.as_ref().is_some_and(|span| started.elapsed() >= span.get());
    while !interrupt.load(Ordering::Relaxed) && !ended() {
        std::thread::sleep(Duration::from_millis(50));
        for trouble in origin.forward_troubles() {
            let stream = named(&mut numbers, &trouble.stream);
            let _ = writeln!(
                std::io::stderr(),
                "{stream} is not forwarded to {}: {}; tried again after 0.5 s, then at longer and longer intervals up to 30 s",
                trouble.server,
                weir_report::quote(&trouble.words, WORDS),
            );
        }
    }
    let counts = origin.counts();
    let DepartedViewers { viewers, sent, skipped } = counts.all();
    let slow =
        if skipped > 0 { format!("; {skipped} units came too late for slow viewers") } else { String::new() };
    let _ = writeln!(
        out,
        "{}, {}; sent {} payload bytes in {} units{slow}",
        several(counts.links, "link"),
        several(viewers, "viewer"),
        sent.payload_bytes,
        sent.units(),
    );
    let messages = origin.messages();
    if messages.links > 0 {
        let _ = writeln!(
            out,
            "{}; took {} messages, acknowledged {}; sent {} messages, {} of them confirmed",
            several(messages.clients, "MQTT client"),
            messages.received,
            messages.acknowledged,
            messages.sent,
            messages.confirmed,
        );
        for (left_out, why) in [
            (messages.overflowed, "left out: too much waited for a subscriber"),
            (messages.expired, "left out: they had expired"),
            (messages.unretained, "not kept for later subscribers: too much is kept"),
        ] {
            if left_out > 0 {
                let _ = writeln!(out, "{left_out} messages {why}");
            }
        }
    }
    let bulk = origin.bulk();
    if bulk.streams > 0 {
        let _ = writeln!(
            out,
            "{} bulk streams; received {} bytes, sent {}",
            bulk.streams, bulk.received, bulk.sent
        );
    }
    let rtc = origin.rtc();
    if rtc.connected > 0 {
        let _ = writeln!(
            out,
            "{}; {} packets asked for again, {} of them sent; {} keyframes asked for",
            several(rtc.connected, "WebRTC session"),
            rtc.nacks,
            rtc.repeated,
            rtc.picture_losses,
        );
    }
    let rtsp = origin.rtsp();
    if rtsp.publishers > 0 {
        let publishers = several(rtsp.publishers, "RTSP publisher");
        let _ = writeln!(out, "{publishers}; {} packets taken, {} missing", rtsp.packets, rtsp.lost);
    }
    let intake = rtc.intake;
    if intake.publishers > 0 {
        let _ = writeln!(
            out,
            "{}; {} packets taken, {} missing, {} of {} sent again when asked for; {} frames broken",
            several(intake.publishers, "WebRTC publisher"),
            intake.packets,
            intake.lost,
            intake.recovered,
            intake.asked,
            intake.broken,
        );
    }
    for stream in origin.mute_streams() {
        let stream = named(&mut numbers, &stream);
        let _ = writeln!(
            out,
            "{stream}: its sound was left out of WebRTC: it is neither Opus nor G.711, and nothing is transcoded"
        );
    }
    origin.stop();
    Ok(Exit::Passed)
}

/// Characters of what another server said.
const WORDS: usize = 200;

/// A stream as it may be named: its application, and a number for its key.
fn named(numbers: &mut KeyNumbers, stream: &str) -> String {
    numbers.show(&SecretUrl::new(format!("rtmp:///{stream}"))).trim_start_matches("rtmp:///").to_owned()
}

/// Where it listens by default.
const USUAL_RTMP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1935);

/// Made services first, then files.
fn services(args: &args::Origin) -> Result<Vec<Service>, MaterialError> {
    let made = match &args.services {
        Some(services) => services.clone(),
        None if args.files.is_empty() => vec![(ChannelType::Gr, 8)],
        None => Vec::new(),
    };
    let made = made.into_iter().flat_map(|(kind, count)| {
        let material = Material::Synthetic(args.bitrate.get());
        (1..=count).map(move |number| Service::numbered(number, kind, material.clone()))
    });
    let files = args.files.iter().zip(1..).map(|(path, number)| Service::stored(number, path));
    made.map(Ok).chain(files).collect()
}

fn config(args: &args::Origin) -> Result<OriginConfig, MaterialError> {
    let mut config = OriginConfig {
        workers: usize::from(args.workers),
        forward: args.forward.clone(),
        faults: args.faults.clone(),
        // Only sums are printed.
        departed_kept: 0,
        ..OriginConfig::default()
    };
    let listen = &args.listen.0;
    let usual = served().into_iter().find(|serve| serve.server.name == RTMP.name);
    let usual = usual.map(|serve| (serve, USUAL_RTMP)).filter(|_| {
        let is_named = listen.iter().any(|(serve, _)| serve.server.name == RTMP.name);
        !is_named && listen.iter().all(|(serve, _)| serve.needs_publishers)
    });
    for (serve, address) in usual.iter().chain(listen) {
        let identity = match (&args.cert, &args.key) {
            (Some(chain), Some(key)) => Some(Identity { chain: chain.clone(), key: key.clone() }),
            _ => None,
        };
        let identity = identity.filter(|_| serve.server.secure_name.is_some());
        config.listen.push(Listen { server: serve.server, address: *address, identity });
    }
    config.tuners.services = services(args)?;
    config.history.gop_cache = !args.no_gop_cache;
    if let Some(queue) = &args.queue {
        (config.history.queue, config.tuners.queue) = (queue.get(), queue.get());
    }
    if let Some(merge) = &args.merge {
        (config.merge, config.tuners.merge) = (merge.get(), merge.get());
    }
    config.hls.segment = args.segment.get();
    config.hls.segments = args.segments.into();
    config.hls.part = args.part.as_ref().map(Span::get);
    if args.fmp4 {
        config.hls.container = SegmentContainer::FragmentedMp4;
    }
    if let Some(span) = &args.request_timeout {
        config.patience.request = span.get();
    }
    if let Some(span) = &args.idle_timeout {
        config.patience.idle = span.get();
    }
    if args.refuse_missing {
        config.missing_stream = MissingStream::Refuse;
    }
    Ok(config)
}
