//! Every way in which an RTMP client can end has its name, and the server's own words.

mod bench;

use bench::dialogue::{Answer, Dialogue, Manners, POLITE};
use std::time::Duration;
use weir_clients::{Ending, PlayOptions, PublishOptions, RtmpOptions, Timeouts, Workload, rtmp};
use weir_metrics::Failure;
use weir_metrics::common::{ACTIVE, PLAYING, WITNESSES};
use weir_rtmp::message::Status;
use weir_shard::Event;

const SECOND: Duration = Duration::from_secs(1);

/// Four different timeouts, to see that each phase has its own.
const TIMEOUTS: Timeouts = Timeouts {
    connect: SECOND,
    handshake: Duration::from_secs(2),
    request: Duration::from_secs(3),
    media: Duration::from_secs(4),
};

fn player() -> Workload {
    rtmp::play(
        &["rtmp://127.0.0.1/live/a".to_owned()],
        &PlayOptions { timeouts: TIMEOUTS, ..PlayOptions::default() },
        &RtmpOptions::default(),
    )
    .unwrap()
}

fn publisher() -> Workload {
    let options = PublishOptions { timeouts: TIMEOUTS, ..PublishOptions::default() };
    rtmp::publish(&["rtmp://127.0.0.1/live/a".to_owned()], &options, &RtmpOptions::default()).unwrap()
}

/// The client has failed so, with words that contain these, and left nothing behind.
#[track_caller]
fn assert_failed(dialogue: &mut Dialogue, failure: Failure, words: &str) {
    let (ending, remarks, figures) = dialogue.outcome();
    assert_eq!(ending, Some(Ending::Failed(failure)));
    assert_eq!(figures.failures().collect::<Vec<_>>(), [(failure, 1)]);
    assert!(remarks[0].words.contains(words), "'{}' is not in '{}'", words, remarks[0].words);
    assert_eq!((figures.gauge(ACTIVE), figures.gauge(PLAYING), figures.gauge(WITNESSES)), (0, 0, 0));
    assert!(dialogue.rig.closed);
}

#[test]
fn a_phase_that_lasts_too_long_is_a_failure_of_that_phase() {
    let silent = Manners { handshake: false, ..POLITE };
    let mute = Manners { connect: Answer::Nothing, ..POLITE };
    let shy = Manners { request: Answer::Nothing, ..POLITE };
    for workload in [player(), publisher()] {
        for (manners, connects, seconds, failure) in [
            (POLITE, false, 1, Failure::ConnectTimeout),
            (silent, true, 2, Failure::HandshakeTimeout),
            (mute, true, 3, Failure::RequestTimeout),
            (shy, true, 3, Failure::RequestTimeout),
        ] {
            let mut dialogue = Dialogue::new(&workload, 0, manners);
            if connects {
                dialogue.connect();
            }
            dialogue.advance(seconds * SECOND - Duration::from_millis(1));
            assert_eq!(dialogue.outcome().0, None, "{failure:?} came too early");
            let mut dialogue = Dialogue::new(&workload, 0, manners);
            if connects {
                dialogue.connect();
            }
            dialogue.advance(seconds * SECOND);
            assert_failed(&mut dialogue, failure, "in time");
        }
    }
}

#[test]
fn a_server_that_consents_and_sends_nothing_has_no_media() {
    let mut dialogue = Dialogue::new(&player(), 0, POLITE);
    dialogue.connect();
    dialogue.advance(4 * SECOND);
    assert_failed(&mut dialogue, Failure::NoMedia, "sent no media within `timeout`");
}

#[test]
fn a_stream_that_never_shows_a_keyframe_has_no_media() {
    let mut dialogue = Dialogue::new(&player(), 0, POLITE);
    dialogue.connect();
    // Six timeouts of four seconds.
    for frame in 0..600 {
        dialogue.video(frame * 40, false, 100);
        dialogue.advance(Duration::from_millis(40));
    }
    assert_failed(&mut dialogue, Failure::NoMedia, "no decodable frame");
}

#[test]
fn a_refusal_is_told_by_its_kind_in_the_servers_words() {
    for (code, words, failure) in [
        ("NetStream.Play.StreamNotFound", "no stream a", Failure::StreamNotFound),
        ("NetStream.Play.Failed", "401 who are you", Failure::Unauthorized),
        ("NetStream.Play.Failed", "enough viewers", Failure::Rejected),
    ] {
        let manners = Manners { request: Answer::Refuse(code, words), ..POLITE };
        let mut dialogue = Dialogue::new(&player(), 0, manners);
        dialogue.connect();
        assert_failed(&mut dialogue, failure, words);
    }
    for workload in [player(), publisher()] {
        let answer = Answer::Refuse("NetConnection.Connect.Rejected", "authmod=adobe :code=403 need auth");
        let mut dialogue = Dialogue::new(&workload, 0, Manners { connect: answer, ..POLITE });
        dialogue.connect();
        assert_failed(&mut dialogue, Failure::Unauthorized, "authmod=adobe");
    }
    let answer = Answer::Refuse("NetStream.Publish.BadName", "already publishing");
    let mut dialogue = Dialogue::new(&publisher(), 0, Manners { request: answer, ..POLITE });
    dialogue.connect();
    assert_failed(&mut dialogue, Failure::Rejected, "already publishing");
}

/// What a server says that sends its clients on: SRS, Wowza and AMS.
fn sent_to(url: &'static str) -> Status<'static> {
    let status = Status::error("NetConnection.Connect.Rejected", "RTMP 302 Redirect");
    Status { redirect: Some(url.into()), ..status }
}

#[test]
fn a_redirect_of_connect_is_followed() {
    let mute = Manners { connect: Answer::Nothing, ..POLITE };
    for workload in [player(), publisher()] {
        let mut dialogue = Dialogue::new(&workload, 0, mute);
        dialogue.connect();
        dialogue.server.reject_connect(&sent_to("rtmp://127.0.0.2:1936/edge"));
        dialogue.talk();
        assert_eq!(dialogue.begin_again(POLITE), "127.0.0.2:1936".parse().unwrap());
        assert_eq!(dialogue.asked, ["live", "edge"]);
        dialogue.video(0, true, 100);
        let (ending, failures, figures) = dialogue.outcome();
        assert_eq!((ending, failures.len(), figures.gauge(PLAYING)), (None, 0, 1));
    }
}

/// SRS redirects when it has been asked for the stream, by a status of it.
#[test]
fn a_redirect_of_play_is_followed_as_well() {
    let mut dialogue = Dialogue::new(&player(), 0, Manners { request: Answer::Nothing, ..POLITE });
    dialogue.connect();
    dialogue.server.send_status(1, &sent_to("rtmp://127.0.0.2/live/a"));
    dialogue.talk();
    assert_eq!(dialogue.begin_again(POLITE), "127.0.0.2:1935".parse().unwrap());
    assert_eq!(dialogue.asked, ["live", "live"]);
}

#[test]
fn redirects_that_lead_nowhere_or_in_circles_are_a_failure_that_names_the_place() {
    let mute = Manners { connect: Answer::Nothing, ..POLITE };
    let mut dialogue = Dialogue::new(&player(), 0, mute);
    dialogue.connect();
    dialogue.server.reject_connect(&sent_to("http://me:secret@127.0.0.2/live?k=secret"));
    dialogue.talk();
    assert_failed(&mut dialogue, Failure::RedirectFailed, "http://127.0.0.2/live");
    let mut dialogue = Dialogue::new(&player(), 0, mute);
    dialogue.connect();
    for _ in 0..5 {
        dialogue.server.reject_connect(&sent_to("rtmp://127.0.0.2/live"));
        dialogue.talk();
        dialogue.begin_again(mute);
    }
    dialogue.server.reject_connect(&sent_to("rtmp://127.0.0.2/live"));
    dialogue.talk();
    assert_failed(&mut dialogue, Failure::RedirectFailed, "5 redirects in a row");
}

/// `authmod=adobe`: the user, then the response to a challenge, each in a connection of its own.
#[test]
fn a_login_is_answered_with_user_and_password_of_the_url() {
    const NEEDED: &str = "[ AccessManager.Reject ] : [ code=403 need auth; authmod=adobe ] : ";
    const CHALLENGE: &str = "[ AccessManager.Reject ] : [ authmod=adobe ] : \
        ?reason=needauth&user=me&salt=abcd&challenge=efgh&opaque=ijkl";
    let refuse =
        |words| Manners { connect: Answer::Refuse("NetConnection.Connect.Rejected", words), ..POLITE };
    let url = ["rtmp://me:mine@127.0.0.1/live/a".to_owned()];
    let options = PublishOptions { timeouts: TIMEOUTS, ..PublishOptions::default() };
    let workload = rtmp::publish(&url, &options, &RtmpOptions::default()).unwrap();
    let mut dialogue = Dialogue::new(&workload, 0, refuse(NEEDED));
    dialogue.connect();
    assert_eq!(dialogue.begin_again(refuse(CHALLENGE)), "127.0.0.1:1935".parse().unwrap());
    dialogue.begin_again(POLITE);
    let [first, user, response] = &dialogue.asked[..] else { panic!("{:?}", dialogue.asked) };
    assert_eq!((&**first, &**user), ("live", "live?authmod=adobe&user=me"));
    assert!(response.starts_with("live?authmod=adobe&user=me&challenge="), "{response}");
    assert!(response.contains("&response=") && response.ends_with("&opaque=ijkl"), "{response}");
    assert_eq!(dialogue.outcome().2.gauge(PLAYING), 1);
    // Taken by nobody.
    let mut dialogue = Dialogue::new(&workload, 0, refuse(NEEDED));
    dialogue.connect();
    dialogue.begin_again(refuse(CHALLENGE));
    dialogue.begin_again(refuse("[ authmod=adobe ] : ?reason=authfailed&opaque=ijkl"));
    assert_failed(&mut dialogue, Failure::Unauthorized, "user and password have been sent");
    // The challenge is in no words of a failure.
    let mut dialogue = Dialogue::new(&player(), 0, refuse(CHALLENGE));
    dialogue.connect();
    let (_, failures, _) = dialogue.outcome();
    assert!(failures[0].words.contains("rtmp://USER:PASSWORD@HOST"), "{}", failures[0].words);
    assert!(!["abcd", "efgh", "ijkl"].iter().any(|secret| failures[0].words.contains(secret)));
}

#[test]
fn a_link_that_cannot_be_had_or_breaks_is_named_by_the_system() {
    for workload in [player(), publisher()] {
        for failure in [Failure::ConnectionRefused, Failure::OutOfPorts] {
            let mut dialogue = Dialogue::new(&workload, 0, POLITE);
            dialogue.dispatch(Event::Closed { failure, words: "the system's words" });
            assert_failed(&mut dialogue, failure, "the system's words");
        }
        let mut dialogue = Dialogue::new(&workload, 0, POLITE);
        dialogue.connect();
        dialogue.dispatch(Event::Closed { failure: Failure::Reset, words: "reset by peer" });
        assert_failed(&mut dialogue, Failure::Reset, "reset by peer");
        let mut dialogue = Dialogue::new(&workload, 0, POLITE);
        dialogue.connect();
        dialogue.dispatch(Event::Closed { failure: Failure::ClosedByPeer, words: "" });
        assert_failed(&mut dialogue, Failure::ClosedByPeer, "closed the link");
    }
}

#[test]
fn a_server_that_speaks_something_else_is_malformed() {
    for workload in [player(), publisher()] {
        let mut dialogue = Dialogue::new(&workload, 0, POLITE);
        dialogue.dispatch(Event::Connected);
        dialogue.dispatch(Event::Bytes(b"HTTP/1.1 400 Bad Request\r\n\r\n"));
        assert_failed(&mut dialogue, Failure::MalformedInput, "handshake");
    }
}

fn playing() -> Dialogue {
    let mut dialogue = Dialogue::new(&player(), 0, POLITE);
    dialogue.connect();
    dialogue.video(0, true, 1_000);
    dialogue
}

#[test]
fn a_publisher_that_goes_away_ends_the_stream_after_the_grace() {
    let mut dialogue = playing();
    dialogue.server.send_status(1, &Status::new("NetStream.Play.UnpublishNotify", "publisher left"));
    dialogue.talk();
    dialogue.advance(Duration::from_millis(1_999));
    assert_eq!(dialogue.outcome().0, None);
    let mut dialogue = playing();
    dialogue.server.send_status(1, &Status::new("NetStream.Play.UnpublishNotify", "publisher left"));
    dialogue.talk();
    dialogue.advance(2 * SECOND);
    assert_failed(&mut dialogue, Failure::StreamEnded, "publisher left");
}

#[test]
fn a_publisher_that_comes_back_within_the_grace_is_forgiven() {
    let mut dialogue = playing();
    dialogue.server.end_play(1);
    dialogue.talk();
    dialogue.advance(SECOND);
    dialogue.video(1_000, true, 1_000);
    dialogue.advance(3 * SECOND);
    assert_eq!(dialogue.outcome().0, None);
}

#[test]
fn a_server_that_says_goodbye_before_it_closes_has_ended_the_stream() {
    let mut dialogue = playing();
    dialogue.server.end_play(1);
    dialogue.talk();
    dialogue.dispatch(Event::Closed { failure: Failure::ClosedByPeer, words: "" });
    assert_failed(&mut dialogue, Failure::StreamEnded, "");
}

#[test]
fn a_client_that_is_stopped_says_goodbye_and_is_on_time_wherever_it_stands() {
    for workload in [player(), publisher()] {
        for steps in 0..3 {
            let mut dialogue = Dialogue::new(&workload, 0, POLITE);
            if steps > 0 {
                dialogue.connect();
            }
            if steps > 1 {
                dialogue.advance(Duration::from_millis(100));
            }
            dialogue.dispatch(Event::Stop);
            let sent = dialogue.rig.sent.clone();
            assert_eq!(!sent.is_empty(), steps > 0, "a goodbye needs a link");
            dialogue.talk();
            assert_eq!(dialogue.closed, steps > 0, "the server hears of it");
            let (ending, _, figures) = dialogue.outcome();
            assert_eq!(ending, Some(Ending::OnTime));
            assert_eq!((figures.gauge(ACTIVE), figures.gauge(PLAYING)), (0, 0));
            assert!(dialogue.rig.closed);
        }
    }
}
