//! The shell: carries the messages of a state machine over NATS, on a thread with a tokio runtime of its own.

use crate::credentials;
use crate::fingerprint::Fingerprint;
use crate::parts::{self, Reassembler};
use crate::state_machine::{Outgoing, StateMachine};
use async_nats::client::PublishErrorKind;
use futures_util::StreamExt;
use futures_util::stream::select_all;
use percent_encoding::percent_decode_str;
use std::io::{self, Read as _};
use std::net::{IpAddr, TcpStream, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use weir_setting::{CREDS, NATS_TOKEN_FILE};
use weir_shard::clock;

/// Time between two calls of [`StateMachine::handle_timeout`].
const TICK: Duration = Duration::from_millis(50);
/// Time between two attempts to reconnect.
const RECONNECT_DELAY: Duration = Duration::from_millis(250);
/// How long the first attempt to connect may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the last messages may take to leave.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
/// Bytes that may come over the link without a message in them: the client library gathers a message whole, whatever length it
/// announces, and a server sends less than this in pings, and in what it says of itself, over years. The largest `max_payload` of a
/// NATS server is as much.
const MOST_WITHOUT_MESSAGE: u64 = 64 << 20;
/// Bytes of the line with which a server introduces itself: it has an address of each server of its cluster.
const MOST_INTRODUCTION: usize = 1 << 20;
/// Number of messages of a subscription that may wait for the state machine before the client library drops some: ten seconds of 1,000
/// agents with four workloads are 40,000.
const QUEUE_LIMIT: usize = 1 << 16;

/// A NATS server, and how to authenticate there.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct NatsServer {
    /// `nats://host:4222`, or `tls://host:4222`.
    pub url: String,
    /// The token to authenticate with.
    pub token: Option<String>,
    /// The file of credentials (`nsc`) to authenticate with.
    pub credentials: Option<PathBuf>,
    /// A PEM file with the authorities to trust.
    pub authorities: Option<PathBuf>,
    /// The fingerprint of the only certificate to trust.
    pub fingerprint: Option<Fingerprint>,
}

impl NatsServer {
    /// Whether it is on this machine: its host, as the client library reads the URL, is `localhost` or an address that is looped
    /// back. A name that only begins like one (`127.example.org`) may be anywhere.
    pub fn is_here(&self) -> bool {
        self.url.parse::<async_nats::ServerAddr>().is_ok_and(|address| {
            let host = address.host();
            host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        })
    }
}

impl std::fmt::Debug for NatsServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NatsServer").finish_non_exhaustive()
    }
}

/// A NATS server that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NatsError {
    /// No NATS server answers there: start `nats-server`, or give its address.
    #[error("NATS at {place}: {words}; is a nats-server there?")]
    Unreachable {
        /// The URL of the server, without secrets.
        place: String,
        /// The reason, in the words of the system or the library.
        words: String,
    },
    /// The server refuses these credentials.
    #[error("NATS at {place} refuses these credentials; give {} or {}", NATS_TOKEN_FILE, CREDS, place = .0)]
    Refused(String),
    /// What is there does not speak as a NATS server does.
    #[error(
        "{0}: more than a NATS server says before it has introduced itself, or between two messages; is one there?"
    )]
    Flood(String),
    /// The file of credentials or of certificates cannot be used.
    #[error("{path}: {words}")]
    File {
        /// The path of the file.
        path: String,
        /// The reason.
        words: String,
    },
    /// The thread or its runtime could not be started.
    #[error("the thread for NATS: {0}")]
    Thread(#[from] io::Error),
}

/// A state machine whose messages are being carried over NATS.
#[derive(Debug)]
pub struct Link<M: StateMachine> {
    commands: Option<UnboundedSender<M::Command>>,
    events: Receiver<M::Event>,
    thread: Option<JoinHandle<()>>,
    /// Why the thread has ended, if it did by itself.
    end: Arc<OnceLock<NatsError>>,
}

impl<M: StateMachine> Link<M> {
    /// Why there are no more events.
    pub fn end(&self) -> String {
        let unknown = || "the thread for NATS has ended; please report this".to_owned();
        self.end.get().map_or_else(unknown, ToString::to_string)
    }

    /// Passes a command to the state machine.
    pub fn send(&self, command: M::Command) {
        if let Some(commands) = &self.commands {
            // The thread does not end before this value is dropped.
            let _ = commands.send(command);
        }
    }

    /// The next event of the state machine, if there is one within this time.
    ///
    /// # Errors
    /// There was none, or the thread has ended.
    pub fn event(&self, within: Duration) -> Result<M::Event, RecvTimeoutError> {
        self.events.recv_timeout(within)
    }
}

impl<M: StateMachine> Drop for Link<M> {
    /// Waits until the last messages have left.
    fn drop(&mut self) {
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Whether what is there says more, before it ends its first line, than a NATS server has to say: the client library would gather it.
/// What else is wrong there the library finds, and says.
fn is_flood(address: &async_nats::ServerAddr) -> bool {
    let began = Instant::now();
    let addresses = (address.host(), address.port()).to_socket_addrs().into_iter().flatten();
    let first = addresses.map(|it| TcpStream::connect_timeout(&it, CONNECT_TIMEOUT)).find_map(Result::ok);
    let Some(mut stream) = first else { return false };
    let (mut buffer, mut heard) = (vec![0; 16 << 10], 0);
    while heard <= MOST_INTRODUCTION {
        let left = CONNECT_TIMEOUT.saturating_sub(began.elapsed());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return false;
        }
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 && !buffer[..count].contains(&b'\n') => heard += count,
            _ => return false,
        }
    }
    true
}

/// The URL of a server without user and password.
fn shown(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("nats", url));
    format!("{scheme}://{}", rest.rsplit_once('@').map_or(rest, |(_, place)| place))
}

/// Connects a state machine to a server, and waits for the first attempt.
///
/// # Errors
/// The server does not answer, or refuses the credentials.
pub fn connect<M: StateMachine + 'static>(server: &NatsServer, machine: M) -> Result<Link<M>, NatsError> {
    connect_with_limit(server, machine, QUEUE_LIMIT)
}

/// The same, with a limit of messages of a subscription that may wait for the state machine.
fn connect_with_limit<M: StateMachine + 'static>(
    server: &NatsServer,
    machine: M,
    waiting: usize,
) -> Result<Link<M>, NatsError> {
    let (command, commands) = unbounded_channel();
    let (event, events) = channel();
    let (ready, is_ready) = channel();
    let server = server.clone();
    let end = Arc::new(OnceLock::new());
    let reason = end.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let thread = std::thread::Builder::new().name("weir-nats".to_owned()).spawn(move || {
        runtime.block_on(async {
            match Carrier::connect(&server, machine, event, waiting).await {
                Ok(mut carrier) => {
                    let _ = ready.send(Ok(()));
                    // The carrier ends behind it: whoever sees that there are no more events finds the reason.
                    if let Err(error) = carrier.carry(commands).await {
                        let _ = reason.set(error);
                    }
                }
                Err(error) => drop(ready.send(Err(error))),
            }
        });
    })?;
    let gone = || NatsError::Thread(io::Error::other("it ended; please report this"));
    is_ready.recv().map_err(|_| gone())??;
    Ok(Link { commands: Some(command), events, thread: Some(thread), end })
}

struct Carrier<M: StateMachine> {
    machine: M,
    client: async_nats::Client,
    messages: futures_util::stream::SelectAll<async_nats::Subscriber>,
    changes: UnboundedReceiver<ConnectionChange>,
    events: Sender<M::Event>,
    reassembler: Reassembler,
    is_up: bool,
    /// The server, as it is shown.
    place: String,
    /// Bytes that had come when the last message was taken.
    at_message: u64,
}

/// What the client library reports of its connection.
enum ConnectionChange {
    Up,
    Down,
    Dropped,
}

impl<M: StateMachine> Carrier<M> {
    async fn connect(
        server: &NatsServer,
        mut machine: M,
        events: Sender<M::Event>,
        waiting: usize,
    ) -> Result<Self, NatsError> {
        let place = shown(&server.url);
        let file = |path: &PathBuf, error: io::Error| NatsError::File {
            path: path.display().to_string(),
            words: error.to_string(),
        };
        let (change, changes) = unbounded_channel();
        let mut options = async_nats::ConnectOptions::new()
            .name("weir")
            .connection_timeout(CONNECT_TIMEOUT)
            .ping_interval(Duration::from_secs(10))
            .subscription_capacity(waiting)
            .reconnect_delay_callback(|_| RECONNECT_DELAY)
            .ignore_discovered_servers()
            .event_callback(move |event| {
                let change = change.clone();
                async move {
                    let change_to = match event {
                        async_nats::Event::Connected => ConnectionChange::Up,
                        async_nats::Event::Disconnected | async_nats::Event::Closed => ConnectionChange::Down,
                        async_nats::Event::SlowConsumer(_) => ConnectionChange::Dropped,
                        _ => return,
                    };
                    let _ = change.send(change_to);
                }
            });
        let unreachable = |words: String| NatsError::Unreachable { place: place.clone(), words };
        let address: async_nats::ServerAddr =
            server.url.parse().map_err(|error: io::Error| unreachable(error.to_string()))?;
        if let Some(fingerprint) = server.fingerprint {
            let client = fingerprint.client().map_err(|error| unreachable(error.to_string()))?;
            options = options.tls_client_config(client).require_tls(true);
        }
        // The library parses user and password of a URL, and does not use them.
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        options = match (address.username().map(decoded), address.password().map(decoded)) {
            (Some(user), Some(password)) => options.user_and_password(user, password),
            (Some(token), None) => options.token(token),
            (None, _) => options,
        };
        if let Some(token) = &server.token {
            options = options.token(token.clone());
        }
        if let Some(path) = &server.credentials {
            let text = std::fs::read_to_string(path).map_err(|error| file(path, error))?;
            options = credentials::authenticate(options, &text).map_err(|error| file(path, error))?;
        }
        if let Some(path) = &server.authorities {
            // The library reads this file when it connects, and would report a missing one as a failed connection.
            std::fs::File::open(path).map_err(|error| file(path, error))?;
            options = options.add_root_certificates(path.clone()).require_tls(true);
        }
        if is_flood(&address) {
            return Err(NatsError::Flood(place));
        }
        let client = options.connect(address).await.map_err(|error| {
            use async_nats::ConnectErrorKind::{Authentication, AuthorizationViolation};
            match error.kind() {
                Authentication | AuthorizationViolation => NatsError::Refused(place.clone()),
                _ => unreachable(error.to_string()),
            }
        })?;
        let mut subscriptions = Vec::new();
        for subject in machine.subjects() {
            let subscription = client.subscribe(subject).await;
            subscriptions.push(subscription.map_err(|error| unreachable(error.to_string()))?);
        }
        client.flush().await.map_err(|error| unreachable(error.to_string()))?;
        machine.handle_connection(true, clock::now());
        let (messages, reassembler) = (select_all(subscriptions), Reassembler::default());
        Ok(Self {
            machine,
            client,
            messages,
            changes,
            events,
            reassembler,
            is_up: true,
            place,
            at_message: 0,
        })
    }

    /// Carries messages until the sender of commands is dropped.
    async fn carry(&mut self, mut commands: UnboundedReceiver<M::Command>) -> Result<(), NatsError> {
        let statistics = self.client.statistics();
        let mut tick = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                biased;
                Some(change) = self.changes.recv() => self.handle_change(&change),
                Some(message) = self.messages.next() => {
                    let now = clock::now();
                    self.at_message = statistics.in_bytes.load(Relaxed);
                    if let Some(whole) = self.reassembler.take(&message.subject, &message.payload) {
                        self.machine.handle_message(&message.subject, &whole, now);
                    }
                }
                command = commands.recv() => match command {
                    Some(command) => self.machine.handle_command(command, clock::now()),
                    None => break,
                },
                _ = tick.tick() => {
                    if statistics.in_bytes.load(Relaxed).saturating_sub(self.at_message) > MOST_WITHOUT_MESSAGE {
                        return Err(NatsError::Flood(self.place.clone()));
                    }
                    self.machine.handle_timeout(clock::now());
                }
            }
            self.send().await;
            while let Some(event) = self.machine.poll_event() {
                // The receiver is dropped together with the sender of commands, which ends this loop.
                let _ = self.events.send(event);
            }
        }
        let _ = tokio::time::timeout(FLUSH_TIMEOUT, self.client.flush()).await;
        Ok(())
    }

    fn handle_change(&mut self, change: &ConnectionChange) {
        match change {
            // The first connection was reported to the state machine already.
            ConnectionChange::Up if self.is_up => {}
            ConnectionChange::Up | ConnectionChange::Down => {
                self.is_up = matches!(change, ConnectionChange::Up);
                self.machine.handle_connection(self.is_up, clock::now());
            }
            ConnectionChange::Dropped => self.machine.handle_dropped(),
        }
    }

    async fn send(&mut self) {
        while let Some(Outgoing { subject, bytes }) = self.machine.poll_send() {
            if !self.is_up {
                continue;
            }
            let size = bytes.len();
            let Ok(parts) = parts::split(clock::wall_nanos(), bytes, self.client.server_info().max_payload)
            else {
                self.machine.handle_too_large(&subject, size);
                continue;
            };
            for part in parts {
                let sent = self.client.publish(subject.clone(), part.into()).await;
                // The library reports a connection that ends meanwhile as a change. A server that it has reconnected to may accept less
                // than the one before.
                if sent.is_err_and(|error| error.kind() == PublishErrorKind::MaxPayloadExceeded) {
                    self.machine.handle_too_large(&subject, size);
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_metrics::Moment;

    #[test]
    fn a_server_is_shown_without_its_secrets() {
        assert_eq!(shown("nats://me:s3cret@host:4222"), "nats://host:4222");
        assert_eq!(shown("token@host"), "nats://host");
        let server = NatsServer { token: Some("s3cret".to_owned()), ..NatsServer::default() };
        assert!(!format!("{server:?}").contains("cret"));
    }

    #[test]
    fn only_an_address_of_this_machine_is_here() {
        let is_here = |url: &str| NatsServer { url: url.to_owned(), ..NatsServer::default() }.is_here();
        for nats in [
            "localhost",
            "127.0.0.1:4222",
            "nats://127.8.0.1:4222",
            "nats://[::1]:4222",
            "nats://user:a@b@localhost:4222/",
        ] {
            assert!(is_here(nats), "{nats}");
        }
        for nats in [
            "127.example.org",
            "nats://localhost.example.org:4222",
            "nats://127.0.0.1@10.0.0.1:4222",
            "[::2]:4222",
            "nats://10.0.0.1/@127.0.0.1",
            "nats://10.0.0.1#@127.0.0.1",
            "nats://10.0.0.1?@127.0.0.1",
            "ws://10.0.0.1\\@127.0.0.1",
            "",
        ] {
            assert!(!is_here(nats), "{nats}");
        }
    }

    /// Reports what it receives, and sends the payloads of its commands.
    #[derive(Default)]
    struct Echo {
        received: Option<Received>,
        to_send: Option<Vec<u8>>,
        /// How long it takes to handle a message.
        pause: Duration,
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Received {
        /// A message of this length, in which each byte has this value.
        Message(usize, u8),
        Dropped,
        TooLarge(usize),
    }

    impl StateMachine for Echo {
        type Command = Vec<u8>;
        type Event = Received;
        fn subjects(&self) -> Vec<String> {
            vec!["echo".to_owned()]
        }
        fn handle_message(&mut self, _: &str, bytes: &[u8], _: Moment) {
            std::thread::sleep(self.pause);
            let of = bytes.iter().copied().reduce(|a, b| if a == b { a } else { 0 });
            self.received = Some(Received::Message(bytes.len(), of.unwrap_or(0)));
        }
        fn handle_connection(&mut self, _: bool, _: Moment) {}
        fn handle_dropped(&mut self) {
            self.received = Some(Received::Dropped);
        }
        fn handle_too_large(&mut self, _: &str, bytes: usize) {
            self.received = Some(Received::TooLarge(bytes));
        }
        fn handle_command(&mut self, bytes: Vec<u8>, _: Moment) {
            self.to_send = Some(bytes);
        }
        fn handle_timeout(&mut self, _: Moment) {}
        fn poll_send(&mut self) -> Option<Outgoing> {
            self.to_send.take().map(|bytes| Outgoing { subject: "echo".to_owned(), bytes })
        }
        fn poll_event(&mut self) -> Option<Received> {
            self.received.take()
        }
    }

    const SOON: Duration = Duration::from_secs(20);

    fn local(nats: &weir_testing::NatsServer) -> NatsServer {
        NatsServer { url: nats.url(), ..NatsServer::default() }
    }

    #[test]
    fn a_message_of_several_megabytes_arrives_through_a_server_with_a_max_payload_of_one() {
        let nats = weir_testing::NatsServer::start();
        let link = connect(&local(&nats), Echo::default()).unwrap();
        for size in [100, 1 << 20, 7_654_321] {
            link.send(vec![b'x'; size]);
            assert_eq!(link.event(SOON), Ok(Received::Message(size, b'x')));
        }
        link.send(vec![b'x'; parts::LARGEST + 1]);
        assert_eq!(link.event(SOON), Ok(Received::TooLarge(parts::LARGEST + 1)));
    }

    #[test]
    fn messages_that_the_client_library_drops_are_reported() {
        let nats = weir_testing::NatsServer::start();
        let pause = Duration::from_millis(5);
        let link = connect_with_limit(&local(&nats), Echo { pause, ..Echo::default() }, 4).unwrap();
        let mut flood = nats.client();
        (0..5_000).for_each(|_| flood.publish("echo", b"x"));
        let began = Instant::now();
        while link.event(SOON) != Ok(Received::Dropped) {
            assert!(began.elapsed() < SOON, "dropped messages are not reported");
        }
    }

    #[test]
    fn a_server_that_is_not_there_is_named() {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = NatsServer { url: format!("nats://a:b@127.0.0.1:{port}"), ..NatsServer::default() };
        let error = connect(&server, Echo::default()).err().unwrap().to_string();
        assert!(error.starts_with(&format!("NATS at nats://127.0.0.1:{port}: ")), "{error}");
        assert!(error.ends_with("is a nats-server there?"), "{error}");
    }
    /// A server that says this to whoever connects, and this again and again to who has asked for anything.
    fn hostile(first: &'static [u8], flood: &'static [u8]) -> NatsServer {
        use std::io::Write as _;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("nats://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            // One that looks, one that connects, and what the library tries again.
            for stream in listener.incoming().take(4).flatten() {
                std::thread::spawn(move || {
                    let (mut stream, many) = (stream, flood.repeat((1 << 20) / flood.len()));
                    stream.set_write_timeout(Some(SOON)).unwrap();
                    stream.write_all(first)?;
                    if first.ends_with(b"\n") {
                        // CONNECT, PING, SUB and PING.
                        let mut asked = [0; 4_096];
                        while stream.read(&mut asked)? > 0 {
                            stream.write_all(b"PONG\r\n")?;
                            if asked.windows(3).any(|it| it == b"SUB") {
                                break;
                            }
                        }
                        stream.write_all(b"PONG\r\nMSG echo 1 2000000000\r\n")?;
                    }
                    loop {
                        stream.write_all(&many)?;
                    }
                    #[allow(unreachable_code, reason = "it names the type of the errors above")]
                    Ok::<_, io::Error>(())
                });
            }
        });
        NatsServer { url, ..NatsServer::default() }
    }

    #[test]
    fn a_server_that_introduces_itself_without_an_end_is_none() {
        let error = connect(&hostile(b"INFO {", b"\"a\": 1, "), Echo::default()).err().unwrap();
        assert!(matches!(error, NatsError::Flood(_)), "{error}");
    }

    #[test]
    fn a_message_that_is_longer_than_any_ends_the_link() {
        let info = b"INFO {\"server_id\":\"x\",\"max_payload\":1048576}\r\n";
        let link = connect(&hostile(info, b"x"), Echo::default()).unwrap();
        assert_eq!(link.event(SOON), Err(RecvTimeoutError::Disconnected));
        assert!(link.end().ends_with("between two messages; is one there?"), "{}", link.end());
    }
}
