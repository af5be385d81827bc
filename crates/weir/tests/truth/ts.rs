//! MPEG-TS over HTTP: what nginx serves, and credentials that the environment has.

use crate::support::{Run, WebServer, measure, shared, start_measuring, weir};
use crate::transport::{Framing, Response, Server, stream, without};

/// Four viewers for three seconds.
fn four_viewers(url: &str) -> impl Iterator<Item = String> {
    let words = "-c 4 -d 3s --arrival 100/s --warmup 0s --drain 500ms";
    ["play", url].into_iter().chain(words.split(' ')).map(str::to_owned).collect::<Vec<_>>().into_iter()
}

fn play(url: &str) -> Run {
    measure(four_viewers(url))
}

#[test]
fn credentials_of_the_environment_are_given_and_a_redirect_to_the_same_server_takes_them_along() {
    let _machine = shared();
    let server = Server::start(|request| {
        let granted = request.contains("\r\nAuthorization: Basic bWU6c2VjcmV0\r\n");
        match request.split(' ').nth(1).unwrap() {
            "/moved" => Response {
                fields: "Location: ../mine?key=secret\r\n".to_owned(),
                ..Response::refusal("302 Found")
            },
            "/mine?key=secret" if granted => Response::ok(Framing::Length, stream(4)),
            _ => Response::refusal("401 Who are you"),
        }
    });
    let mut command = weir();
    command.env("WEIR_HTTP_CREDENTIALS", "me:secret").args(four_viewers(&server.url("/moved")));
    let run = start_measuring(&mut command).finish();
    let (kind, clients, _, said) = run.failure();
    assert_eq!((kind.as_str(), clients, run.total("played")), ("stream_ended", 4, 4.0), "{said}");
    assert!(said.contains("as announced"), "{said}");
    assert_keeps_secrets(&run);
}

#[test]
fn a_file_on_nginx_is_counted_to_its_end_in_clear_and_over_tls() {
    let _machine = shared();
    let nginx = WebServer::start();
    let body = without(&stream(6), &[(2_000, 3), (4_000, 11)]);
    std::fs::write(nginx.root().join("x.ts"), &body).unwrap();
    let trust = nginx.certificate().display().to_string();
    for url in [nginx.url("/x.ts"), nginx.secure_url("/x.ts"), nginx.url("/to-tls/x.ts")] {
        let run = measure(four_viewers(&url).chain(["--cacert".to_owned(), trust.clone()]));
        let (kind, clients, _, words) = run.failure();
        assert_eq!((kind.as_str(), clients), ("stream_ended", 4), "{url}: {words}");
        assert_eq!(run.total("media"), 4.0 * body.len() as f64);
        assert_eq!(run.total("units"), 4.0 * (body.len() / 188) as f64);
        assert_eq!((run.total("ts.lost_packets"), run.total("ts.gap_events")), (4.0 * 14.0, 4.0 * 2.0));
    }
    let run = play(&nginx.url("/nothing.ts"));
    let (kind, clients, _, words) = run.failure();
    assert_eq!((kind.as_str(), clients, words.as_str()), ("stream_not_found", 4, "404 Not Found"));
}

fn assert_keeps_secrets(run: &Run) {
    for file in std::fs::read_dir(run.directory()).unwrap() {
        let path = file.unwrap().path();
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        assert!(!text.contains("secret"), "{} holds a secret", path.display());
    }
    assert!(!run.summary.to_string().contains("secret"));
}
