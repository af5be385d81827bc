//! Payloads out of a directory, which agents do not have and are sent.

use crate::support::{Crew, Mosquitto, measure, shared};

#[test]
fn publishers_at_agents_send_the_files_of_the_coordinators_directory_in_their_order() {
    let _machine = shared();
    let (crew, broker, folder) = (Crew::start(2), Mosquitto::start(), tempfile::tempdir().unwrap());
    // The second is larger than what a NATS server takes in one message.
    let payloads = ["first".to_owned(), "x".repeat(1_500_000), "third".to_owned()];
    for (name, payload) in ["a.json", "b.txt", "c"].iter().zip(&payloads) {
        std::fs::write(folder.path().join(name), payload).unwrap();
    }
    std::fs::write(folder.path().join(".hidden"), "no payload").unwrap();
    let subscriber = broker.subscriber(&["-q", "1", "-t", "d/#", "-C", "10", "-F", "%t %p"]);
    let (url, directory) = (broker.url("d/{client}"), format!("dir:{}", folder.path().display()));
    let publish =
        ["publish", &url, "-q", "1", "-c", "2", "--count", "5", "--rate", "10/s", "--payload", &directory];
    let run = measure(publish.into_iter().map(str::to_owned).chain(crew.words(2)));
    assert_eq!(
        (run.code, run.total("units"), run.total("mqtt.acknowledged")),
        (0, 10.0, 10.0),
        "{}",
        run.err
    );
    let lines = subscriber.lines();
    for client in ["d/1 ", "d/2 "] {
        let sent: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix(client)).collect();
        let expected: Vec<_> = payloads.iter().cycle().take(5).collect();
        assert!(sent == expected, "{:?}", sent.iter().map(|it| it.len()).collect::<Vec<_>>());
    }
}
