//! Laws of what a viewer is sent, whatever is published, however slowly it takes it.

use super::log::History;
use super::{Cursor, DecoderSettings, JoinedPackets, Kind, Log, Opening, Outlet, Packet, View};
use proptest::prelude::*;
use std::io::IoSlice;
use std::sync::Arc;
use std::time::Duration;
use weir_metrics::Moment;

/// One thing that happens to a stream and its one viewer.
#[derive(Clone, Debug)]
enum Step {
    Publish {
        keyframe: bool,
        bytes: usize,
    },
    /// The settings change; they are published like any packet.
    Settings,
    /// The viewer's link takes this number of bytes.
    Take(usize),
    Wait(Duration),
    /// The publisher goes, and another one comes.
    Again,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (prop::bool::weighted(0.15), 9_usize..200)
            .prop_map(|(keyframe, bytes)| Step::Publish { keyframe, bytes }),
        1 => Just(Step::Settings),
        4 => (0_usize..600).prop_map(Step::Take),
        2 => (0_u64..400).prop_map(|ms| Step::Wait(Duration::from_millis(ms))),
        1 => Just(Step::Again),
    ]
}

fn history() -> impl Strategy<Value = History> {
    (any::<bool>(), 100_u64..1_000, 300_u64..6_000, 500_u64..2_000, 1_500_u64..12_000).prop_map(
        |(gop_cache, queue, queue_bytes, gop, gop_bytes)| History {
            gop_cache,
            queue: Duration::from_millis(queue),
            queue_bytes,
            gop: Duration::from_millis(gop),
            gop_bytes,
        },
    )
}

/// What the bytes on the link say of a packet: a mark, a number, and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnLink {
    Opening { version: u32 },
    Setup(u32),
    Keyframe(u32),
    Frame(u32),
}

fn packet(mark: u8, number: u32, bytes: usize) -> Packet {
    let mut content = vec![mark];
    content.extend(number.to_be_bytes());
    content.extend((bytes as u32).to_be_bytes());
    content.resize(bytes.max(9), 0);
    let kind = if mark < 2 { Kind::Setup } else { Kind::Video };
    Packet::unit(kind, mark == 2, 0, 0, content)
}

/// Reads back whole packets; what is left over is the beginning of one.
fn read(mut bytes: &[u8]) -> (Vec<OnLink>, usize) {
    let mut seen = Vec::new();
    while bytes.len() >= 9 {
        let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        let (number, length) = (word(1), word(5) as usize);
        if bytes.len() < length {
            break;
        }
        seen.push(match bytes[0] {
            0 => OnLink::Opening { version: number },
            1 => OnLink::Setup(number),
            2 => OnLink::Keyframe(number),
            3 => OnLink::Frame(number),
            mark => panic!("no packet begins with {mark}"),
        });
        bytes = &bytes[length..];
    }
    (seen, bytes.len())
}

struct Bench {
    log: Log,
    cursor: Cursor,
    outlet: Outlet,
    joined: JoinedPackets,
    now: Moment,
    version: u32,
    link: Vec<u8>,
    /// The keyframe that the viewer was to start at.
    began: Option<u64>,
    counted: u64,
    lost: u64,
    boundaries: Vec<u64>,
}

impl Bench {
    fn new(history: History) -> Self {
        let log = Log::new(history);
        let cursor = Cursor::new(&log);
        let now = Moment::from_nanos(1_000_000_000);
        let (outlet, joined) = (Outlet::default(), JoinedPackets::default());
        let (link, boundaries) = (Vec::new(), Vec::new());
        Self {
            log,
            cursor,
            outlet,
            joined,
            now,
            version: 0,
            link,
            began: None,
            counted: 0,
            lost: 0,
            boundaries,
        }
    }

    fn push(&mut self, mark: u8, bytes: usize) {
        let number = self.log.end() as u32;
        let opening = (mark == 2).then(|| {
            let packets = (0..2).map(|_| packet(0, self.version, 20)).collect();
            let settings = Arc::new(DecoderSettings { version: u64::from(self.version), packets });
            Arc::new(Opening { settings, timestamp: 0, remake: |packet, _| packet.clone() })
        });
        self.log.push(packet(mark, number, bytes), opening, self.now);
    }

    fn take(&mut self, mut room: usize) {
        self.began = self.began.or_else(|| self.log.keyframe_from(0));
        loop {
            self.cursor.settle(&self.log, self.now);
            let link = &mut self.link;
            let mut sink = |slices: &[IoSlice<'_>]| {
                let before = link.len();
                for slice in slices {
                    let taken = slice.len().min(room);
                    link.extend_from_slice(&slice[..taken]);
                    room -= taken;
                }
                link.len() - before
            };
            let Self { log, cursor, outlet, joined, .. } = self;
            // Another viewer was at the same place.
            if let Some(from) = cursor.number() {
                joined.of(log, from, View::Framed);
            }
            let (written, offered) = outlet.write_next(log, cursor, joined, &mut sink);
            self.counted += written.sent.packets();
            self.lost += self.cursor.take_lost().units;
            if !written.whole || offered == 0 {
                return;
            }
        }
    }

    fn run(&mut self, steps: &[Step]) {
        for step in steps {
            match *step {
                Step::Publish { keyframe, bytes } => self.push(if keyframe { 2 } else { 3 }, bytes),
                Step::Settings => {
                    self.version += 1;
                    self.push(1, 9);
                }
                Step::Take(bytes) => self.take(bytes),
                Step::Wait(span) => self.now = self.now + span,
                Step::Again => {
                    // In the order of a worker: the log is cleared first, then each viewer is notified.
                    self.log.clear();
                    self.boundaries.push(self.log.end());
                    self.cursor.renew(&self.log);
                    self.lost += self.cursor.take_lost().units;
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn a_viewer_is_sent_whole_packets_from_a_keyframe_on(
        history in history(),
        steps in prop::collection::vec(step(), 0..200),
    ) {
        let mut bench = Bench::new(history);
        bench.run(&steps);
        let (cut_at_end, _) = read(&bench.link);
        prop_assert_eq!(cut_at_end.len() as u64, bench.counted);

        bench.take(usize::MAX);
        let (seen, rest) = read(&bench.link);
        prop_assert_eq!(rest, 0, "a link that takes everything ends with a whole packet");

        let mut before: Option<u32> = None;
        let mut opened = None;
        for what in seen {
            match what {
                OnLink::Opening { version } => opened = Some(version),
                OnLink::Keyframe(number) => {
                    prop_assert!(opened.is_some(), "keyframe {number} before any opening");
                    prop_assert!(before.is_none_or(|before| number > before), "{number} after {before:?}");
                    before = Some(number);
                }
                OnLink::Frame(number) | OnLink::Setup(number) => {
                    prop_assert_eq!(before, number.checked_sub(1), "a gap that no keyframe follows");
                    before = Some(number);
                }
            }
        }
    }

    #[test]
    fn what_is_not_sent_is_lost_and_counted(
        history in history(),
        steps in prop::collection::vec(step(), 0..200),
    ) {
        let mut bench = Bench::new(history);
        bench.run(&steps);
        bench.take(usize::MAX);
        let (seen, _) = read(&bench.link);
        let numbers: Vec<u32> = seen.iter().filter_map(|what| match what {
            OnLink::Opening { .. } => None,
            OnLink::Keyframe(number) | OnLink::Frame(number) | OnLink::Setup(number) => Some(*number),
        }).collect();
        // Before the first keyframe of each publication nothing is lost: there was nothing to see.
        // From there to its end, each packet was sent or is counted as lost, the keyframe itself included.
        let sent = numbers.len() as u64;
        prop_assert!(sent + bench.lost <= bench.log.end());
        if let Some(began) = bench.began
            && bench.boundaries.is_empty()
        {
            prop_assert_eq!(sent + bench.lost, bench.log.end() - began);
        }
    }

    #[test]
    fn a_log_stays_within_its_bounds(
        history in history(),
        steps in prop::collection::vec(step(), 0..300),
    ) {
        let mut bench = Bench::new(history);
        bench.run(&steps);
        let kept: u64 = bench.log.from(bench.log.start()).map(|entry| entry.packet.weight()).sum();
        // The last packet stays whatever it takes.
        prop_assert!(kept <= history.queue_bytes.max(history.gop_bytes) + packet(0, 0, 200).weight());
    }
}
