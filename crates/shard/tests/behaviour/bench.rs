//! A shard on real loopback sockets: sessions that keep a diary and do as their test says, and peers that are
//! plain sockets of the standard library.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use weir_metrics::{Failure, Moment};
use weir_shard::tls::{self, ClientTls, ServerName, Trust};
use weir_shard::{
    Context, Edge, Endpoint, Event, Incoming, Session, SessionId, Shard, Side, Transport, World, clock,
    listeners,
};

/// A test that is not over by then has failed.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// What a session was told.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Happened {
    Opening,
    Connected,
    Bytes(Vec<u8>),
    Writable,
    Timer,
    Woken,
    Edge(Edge),
    Stop,
    Datagram(SocketAddr, Vec<u8>),
    SideConnected,
    SideBytes(Vec<u8>),
    SideClosed(Failure),
    HungUp(Failure),
    Closed(Failure),
}

/// One line of the diary.
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) who: &'static str,
    pub(crate) at: Moment,
    pub(crate) what: Happened,
}

/// What the sessions of a bench share. A message from another thread wakes the session of that name.
#[derive(Default)]
pub(crate) struct Diary {
    pub(crate) lines: Vec<Line>,
    /// What the system or the TLS library said of the last link that went.
    pub(crate) words: String,
    ids: HashMap<&'static str, SessionId>,
    read: HashMap<&'static str, usize>,
}

impl World for Diary {
    type Message = &'static str;

    fn receive(&mut self, message: &'static str, _: Moment, wake: &mut Vec<SessionId>) {
        wake.extend(self.ids.get(message));
    }
}

impl Diary {
    /// The latest session of this name.
    pub(crate) fn id(&self, who: &str) -> SessionId {
        self.ids[who]
    }

    /// What happened to one, in order.
    pub(crate) fn of(&self, who: &str) -> Vec<Happened> {
        self.lines.iter().filter(|line| line.who == who).map(|line| line.what.clone()).collect()
    }

    /// When something happened to one.
    pub(crate) fn times(&self, who: &str, what: &Happened) -> Vec<Moment> {
        let lines = self.lines.iter().filter(|line| line.who == who && line.what == *what);
        lines.map(|line| line.at).collect()
    }

    /// How often something happened to one.
    pub(crate) fn count(&self, who: &str, what: &Happened) -> usize {
        self.times(who, what).len()
    }

    /// The reads of one, the empty ones included.
    pub(crate) fn reads(&self, who: &str) -> Vec<Vec<u8>> {
        let bytes = |what| if let Happened::Bytes(bytes) = what { Some(bytes) } else { None };
        self.of(who).into_iter().filter_map(bytes).collect()
    }

    /// All bytes that one has read.
    pub(crate) fn bytes(&self, who: &str) -> Vec<u8> {
        self.reads(who).concat()
    }

    /// How many bytes one has read.
    pub(crate) fn bytes_read(&self, who: &str) -> usize {
        self.read.get(who).copied().unwrap_or(0)
    }

    /// Why the link of one is gone.
    pub(crate) fn closed(&self, who: &str) -> Option<Failure> {
        self.of(who).into_iter().find_map(|what| match what {
            Happened::Closed(failure) => Some(failure),
            _ => None,
        })
    }
}

impl fmt::Debug for Happened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opening => f.write_str("opening"),
            Self::Connected => f.write_str("connected"),
            Self::Edge(_) => f.write_str("edge"),
            Self::Bytes(bytes) if bytes.len() <= 32 => {
                write!(f, "bytes {:?}", String::from_utf8_lossy(bytes))
            }
            Self::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Writable => f.write_str("writable"),
            Self::Timer => f.write_str("timer"),
            Self::Woken => f.write_str("woken"),
            Self::Stop => f.write_str("stop"),
            Self::Datagram(source, bytes) => write!(f, "{} bytes from {source}", bytes.len()),
            Self::SideConnected => f.write_str("connected beside"),
            Self::SideBytes(bytes) => write!(f, "{} bytes beside", bytes.len()),
            Self::SideClosed(failure) => write!(f, "closed beside: {}", failure.key()),
            Self::HungUp(failure) => write!(f, "hung up: {}", failure.key()),
            Self::Closed(failure) => write!(f, "closed: {}", failure.key()),
        }
    }
}

/// What a session does when it is told something.
pub(crate) type React = Box<dyn FnMut(Event<'_>, &mut Context<'_, Diary>) + Send>;

/// A session that only listens.
pub(crate) fn silent() -> React {
    Box::new(|_, _| {})
}

/// A session that sends back what it is sent.
pub(crate) fn echo() -> React {
    Box::new(|event, context| {
        if let Event::Bytes(bytes) = event {
            context.send(bytes);
        }
    })
}

/// A session that says this when its link is there.
pub(crate) fn say(words: Vec<u8>) -> React {
    Box::new(move |event, context| {
        if matches!(event, Event::Connected) {
            context.send(&words);
        }
    })
}

/// A session that sends all of this as the link takes it.
pub(crate) fn pour(bytes: Vec<u8>) -> React {
    let mut sent = 0;
    Box::new(move |event, context| {
        if matches!(event, Event::Connected | Event::Writable) {
            sent += context.write(&[std::io::IoSlice::new(&bytes[sent..])]);
        }
    })
}

struct Actor {
    name: &'static str,
    react: React,
}

impl Session<Diary> for Actor {
    fn handle(&mut self, event: Event<'_>, context: &mut Context<'_, Diary>) {
        let what = match event {
            Event::Opening => Happened::Opening,
            Event::Connected => Happened::Connected,
            Event::Bytes(bytes) => Happened::Bytes(bytes.to_vec()),
            Event::Writable => Happened::Writable,
            Event::Timer => Happened::Timer,
            Event::Woken => Happened::Woken,
            Event::Edge(edge) => Happened::Edge(edge),
            Event::Stop => Happened::Stop,
            Event::Datagrams(mut datagrams) => {
                context.world.ids.insert(self.name, context.id());
                while let Some(Incoming { arrived, source, bytes }) = datagrams.take_next() {
                    // A question is sent back.
                    if bytes.starts_with(b"?") {
                        context.send_datagram(source, bytes);
                    }
                    let what = Happened::Datagram(source, bytes.to_vec());
                    context.world.lines.push(Line { who: self.name, at: arrived, what });
                }
                return;
            }
            Event::Side(Side::Connected) => Happened::SideConnected,
            Event::Side(Side::Bytes(ref bytes)) => Happened::SideBytes(bytes.to_vec()),
            Event::Side(Side::Closed { failure, .. }) => Happened::SideClosed(failure),
            Event::HungUp { failure, .. } => Happened::HungUp(failure),
            Event::Closed { failure, .. } => Happened::Closed(failure),
        };
        context.world.ids.insert(self.name, context.id());
        if let Event::Closed { words, .. } = event {
            context.world.words = words.to_owned();
        }
        if let Event::Bytes(bytes) = event {
            *context.world.read.entry(self.name).or_default() += bytes.len();
        }
        context.world.lines.push(Line { who: self.name, at: context.now, what });
        (self.react)(event, context);
    }
}

/// A shard and its diary.
pub(crate) struct Bench {
    pub(crate) shard: Shard<Diary>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self { shard: Shard::new(Diary::default()).unwrap() }
    }

    /// A bench with one session whose plain link is established, and its peer.
    pub(crate) fn with(who: &'static str, react: React) -> (Self, TcpStream) {
        let mut bench = Self::new();
        let peer = bench.connect(who, react);
        (bench, peer)
    }

    /// One more session whose plain link is established, and its peer.
    pub(crate) fn connect(&mut self, who: &'static str, react: React) -> TcpStream {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        self.open(who, &endpoint(listener.local_addr().unwrap()), react);
        let peer = accept(&listener);
        self.run_until(|diary| diary.count(who, &Happened::Connected) > 0);
        peer
    }

    pub(crate) fn open(&mut self, who: &'static str, endpoint: &Endpoint, react: React) -> SessionId {
        self.shard.open(endpoint, Box::new(Actor { name: who, react })).unwrap()
    }

    /// A session with datagrams only, and where it hears them.
    pub(crate) fn hear(&mut self, who: &'static str, react: React) -> (SessionId, SocketAddr) {
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        self.shard.open_datagrams(local, Box::new(Actor { name: who, react })).unwrap()
    }

    /// A session whose link may not be had.
    pub(crate) fn try_open(
        &mut self,
        who: &'static str,
        endpoint: &Endpoint,
    ) -> Result<SessionId, weir_shard::OpenError> {
        self.shard.open(endpoint, Box::new(Actor { name: who, react: silent() }))
    }

    /// Takes connections on a free port; `react` makes what each session does.
    pub(crate) fn listen(
        &mut self,
        who: &'static str,
        tls: Option<Arc<rustls::ServerConfig>>,
        react: impl FnMut() -> React + Send + 'static,
    ) -> SocketAddr {
        let listener = lone_listener();
        self.listen_at(who, listener, tls, react)
    }

    /// Takes the connections of a listener.
    pub(crate) fn listen_at(
        &mut self,
        who: &'static str,
        listener: TcpListener,
        tls: Option<Arc<rustls::ServerConfig>>,
        mut react: impl FnMut() -> React + Send + 'static,
    ) -> SocketAddr {
        let address = listener.local_addr().unwrap();
        let make = move |_: &mut Diary, _| -> Box<dyn Session<Diary>> {
            Box::new(Actor { name: who, react: react() })
        };
        self.shard.listen(listener, tls, make).unwrap();
        address
    }

    pub(crate) fn diary(&self) -> &Diary {
        &self.shard.world
    }

    /// Tears out the lines of one.
    pub(crate) fn forget(&mut self, who: &str) {
        self.shard.world.lines.retain(|line| line.who != who);
    }

    /// Turns the loop until something has happened.
    pub(crate) fn run_until(&mut self, mut happened: impl FnMut(&Diary) -> bool) {
        let end = clock::now() + TEST_TIMEOUT;
        while !happened(&self.shard.world) {
            let now = clock::now();
            assert!(now < end, "it never happens; what did: {:?}", self.summary());
            self.shard.turn(now + Duration::from_millis(20)).unwrap();
        }
    }

    /// Turns the loop until a peer has done what it does.
    pub(crate) fn run_beside<T>(&mut self, peer: JoinHandle<T>) -> T {
        self.run_until(|_| peer.is_finished());
        peer.join().unwrap()
    }

    /// Turns the loop for `span`. What has not happened by then is held to be held back.
    pub(crate) fn run_for(&mut self, span: Duration) {
        let end = clock::now() + span;
        while clock::now() < end {
            self.shard.turn(end).unwrap();
        }
    }

    fn summary(&self) -> Vec<String> {
        let lines = &self.diary().lines;
        let last = &lines[lines.len().saturating_sub(40)..];
        last.iter().map(|line| format!("{}: {:?}", line.who, line.what)).collect()
    }
}

/// Long enough for what waits on loopback to arrive, were it not held back.
pub(crate) const A_WHILE: Duration = Duration::from_millis(150);

/// A plain link to an address.
pub(crate) fn endpoint(address: SocketAddr) -> Endpoint {
    Endpoint::tcp(address)
}

/// Takes one connection; no read or write of it lasts for ever.
pub(crate) fn accept(listener: &TcpListener) -> TcpStream {
    patient(listener.accept().unwrap().0)
}

/// A connection none of whose reads or writes lasts for ever.
pub(crate) fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream.set_write_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream
}

/// Bytes of which no two stretches are alike, so that a lost, doubled or moved one is seen.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let step = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..length).map(step).collect()
}

/// A certificate for `localhost` in files, and TLS settings of both sides made of them.
pub(crate) struct Papers {
    directory: tempfile::TempDir,
}

impl Papers {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let pair = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        std::fs::write(directory.path().join("chain.pem"), pair.cert.pem()).unwrap();
        std::fs::write(directory.path().join("key.pem"), pair.signing_key.serialize_pem()).unwrap();
        Self { directory }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn server(&self) -> Arc<rustls::ServerConfig> {
        tls::server_config(&self.file("chain.pem"), &self.file("key.pem")).unwrap()
    }

    pub(crate) fn client(&self) -> Arc<rustls::ClientConfig> {
        tls::client_config(&ClientTls { trust: Trust::File(self.file("chain.pem")), identity: None }).unwrap()
    }

    /// A link over TLS to an address whose certificate must carry `name`.
    pub(crate) fn endpoint(&self, address: SocketAddr, name: &'static str) -> Endpoint {
        let transport = Transport::Tls(self.client(), ServerName::try_from(name).unwrap());
        Endpoint { transport, ..endpoint(address) }
    }
}

/// An address that nothing listens on: the listener that had it is gone.
pub(crate) fn deserted() -> SocketAddr {
    TcpListener::bind(SocketAddr::from((IpAddr::V4(Ipv4Addr::LOCALHOST), 0))).unwrap().local_addr().unwrap()
}

/// A listener that shares its port with none.
pub(crate) fn lone_listener() -> TcpListener {
    listeners(SocketAddr::from(([127, 0, 0, 1], 0)), 1).unwrap().remove(0)
}

/// A listener whose queue is full, so that the kernel leaves who comes next without an answer; and what fills it.
pub(crate) fn full_listener() -> (SocketAddr, impl Drop) {
    struct Full {
        _listener: socket2::Socket,
        _queue: Vec<socket2::Socket>,
    }
    impl Drop for Full {
        fn drop(&mut self) {}
    }
    let stream = || socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let listener = stream();
    listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let wait = || {
        let socket = stream();
        socket.set_nonblocking(true).unwrap();
        let _ = socket.connect(&address);
        socket
    };
    let queue = (0..4).map(|_| wait()).collect();
    (address.as_socket().unwrap(), Full { _listener: listener, _queue: queue })
}
