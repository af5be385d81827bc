//! Each fault of a transport stream and of HTTP does what its line says, to the byte, and is told of truly.

use crate::peers::until;
use crate::readers::{PACKET, Reader, address, report, services, tuner, tuners, wrongs};
use std::io::ErrorKind;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use weir_origin::fault::{Damage, Subject, What};
use weir_origin::{Effect, Origin, Tuners};
use weir_ts::Counts;

type Bytes188 = [u8; PACKET];

const RATE: u64 = 8_000_000;
const VIDEO: u16 = 0x101;
/// Packets that are looked at: a second, about.
const COUNT: usize = 5_000;

/// The first packets of a service without faults; each opening of its tuner plays the same.
fn clean() -> &'static [Bytes188] {
    static CLEAN: OnceLock<Vec<Bytes188>> = OnceLock::new();
    CLEAN.get_or_init(|| {
        let origin = tuner(RATE, &[]);
        let mut reader = Reader::get(address(&origin), "/1.ts");
        reader.packets(COUNT + 200);
        let (packets, _) = reader.body.as_chunks::<PACKET>();
        packets.to_vec()
    })
}

fn pid_of(packet: &Bytes188) -> u16 {
    u16::from_be_bytes([packet[1], packet[2]]) & 0x1FFF
}

/// Places of the video packets, the first first.
fn video() -> Vec<usize> {
    (0..clean().len()).filter(|&place| pid_of(&clean()[place]) == VIDEO).collect()
}

/// The number, among those of the video PID, of a packet in the middle of a picture, with many after it, and enough
/// before it for a constant rate of the clock: 17 references.
fn plain() -> usize {
    let is_plain = |place: usize| clean()[place][1] & 0x40 == 0 && clean()[place][3] & 0x30 == 0x10;
    let places = video();
    (3_000..).find(|&number| places[number - 1..number + 4].iter().all(|&place| is_plain(place))).unwrap()
}

/// What a reader gets that plays with these faults, in both codings; the effects; and the packets dropped.
fn played(faults: &[&str], bytes: usize) -> (Vec<u8>, Vec<Effect>, u64) {
    let mut outcomes = Vec::new();
    for path in ["/1.ts", "/1.ts?chunked=0"] {
        let origin = tuner(RATE, faults);
        let mut reader = Reader::get(address(&origin), path);
        reader.packets(bytes.div_ceil(PACKET));
        reader.body.truncate(bytes);
        let counts = origin.counts();
        let dropped = counts.viewers[0].dropped.transport + counts.streams[0].dropped.transport;
        outcomes.push((reader.body, origin.effects(), dropped));
    }
    let (chunked, bare) = (outcomes.remove(0), outcomes.remove(0));
    assert!(chunked.0 == bare.0, "the coding makes no difference");
    chunked
}

/// Plays with `fault`, for the reader and for the stream, and compares with the clean stream after `change`.
fn check(
    fault: &str,
    damage: Option<Damage>,
    change: impl Fn(&mut Vec<u8>, &dyn Fn(usize) -> usize),
) -> Counts {
    let places = video();
    let mut expected = clean()[..COUNT].concat();
    change(&mut expected, &|number| places[number - 1] * PACKET);
    let mut counts = None;
    for whom in ["viewer=1", "stream=/1.ts"] {
        let (got, effects, _) = played(&[&format!("{fault} {whom}")], expected.len());
        let differs = got.iter().zip(&expected).position(|(got, expected)| got != expected);
        assert_eq!(differs, None, "{fault} {whom}: bytes differ from here on");
        if let Some(damage) = damage {
            assert!(matches!(effects[0].what, What::Damaged { damage: other, .. } if other == damage));
        }
        counts = Some(wrongs(&got));
    }
    counts.unwrap()
}

#[test]
fn packets_of_a_pid_are_lost_for_everyone_or_for_one() {
    let first = plain();
    let line = format!("drop pid=0x101 unit={first}..{}", first + 2);
    let lost = check(&line, None, |bytes, at| {
        for number in (first..first + 3).rev() {
            bytes.drain(at(number)..at(number) + PACKET);
        }
    });
    let expected = Counts {
        gap_events: 1,
        lost_packets: 3,
        lost_estimate: 3,
        aribts_drops: 1,
        continuity_count_error: 1,
        // The first clock reference behind the gap comes three packets early for a constant rate.
        pcr_accuracy_error: 1,
        ..Counts::default()
    };
    assert_eq!(lost, expected);

    let faults = [&*format!("{line} viewer=2"), "drop unit=every:1000 viewer=3"];
    let origin = tuner(RATE, &faults);
    let mut readers: Vec<_> = (0..3).map(|_| Reader::get(address(&origin), "/1.ts")).collect();
    readers.iter_mut().for_each(|reader| reader.packets(COUNT));
    assert_eq!(wrongs(&readers[0].body), Counts::default());
    let wrong = wrongs(&readers[1].body);
    assert_eq!((wrong.gap_events, wrong.lost_packets), (1, 3));
    let counts = origin.counts();
    let dropped = |reader: &Reader| counts.viewer(reader.local()).unwrap().dropped.transport;
    assert_eq!((dropped(&readers[0]), dropped(&readers[1])), (0, 3));
    assert!(dropped(&readers[2]) >= 5);
    let told = origin.effects();
    let told = told.iter().filter(|effect| effect.subject == Subject::Viewer(2)).map(|effect| effect.what);
    let dropped = |unit: usize| What::Dropped { unit: unit as u64, timestamp: 0 };
    assert!(told.eq((first..first + 3).map(dropped)));
}

#[test]
fn counters_are_moved_and_flags_are_set() {
    let unit = plain();
    let counter = check(&format!("counter pid=0x101 unit={unit}"), Some(Damage::Counter(8)), |bytes, at| {
        bytes[at(unit) + 3] ^= 8;
    });
    assert_eq!((counter.gap_events, counter.lost_packets), (2, 16));
    let error = check(&format!("error pid=0x101 unit={unit}"), Some(Damage::Error), |bytes, at| {
        bytes[at(unit) + 1] |= 0x80;
    });
    assert_eq!((error.transport_errors, error.gap_events), (1, 0));
    let line = format!("scramble pid=0x101 unit={unit}..{} control=3", unit + 1);
    let scrambled = check(&line, Some(Damage::Scrambling(3)), |bytes, at| {
        bytes[at(unit) + 3] |= 0xC0;
        bytes[at(unit + 1) + 3] |= 0xC0;
    });
    assert_eq!(scrambled.scrambled_packets, 2);
    let unsync = check(&format!("unsync pid=0x101 unit={unit}"), Some(Damage::Sync), |bytes, at| {
        bytes[at(unit)] = 0;
    });
    assert_eq!((unsync.sync_byte_error, unsync.lost_packets, unsync.skipped_bytes), (1, 1, 188));
}

#[test]
fn alignment_is_broken_and_a_stream_begins_inside_a_packet() {
    let start = check("crop unit=1 bytes=100", Some(Damage::Crop(100)), |bytes, _| {
        bytes.drain(..100);
    });
    assert_eq!((start.resyncs, start.skipped_bytes), (1, 88));
    let unit = plain();
    let crop = check(&format!("crop pid=0x101 unit={unit} bytes=60"), Some(Damage::Crop(60)), |bytes, at| {
        bytes.drain(at(unit)..at(unit) + 60);
    });
    assert_eq!((crop.resyncs, crop.skipped_bytes, crop.lost_packets), (1, 128, 1));
    for value in [71, 0] {
        let line = format!("junk pid=0x101 unit={unit} bytes=100 of={value}");
        let junk = check(&line, Some(Damage::Junk { bytes: 100, of: Some(value) }), |bytes, at| {
            bytes.splice(at(unit)..at(unit), [value; 100]);
        });
        assert_eq!((junk.resyncs, junk.skipped_bytes, junk.lost_packets), (1, 100, 0));
    }
    let (got, _, _) = played(&[&format!("junk pid=0x101 unit={unit} bytes=32768")], COUNT * PACKET);
    let noise = wrongs(&got);
    assert_eq!((noise.resyncs, noise.skipped_bytes, noise.lost_packets), (1, 32_768, 0));
}

#[test]
fn packets_are_sent_again_and_out_of_turn() {
    let unit = plain();
    let again = |times: usize| {
        move |bytes: &mut Vec<u8>, at: &dyn Fn(usize) -> usize| {
            let packet = bytes[at(unit)..at(unit) + PACKET].to_vec();
            bytes.splice(at(unit)..at(unit), packet.repeat(times));
        }
    };
    let legal = check(&format!("duplicate pid=0x101 unit={unit}"), None, again(1));
    assert_eq!((legal.legal_duplicates, legal.illegal_duplicates, legal.gap_events), (1, 0, 0));
    let illegal = check(&format!("duplicate pid=0x101 unit={unit} times=2"), None, again(2));
    assert_eq!((illegal.legal_duplicates, illegal.illegal_duplicates, illegal.gap_events), (1, 1, 0));
    check(&format!("swap pid=0x101 unit={unit}"), None, |bytes, at| {
        let packet: Vec<u8> = bytes.drain(at(unit)..at(unit) + PACKET).collect();
        let behind = at(unit + 1);
        bytes.splice(behind..behind, packet);
    });
}

#[test]
fn all_times_jump_together() {
    for by in ["5s", "-300ms"] {
        let (got, effects, _) = played(&[&format!("jump unit=2500 by={by}")], COUNT * PACKET);
        let counts = wrongs(&got);
        assert_eq!((counts.pcr_discontinuities, counts.gap_events, counts.resyncs), (1, 0, 0), "{by}");
        assert!(matches!(effects[..], [Effect { what: What::Jumped { .. }, .. }]), "{effects:?}");
        assert!(got[..2_499 * PACKET] == clean()[..2_499].concat());
    }
}

#[test]
fn several_faults_meet_and_each_is_counted_once() {
    let faults = [
        "drop unit=1000 viewer=1",
        "error unit=every:500 stream=/1.ts",
        "junk unit=2000 bytes=7 viewer=1",
        "counter unit=3000 pid=0x1FFF viewer=9",
    ];
    let (got, effects, dropped) = played(&faults, (COUNT - 1) * PACKET + 7);
    let mut expected: Vec<Bytes188> = clean()[..COUNT].to_vec();
    for number in (500..=COUNT).step_by(500) {
        expected[number - 1][1] |= 0x80;
    }
    let mut expected = expected.concat();
    expected.drain(999 * PACKET..1_000 * PACKET);
    // The reader's own faults count what came in, whatever became of it.
    let at = 1_998 * PACKET;
    assert!(got[..at] == expected[..at]);
    assert!(got[at + 7..] == expected[at..]);
    assert_eq!(dropped, 1);
    assert!(effects.iter().filter(|effect| matches!(effect.what, What::Damaged { .. })).count() >= 11);
}

#[test]
fn a_tuner_stalls_and_delays_and_then_plays_on() {
    let faults = ["stall unit=2000 for=600ms stream=/1.ts", "stall at=100ms for=300ms", "delay 50ms"];
    let origin = tuner(RATE, &faults);
    let mut reader = Reader::get(address(&origin), "/1.ts");
    let (mut last, mut longest) = (Instant::now(), Vec::new());
    while reader.body.len() < COUNT * PACKET {
        let before = reader.body.len();
        reader.step();
        if reader.body.len() > before {
            longest.push(last.elapsed());
            last = Instant::now();
        }
    }
    longest.sort_unstable();
    let [.., second, first] = longest[..] else { panic!("{longest:?}") };
    assert!(
        first >= Duration::from_millis(550) && second >= Duration::from_millis(250),
        "{first:?} {second:?}"
    );
    assert!(reader.body[..COUNT * PACKET] == clean()[..COUNT].concat());
}

#[test]
fn a_reader_is_cut_off_at_a_packet_or_a_time() {
    let origin = tuner(RATE, &["close viewer=1 unit=777", "reset viewer=2 unit=50", "reset link=3 at=300ms"]);
    let mut readers: Vec<_> = (0..4).map(|_| Reader::get(address(&origin), "/1.ts")).collect();
    readers[..3].iter_mut().for_each(Reader::until_end);
    readers[3].packets(1_000);
    let ends: Vec<_> = readers.iter().map(|reader| reader.end).collect();
    let reset = Some(ErrorKind::ConnectionReset);
    assert_eq!(ends, [Some(ErrorKind::UnexpectedEof), reset, reset, None]);
    assert_eq!(readers[0].body.len(), 776 * PACKET);
    until("three are gone", || origin.counts().present() == 1);
    assert_eq!(origin.counts().viewers[1].sent.transport, 49);
}

fn offering(faults: &[&str]) -> Origin {
    tuners(Tuners { services: services(2, 1_000_000), ..Tuners::default() }, faults)
}

#[test]
fn requests_are_refused_with_the_status_that_was_asked_for() {
    for (fault, path, status, head) in [
        ("unauthorized", "/api/services", 401, "WWW-Authenticate: Basic realm=\"weir\""),
        ("unauthorized phase=play viewer=1", "/1.ts", 401, "WWW-Authenticate"),
        ("reject phase=play", "/1.ts", 503, "Content-Type: application/json"),
        ("reject phase=play code=404", "/api/channels/GR/13/stream", 404, ""),
        ("reject code=500 words=not today", "/api/version", 500, ""),
        ("redirect phase=play to=/2.ts", "/1.ts", 302, "Location: /2.ts"),
        ("redirect to=http://127.0.0.1:1/ code=307 link=1", "/1.ts", 307, "Location: http://127.0.0.1:1/"),
    ] {
        let origin = offering(&[fault]);
        let reader = Reader::get(address(&origin), path);
        assert_eq!(reader.status(), Some(status), "{fault}");
        assert!(reader.head.contains(head), "{fault}: {}", reader.head);
        assert_eq!(reader.json()["code"], status, "{fault}");
        assert!(matches!(origin.effects()[..], [Effect { what: What::Refused, .. }]), "{fault}");
        assert!(origin.counts().viewers.is_empty(), "{fault}");
    }
}

#[test]
fn who_offers_the_right_credentials_is_let_in() {
    let origin = offering(&["unauthorized unless=user:secret"]);
    let ask = |authorization: &str| {
        let request = format!("GET /1.ts HTTP/1.1\r\nAuthorization: {authorization}\r\n\r\n");
        Reader::ask(address(&origin), &request).status()
    };
    assert_eq!(ask("Basic dXNlcjpzZWNyZXQ="), Some(200));
    assert_eq!(ask("basic dXNlcjpzZWNyZXQ="), Some(200));
    assert_eq!(ask("Basic dXNlcjpvdGhlcg=="), Some(401));
    assert_eq!(ask("Basic !"), Some(401));
    assert_eq!(ask("Bearer dXNlcjpzZWNyZXQ="), Some(401));
    let status = std::process::Command::new("curl")
        .args(["-sf", "-u", "user:secret", "-o", "/dev/null"])
        .arg(format!("http://{}/api/version", address(&origin)))
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn a_redirected_reader_ends_at_the_other_service() {
    let origin = offering(&["redirect phase=play viewer=1 to=/2.ts", "close unit=301"]);
    let output = std::process::Command::new("curl")
        .args(["-sL", "--max-time", "20"])
        .arg(format!("http://{}/1.ts?chunked=0", address(&origin)))
        .output()
        .unwrap();
    // The first request's query goes with the first request: the second is in the chunked coding, and cut.
    assert!(matches!(output.status.code(), Some(0 | 18)), "{:?}", output.status);
    assert_eq!(report(&output.stdout).services[0].name, "weir GR 2");
    assert_eq!(output.stdout.len(), 300 * PACKET);
}

#[test]
fn requests_are_never_answered() {
    for phase in ["accept", "handshake", "connect", "play"] {
        let origin = offering(&[&format!("silent phase={phase}")]);
        let second = Duration::from_secs(1);
        let mut reader = Reader::ask_for(address(&origin), "GET /1.ts HTTP/1.1\r\n\r\n", second);
        assert_eq!((reader.received, reader.end), (0, None), "{phase}");
        until("the effect", || {
            reader.step();
            matches!(origin.effects()[..], [Effect { what: What::Silenced, .. }])
        });
    }
}
