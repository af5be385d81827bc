//! A page in Chromium, driven by the DevTools protocol: what it shows, and whatever the browser finds wrong with it.

use super::{KilledOnDrop, program};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tungstenite::protocol::Role;
use tungstenite::{Message, WebSocket};

/// On a machine that has other things to do.
const TEST_TIMEOUT: Duration = Duration::from_secs(90);

/// A tab of a browser of its own.
pub(crate) struct BrowserTab {
    socket: WebSocket<TcpStream>,
    session: Option<String>,
    calls: u64,
    /// Exceptions, messages of the console, and what the browser refused.
    troubles: Vec<Value>,
    _browser: KilledOnDrop,
    _profile: TempDir,
}

impl BrowserTab {
    /// A browser with this page, at a width in CSS pixels.
    pub(crate) fn open(url: &str, width: u32) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let mut command = program("chromium", "chromium");
        command
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--no-first-run", "--disable-background-networking", "--remote-debugging-port=0"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut browser = KilledOnDrop::start(&mut command);
        let mut said = BufReader::new(browser.0.stderr.take().unwrap()).lines().map_while(Result::ok);
        let address =
            said.find_map(|line| Some(line.split_once("DevTools listening on ws://")?.1.to_owned()));
        // A pipe that nobody reads would hold the browser up.
        std::thread::spawn(move || said.for_each(drop));
        let socket = connect(&address.expect("Chromium says where its DevTools are"));
        let mut tab = Self {
            socket,
            session: None,
            calls: 0,
            troubles: Vec::new(),
            _browser: browser,
            _profile: profile,
        };
        let target = tab.call("Target.createTarget", &json!({"url": "about:blank"}))["targetId"].clone();
        let attached = tab.call("Target.attachToTarget", &json!({"targetId": target, "flatten": true}));
        tab.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            tab.call(&format!("{domain}.enable"), &json!({}));
        }
        let screen = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        tab.call("Emulation.setDeviceMetricsOverride", &screen);
        tab.call("Page.navigate", &json!({"url": url}));
        tab
    }

    /// What an expression comes to in the page.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        self.evaluated(expression).unwrap_or_else(|why| panic!("{expression}: {why:#}"))
    }

    /// Waits until an expression comes to what is looked for. On a page that is still to come it may come to nothing.
    pub(crate) fn shows(&mut self, what: &str, expression: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let value = self.evaluated(expression);
            match value {
                Ok(value) if is_it(&value) => return value,
                _ if began.elapsed() < TEST_TIMEOUT => std::thread::sleep(Duration::from_millis(100)),
                other => panic!("never {what}: {expression} is {other:#?}"),
            }
        }
    }

    /// Loads the page again, and returns when the page that was there is gone.
    pub(crate) fn reload(&mut self) {
        self.evaluate("window.isOld = true");
        self.call("Page.reload", &json!({}));
        self.shows("another page", "window.isOld === undefined", |value| *value == true);
    }

    /// What the browser has found wrong so far.
    pub(crate) fn troubles(&mut self) -> &[Value] {
        // Events that came before this answer have been read.
        self.evaluate("0");
        &self.troubles
    }

    fn evaluated(&mut self, expression: &str) -> Result<Value, Value> {
        let parameters = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.answer("Runtime.evaluate", &parameters)?;
        if answer["exceptionDetails"].is_null() { Ok(answer["result"]["value"].take()) } else { Err(answer) }
    }

    fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.answer(method, parameters).unwrap_or_else(|why| panic!("{method}: {why:#}"))
    }

    /// What the browser answers, or its error.
    fn answer(&mut self, method: &str, parameters: &Value) -> Result<Value, Value> {
        self.calls += 1;
        let mut request = json!({"id": self.calls, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            request["sessionId"] = session.as_str().into();
        }
        self.socket.send(Message::text(request.to_string())).unwrap();
        loop {
            let Message::Text(text) = self.socket.read().unwrap() else { continue };
            let mut message: Value = serde_json::from_str(&text).unwrap();
            if message["id"] == self.calls {
                let error = message["error"].take();
                return if error.is_null() { Ok(message["result"].take()) } else { Err(error) };
            }
            let troubles = ["Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"];
            if troubles.iter().any(|it| message["method"] == *it) {
                self.troubles.push(message["params"].take());
            }
        }
    }
}

/// The opening handshake of RFC 6455, section 4.1, with a peer that is known to keep it.
fn connect(address: &str) -> WebSocket<TcpStream> {
    let (host, path) = address.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let request = format!(
        "GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: d2VpciB3ZWlyIHdlaXIgdw==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&head));
    WebSocket::from_raw_socket(stream, Role::Client, None)
}
