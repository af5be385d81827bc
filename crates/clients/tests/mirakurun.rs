//! What a Mirakurun or mirakc server says that it has is what is read.

mod bench;

use bench::transport::{Framing, Response, Server};
use std::sync::{Arc, Mutex};
use weir_clients::ts::mirakurun;
use weir_clients::{
    Credentials, HttpOptions, MirakurunOptions, PlannedStart, PlayOptions, ShardRecorder, Turn, Workload,
    WorkloadError,
};
use weir_metrics::Failure;
use weir_shard::{Event, Rig};

const SERVICES: &str = r#"[
    {"id": 3273601024, "serviceId": 1024, "networkId": 32736, "name": "One", "type": 1,
     "channel": {"type": "GR", "channel": "27"}},
    {"id": 3273701032, "serviceId": 1032, "networkId": 32737, "name": "Two", "type": 1},
    {"id": 400101, "serviceId": 101, "networkId": 4, "name": "\u0007Three", "type": 1,
     "channel": {"type": "BS", "channel": "BS15_0"}}]"#;
const CHANNELS: &str =
    r#"[{"type": "GR", "channel": "26", "services": [{"id": 3273701032, "name": "Two"}]}]"#;

fn text(text: &str, framing: Framing) -> Response {
    Response::ok(framing, text.as_bytes().to_vec())
}

/// A server, and what it was asked.
fn server(version: bool) -> (Server, Arc<Mutex<Vec<String>>>) {
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let diary = heard.clone();
    let server = Server::start(move |request| {
        diary.lock().unwrap().push(request.to_owned());
        match request.split(' ').nth(1).unwrap() {
            "/tv/api/services" => Response {
                fields: "Location: ../../api/services\r\n".to_owned(),
                ..Response::refusal("302 Found")
            },
            "/api/services" => text(SERVICES, Framing::Chunked),
            "/tv/api/channels" | "/api/channels" => text(CHANNELS, Framing::Close),
            "/api/version" if version => text(r#"{"current": "3.9.0", "latest": "4.0.0"}"#, Framing::Length),
            _ => Response::refusal("404 Not Found"),
        }
    });
    (server, heard)
}

fn discover(url: &str, options: &MirakurunOptions) -> Result<Workload, WorkloadError> {
    let url = format!("mirakurun+{url}");
    let http = HttpOptions { credentials: Some(Credentials::parse("me:secret")), ..HttpOptions::default() };
    mirakurun::play(&[url], &PlayOptions::default(), &http, options)
}

fn all(services: u32) -> MirakurunOptions {
    MirakurunOptions { services: Some(services), ..MirakurunOptions::default() }
}

#[test]
fn services_are_found_and_named_and_the_server_says_its_version() {
    let (server, heard) = server(true);
    let found = discover(&server.url(""), &all(3)).unwrap();
    let shown: Vec<String> = found.targets().iter().map(ToString::to_string).collect();
    let at = |label: &str, id: u64| format!("{label}, {}/api/services/{id}/stream?…", server.url(""));
    assert_eq!(
        shown,
        [at("GR/27 One", 3273601024), at("GR/26 Two", 3273701032), at("BS/BS15_0 Three", 400101)]
    );
    assert_eq!(found.versions[0].version, "3.9.0");
    let heard = heard.lock().unwrap();
    assert!(heard.len() == 3 && heard.iter().all(|request| request.contains("\r\nAuthorization: Basic ")));
}

/// mirakc answers 404 when all its tuners are taken; Mirakurun says 503.
#[test]
fn a_service_that_was_just_listed_and_is_not_there_has_no_free_tuner() {
    let (server, _) = server(true);
    let found = discover(&server.url(""), &all(1)).unwrap();
    let mut rig = Rig::new(ShardRecorder::new([found.schema]));
    let planned = PlannedStart { client: 0, workload: 0, cell: 0, at: rig.now, turn: Turn::default() };
    let mut session = found.start(planned, rig.now, &mut rig.world);
    rig.dispatch(&mut *session, Event::Opening);
    rig.dispatch(&mut *session, Event::Connected);
    rig.dispatch(&mut *session, Event::Bytes(Response::refusal("404 Not Found").head().as_bytes()));
    let figures = rig.world.take_figures().remove(0);
    assert_eq!(figures.failures().collect::<Vec<_>>(), [(Failure::Unavailable, 1)]);
    let said = rig.world.take_failures().remove(0).words;
    assert!(said.contains("404 Not Found") && said.contains("no free tuner, or gone"), "{said}");
}

#[test]
fn a_server_may_stand_below_a_path_and_lead_elsewhere_and_keep_its_version() {
    let (server, _) = server(false);
    let options = MirakurunOptions { types: vec!["GR".to_owned()], ..MirakurunOptions::default() };
    let found = discover(&server.url("/tv/"), &options).unwrap();
    assert_eq!((found.targets().len(), &found.versions[..]), (2, &[][..]));
    assert!(found.targets()[1].path.starts_with("/tv/api/services/3273701032/stream?decode=1"));
}

#[test]
fn what_goes_wrong_is_one_line_and_tells_the_servers_fault_from_the_askers() {
    let (server, _) = server(true);
    let page = Server::start(|_| text("<html>", Framing::Length));
    let missing = Server::start(|_| Response::refusal("404 Not Found"));
    let busy = Server::start(|_| Response::refusal("503 Starting"));
    let circle = Server::start(|_| Response {
        fields: "Location: /api/services\r\n".to_owned(),
        ..Response::refusal("302 Found")
    });
    let endless = Server::start(|_| Response::ok(Framing::Close, vec![b' '; 17 << 20]));
    let deserted = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = format!("http://{deserted}");
    let named = |name: &str| MirakurunOptions { named: vec![name.to_owned()], ..MirakurunOptions::default() };
    for (url, options, words, of_server) in [
        (page.url(""), all(1), "the answer is not that of Mirakurun or mirakc", true),
        (missing.url(""), all(1), "/api/services: the server answers 404 Not Found", true),
        (busy.url(""), all(1), "503 Starting", true),
        (circle.url(""), all(1), "redirects in a row", true),
        (endless.url(""), all(1), "longer than 16 MiB", true),
        (nobody, all(1), "connection refused", true),
        (server.url(""), all(4), "4 services are asked for and there are 3", false),
        (
            server.url(""),
            named("Four"),
            "no service or channel is 'Four'; it has GR/27 One (3273601024)",
            false,
        ),
        (server.url(""), MirakurunOptions::default(), "`services: 8`", false),
    ] {
        let error = discover(&url, &options).err().unwrap();
        let said = error.to_string();
        assert!(said.contains(words) && !said.contains('\n') && !said.contains("secret"), "{said}");
        assert_eq!(matches!(error, WorkloadError::Server(_)), of_server, "{said}");
    }
}
