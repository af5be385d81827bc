//! What helps against a failure that every client met: one line for a person, by the failure's kind.

use weir_metrics::Failure;
use weir_setting::named;

/// What carries the links of those that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    Rtmp,
    /// Datagrams only.
    Udp,
    Other,
}

/// What to look at first. Over RTMP, where applications are the server's own, one that it does not have is the likeliest of mistakes.
pub(crate) fn remedy(kind: Failure, carrier: Carrier) -> String {
    let is_rtmp = carrier == Carrier::Rtmp;
    named(match kind {
        Failure::ConnectionRefused if carrier == Carrier::Udp => {
            "start the server, or check host and port: `ss -lun` on its machine lists what listens"
        }
        Failure::ConnectTimeout if carrier == Carrier::Udp => {
            "the host is off, a firewall drops what is sent there, or nothing listens: `ss -lun` on its machine lists what does; {timeout} waits longer"
        }
        Failure::PathLost if carrier == Carrier::Udp => {
            "the server stopped answering: look into its log, and check that UDP reaches it; {reconnect} has clients come back"
        }
        Failure::ClosedByPeer | Failure::Reset if is_rtmp => {
            "check the application (rtmp://HOST/APPLICATION/STREAM), then port and scheme; the log of the server says more"
        }
        Failure::StreamNotFound if is_rtmp => {
            "check application and stream (rtmp://HOST/APPLICATION/STREAM), and publish it first: `weir publish URL` makes one"
        }
        Failure::ConnectionRefused => {
            "start the server, or check host and port: `ss -ltn` on its machine lists what listens"
        }
        Failure::Unreachable => "check the address: `ip route get ADDRESS` says whether a way leads there",
        Failure::ConnectTimeout => {
            "the host is off, a firewall drops what is sent there, or its queue of connections is full; {timeout} waits longer"
        }
        Failure::HandshakeTimeout => {
            "what listens there speaks another protocol, or TLS: check port and scheme; {timeout} waits longer"
        }
        Failure::RequestTimeout => {
            "the server let the request wait: check application and stream; {timeout} waits longer"
        }
        Failure::TlsFailed => {
            "check scheme and port; {cacert} FILE trusts the authority of the server, {insecure} takes any certificate"
        }
        Failure::NoMedia => {
            "check that the stream is being published and that it has a keyframe; {timeout} waits longer"
        }
        Failure::StreamNotFound => {
            "check the stream's name, and publish it first: `weir publish URL` makes one"
        }
        Failure::Unauthorized => "check user and password, or the key of the stream",
        Failure::Unavailable => "the server has nothing free: end other viewers, or ask for fewer",
        Failure::RedirectFailed => {
            "check where the server sends its clients; `WEIR_LOG=debug` shows each step"
        }
        Failure::IceTimeout | Failure::PathLost => {
            "check that UDP reaches the server, and that the addresses which it announces can be reached from here; `?transport=tcp` behind the URL tries TURN"
        }
        Failure::DtlsTimeout => {
            "check that UDP reaches the server: ICE found a way, and DTLS got no answer on it"
        }
        Failure::DtlsFailed | Failure::SrtpFailed | Failure::CounterOffer | Failure::MalformedInput => {
            "the server speaks another dialect or another protocol: `WEIR_LOG=debug` shows the dialogue"
        }
        Failure::Rejected
        | Failure::SubscriptionRefused
        | Failure::MessageRefused
        | Failure::Disconnected => "the server refused, as it says itself: its log says more",
        Failure::StreamEnded => "its publisher went away: keep one running while viewers play",
        Failure::ClosedByPeer | Failure::Reset => {
            "the server closed the link: check port and scheme, and look into its log"
        }
        Failure::PingTimeout | Failure::SendTimeout => {
            "the server hangs, or the way to it is cut: look into its log"
        }
        Failure::OutOfDescriptors => "raise the limit of open files (`ulimit -n`), or use fewer clients",
        Failure::OutOfPorts => "add local addresses with {bind_addr}, or use fewer clients",
        Failure::SocketError => "this machine refused the sockets: `dmesg` and `ulimit -a` may say why",
        Failure::SourceFailed => "check the file that is published",
    })
}
