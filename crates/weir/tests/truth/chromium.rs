//! Chromium plays and publishes with the origin's own pages: an independent peer in both directions.

use crate::support::webrtc::{on_air, origin, places};
use crate::support::{Browser, play, shared, soon};

#[test]
fn chromium_plays_a_stream_of_the_origin_by_whep_and_by_websocket() {
    let _machine = shared();
    let air = on_air(&[]);
    let page = format!("http://{}/live/a", air.origin.address("rtc").unwrap());
    for (number, url) in [page.clone(), format!("{page}?ws")].iter().enumerate() {
        let (_, said) = Browser::open(url).says("connected, ", 50, " frames decoded");
        assert!(said.contains(", 0 packets lost"), "{said}");
        let rtc = air.origin.rtc();
        assert_eq!(rtc.connected, number as u64 + 1);
        assert!(rtc.receiver_reports > 0 && rtc.unauthentic == 0, "{rtc:?}");
    }
}

#[test]
fn chromium_publishes_its_camera_by_whip_and_others_play_it() {
    let _machine = shared();
    let origin = origin(&[]);
    let watch = places(&origin).1;
    let address = origin.address("rtc").unwrap();
    // The viewer waits for its publisher: both start at their own pace.
    let viewer = Browser::open(&format!("http://{address}/live/a"));
    let camera = Browser::open(&format!("http://{address}/whip/live/a?seconds=30"));
    camera.says("connected, ", 1, " frames sent");
    let (_, said) = viewer.says("connected, ", 50, " frames decoded");
    assert!(said.contains(", 0 packets lost"), "{said}");
    let run = play(&watch, "-c 2 -d 5s --warmup 0s --drain 500ms");
    assert_eq!(run.well(), 2, "{:?}", run.failures());
    let total = |figure: &str| run.total(figure);
    assert_eq!(["lost", "rtc.frames_broken", "rtc.unauthentic"].map(total), [0.0; 3]);
    assert!(total("keyframes") >= 2.0 && total("frames") >= 2.0 * 40.0, "{}", total("frames"));
    assert!(total("rtc.audio_packets") >= 2.0 * 100.0, "its fake microphone beeps");
    // It begins at 300 kbit/s, and goes on only if it is told how its packets arrive.
    camera.says("it may send ", 600_000, " bit/s");
    let (frames, said) = camera.says("ended, ", 1, " frames sent");
    assert!(said.contains(", 0 packets lost"), "{said}");
    soon("the stream is off air", || origin.counts().stream("live/a").is_some_and(|stream| !stream.live));
    let intake = origin.rtc().intake;
    assert_eq!((intake.frames + intake.early, intake.lost, intake.broken), (frames, 0, 0), "{intake:?}");
    assert!(intake.early < 50 && intake.keyframes_asked >= 2, "{intake:?}");
    assert_eq!(origin.rtc().unauthentic, 0);
}
