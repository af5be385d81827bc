//! Links that never come to be, on real sockets.

mod bench;

use bench::Bench;
use std::net::IpAddr;
use std::time::Duration;
use weir_clients::{Ending, PlannedStart, PlayOptions, RtmpOptions, Timeouts, Turn, rtmp};
use weir_metrics::{Failure, Side};
use weir_shard::clock;
use weir_testing::free_port;

fn options() -> PlayOptions {
    PlayOptions { timeouts: Timeouts::all(Duration::from_millis(300)), ..PlayOptions::default() }
}

#[test]
fn a_port_that_nobody_listens_on_refuses() {
    for host in ["127.0.0.1", "[::1]", "localhost"] {
        let players = rtmp::play(
            &[format!("rtmp://{host}:{}/live/a", free_port())],
            &options(),
            &RtmpOptions::default(),
        )
        .unwrap();
        let mut bench = Bench::new(vec![&players]);
        bench.start(0, 0..3);
        bench.run(Duration::from_millis(200));
        let (_, ended, _) = bench.stop();
        let endings: Vec<_> = ended.iter().map(|(_, ending)| *ending).collect();
        assert_eq!(endings, [Ending::Failed(Failure::ConnectionRefused); 3], "{host}");
    }
}

#[test]
fn a_server_that_accepts_and_is_silent_runs_out_of_time() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("rtmp://{}/live/a", listener.local_addr().unwrap());
    let players = rtmp::play(&[url], &options(), &RtmpOptions::default()).unwrap();
    let mut bench = Bench::new(vec![&players]);
    bench.start(0, 0..1);
    bench.run(Duration::from_millis(500));
    let (_, ended, _) = bench.stop();
    assert_eq!(ended[0].1, Ending::Failed(Failure::HandshakeTimeout));
}

#[test]
fn a_link_that_cannot_be_begun_is_booked_as_the_generators_own_failure() {
    let players =
        rtmp::play(&["rtmp://127.0.0.1:1935/live/a".to_owned()], &options(), &RtmpOptions::default())
            .unwrap();
    let mut bench = Bench::new(vec![&players]);
    let mut endpoint = players.endpoint(0).clone();
    // TEST-NET-1, RFC 5737: no machine has this address.
    endpoint.from = Some(IpAddr::from([192, 0, 2, 1]));
    let planned = PlannedStart { client: 0, workload: 0, cell: 0, at: clock::now(), turn: Turn::default() };
    let session = players.start(planned, clock::now(), &mut bench.shard.world);
    bench.shard.open(&endpoint, session).unwrap_err();
    let (figures, ended, _) = bench.stop();
    assert_eq!(ended, [(planned, Ending::Failed(Failure::OutOfPorts))]);
    assert_eq!(Failure::OutOfPorts.side(), Side::Local);
    assert_eq!(figures[0].gauge(weir_metrics::common::ACTIVE), 0);
}
