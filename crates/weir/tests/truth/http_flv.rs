//! HTTP-FLV: weir plays it from node-media-server.

use crate::support::{NodeMediaServer, Publishing, measure, shared};

#[test]
fn a_server_of_others_is_played() {
    let _machine = shared();
    let server = NodeMediaServer::start();
    let [publish, play] = server.urls("a");
    let _publishing = Publishing::start(&publish, &["--gop", "1s", "--bitrate", "1mbps"]);
    let arguments = ["-c", "10", "-d", "6s", "--warmup", "1s", "--expect", "1mbps"];
    let run = measure(["play", &play].into_iter().chain(arguments));
    assert_eq!((run.code, run.well(), run.total("played")), (0, 10, 10.0), "{}", run.err);
    assert_eq!((run.total("lost"), run.total("flv.unreadable_tags")), (0.0, 0.0));
    assert!(run.total("flv.sequence_headers") >= 20.0 && run.total("flv.script_tags") >= 10.0);
    let nobody = play.replace("/a.flv", "/none.flv");
    let missing = measure(["play", &nobody, "-c", "1", "-d", "3s", "--timeout", "2s"]);
    assert_eq!(missing.slots("failed"), 1);
}
