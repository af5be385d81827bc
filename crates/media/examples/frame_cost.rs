//! What a frame costs: made, stamped, found. Run with `cargo run --release -p weir-media --example frame_cost`;
//! with the name of a file, writes the default clip there as Annex B, to look at.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use weir_media::{
    Clip, ClipSettings, ClockReading, Frame, Framing, Source, Stamp, Synthetic, Track, append_annex_b,
};
use weir_metrics::BitRate;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if let Some(path) = std::env::args().nth(1) {
        return Ok(std::fs::write(path, annex_b()?)?);
    }
    for kbps in [250, 1000, 4000, 20_000] {
        let mut settings = ClipSettings::default();
        settings.video.bit_rate = BitRate::from_kbps(kbps);
        let start = Instant::now();
        let clip = Arc::new(Clip::prepare(&settings)?);
        let prepare = start.elapsed();
        let mut source = Synthetic::new(clip);
        let mut frame = Frame::empty();
        let (mut pictures, mut found) = (0, 0);
        let frames = 200_000;
        let next = timed(frames, || source.next(&mut frame).unwrap_or(()));
        let stamped = timed(frames, || {
            source.next(&mut frame).unwrap_or(());
            if frame.track == Track::Video {
                pictures += 1;
                stamp(pictures).put(&mut frame.payload);
            }
        });
        while frame.track != Track::Video {
            source.next(&mut frame)?;
        }
        let find = timed(frames, || {
            found += u32::from(Stamp::find(black_box(&frame.payload), Framing::LengthPrefixed).is_some());
        });
        println!(
            "{kbps:>6} kbit/s: prepare {prepare:.1?}, next {next:.0} ns, next + stamp {stamped:.0} ns, find {find:.0} ns"
        );
        black_box(found);
    }
    Ok(())
}

fn timed(times: u32, mut each: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..times {
        each();
    }
    start.elapsed().as_nanos() as f64 / f64::from(times)
}

fn stamp(sequence_number: u32) -> Stamp {
    Stamp { captured: ClockReading::ZERO, sequence_number }
}

fn annex_b() -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let clip = Arc::new(Clip::prepare(&ClipSettings { audio: None, ..ClipSettings::default() })?);
    let mut source = Synthetic::new(clip.clone());
    let mut frame = Frame::empty();
    let mut out = Vec::new();
    for _ in 0..120 {
        source.next(&mut frame)?;
        append_annex_b(clip.video_config(), &frame, &mut out);
    }
    Ok(out)
}
