//! An origin alone in a process, to be measured: `serve ADDRESS [merge=MS] [workers=N] [FAULT …]`. With
//! `services=N [rate=BPS]` it is a tuner server, otherwise it speaks RTMP.

use std::time::Duration;
use weir_metrics::BitRate;
use weir_origin::{ChannelType, HTTP, Material, Origin, OriginConfig, RTMP, Service};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let address = words.next().ok_or("serve ADDRESS [merge=MS] [workers=N] [forward=URL] [FAULT …]")?;
    let mut config = OriginConfig::default();
    let mut server = &RTMP;
    let (mut services, mut rate) = (0, 15_000_000);
    for word in words {
        match word.split_once('=') {
            Some(("merge", ms)) => {
                config.merge = Duration::from_millis(ms.parse()?);
                config.tuners.merge = config.merge;
            }
            Some(("services", n)) => services = n.parse()?,
            Some(("rate", bps)) => rate = bps.parse()?,
            Some(("workers", n)) => config.workers = n.parse()?,
            Some(("forward", url)) => config.forward.push(url.to_owned()),
            _ => config.faults.push(word.parse()?),
        }
    }
    if services > 0 {
        let material = Material::Synthetic(BitRate::from_bps(rate as f64));
        let service = |number| Service::numbered(number, ChannelType::Gr, material.clone());
        config.tuners.services = (1..=services).map(service).collect();
        server = &HTTP;
    }
    let origin = Origin::start(&config.listening(server, address.parse()?))?;
    println!("{:?}", origin.address(server.name));
    let mut line = String::new();
    while std::io::stdin().read_line(&mut line)? > 0 {
        let counts = origin.counts();
        let (present, sent) = (counts.present(), counts.sent());
        println!("{present} viewers present, {} links, sent {sent:?}", counts.links);
        counts.streams.iter().for_each(|stream| println!("{stream:?}"));
        if line.contains('v') {
            counts.viewers.iter().for_each(|viewer| println!("{viewer:?}"));
        }
        origin.effects().iter().for_each(|effect| println!("{effect:?}"));
        line.clear();
    }
    Ok(())
}
