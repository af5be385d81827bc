//! An origin alone in a process, to be measured: `serve ADDRESS [merge=MS] [workers=N] [FAULT …]`.

use std::time::Duration;
use weir_origin::{Origin, OriginConfig};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let address = words.next().ok_or("serve ADDRESS [merge=MS] [workers=N] [forward=URL] [FAULT …]")?;
    let mut config = OriginConfig { rtmp: Some(address.parse()?), ..OriginConfig::default() };
    for word in words {
        match word.split_once('=') {
            Some(("merge", ms)) => config.merge = Duration::from_millis(ms.parse()?),
            Some(("workers", n)) => config.workers = n.parse()?,
            Some(("forward", url)) => config.forward.push(url.to_owned()),
            _ => config.faults.push(word.parse()?),
        }
    }
    let origin = Origin::start(&config)?;
    println!("{:?}", origin.addresses());
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
