//! What URLs and options say of a connection: libsrt's own parameters behind the `?`, and flags for all URLs.

use crate::secret::{first_line, variable};
use clap::{Args, ValueHint};
use percent_encoding::percent_decode_str;
use std::path::{Path, PathBuf};
use std::time::Duration;
use weir_clients::{Target, TargetError, WorkloadError};
use weir_metrics::parse_duration;
use weir_shard::Sharing;
use weir_srt::{ConnectionOptions, Encryption, KeyLength, Passphrase};

/// The variable with the passphrase.
const PASSPHRASE: &str = "WEIR_SRT_PASSPHRASE";
/// Parameters of ffmpeg, libsrt's tools and others that make no difference to a caller in live mode.
const WITHOUT_EFFECT: [&str; 8] =
    ["transtype", "pkt_size", "payloadsize", "timeout", "connect_timeout", "tlpktdrop", "nakreport", "tsbpd"];

/// Acknowledgements, loss reports of a few packets and the like: their order among data packets is of no matter. The last words of a
/// connection have this length as well, and leave behind its data.
const LONGEST_CONTROL: usize = 64;

/// The options of callers.
#[derive(Args)]
#[command(next_help_heading = "SRT")]
pub(super) struct SrtFields {
    /// SRT: how long packets are held so that lost ones can be sent again, at the least; the server's own wish may be longer
    #[arg(long, value_name = "TIME", default_value = "120ms", value_parser = latency)]
    srt_latency: Duration,
    /// SRT: file whose first line is the passphrase, 10 to 79 bytes [environment: the passphrase itself in WEIR_SRT_PASSPHRASE]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    srt_passphrase_file: Option<PathBuf>,
    /// SRT: bits of the keys, if there is a passphrase: 128, 192 or 256
    #[arg(long, value_name = "BITS", default_value = "128", value_parser = key_length)]
    srt_key_length: KeyLength,
    /// SRT: UDP sockets that all clients of one server's address share, at least one a thread [default: one a client]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_535))]
    sockets: Option<u32>,
}

fn latency(text: &str) -> Result<Duration, String> {
    // The field of the handshake has 16 bits of milliseconds.
    let span = parse_duration(text).map_err(|error| error.to_string())?;
    if span.as_millis() > u128::from(u16::MAX) {
        return Err(format!("{text} is more than SRT can say: 65535ms at the most"));
    }
    Ok(span)
}

fn key_length(text: &str) -> Result<KeyLength, String> {
    text.parse()
        .ok()
        .filter(|bits| bits % 8 == 0)
        .and_then(|bits: usize| KeyLength::of_bytes(bits / 8))
        .ok_or_else(|| format!("{text} is no length of AES keys; give 128, 192 or 256"))
}

impl SrtFields {
    /// How clients share sockets, if they do.
    pub(super) fn sharing(&self) -> Option<Sharing> {
        self.sockets.map(|sockets| Sharing {
            sockets,
            recipient: weir_srt::packet::destination,
            short: LONGEST_CONTROL,
        })
    }

    /// What connections to all URLs have in common.
    pub(super) fn options(&self) -> Result<ConnectionOptions, WorkloadError> {
        let passphrase = passphrase(self.srt_passphrase_file.as_deref())?;
        let with = |passphrase| Encryption { key_length: self.srt_key_length, ..Encryption::new(passphrase) };
        let encryption = passphrase.map(with);
        Ok(ConnectionOptions {
            receive_latency: self.srt_latency,
            send_latency: self.srt_latency,
            encryption,
            ..ConnectionOptions::default()
        })
    }
}

/// The passphrase in the first line of a file; without one that of the environment, if there is one.
///
/// # Errors
/// The file cannot be read, or the passphrase is too short or too long.
pub fn passphrase(file: Option<&Path>) -> Result<Option<Passphrase>, WorkloadError> {
    let text = match file {
        Some(path) => Some(first_line(path)?).filter(|text| !text.is_empty()),
        None => variable(PASSPHRASE),
    };
    let read = text.map(|text| Passphrase::new(&text));
    read.transpose().map_err(|error| WorkloadError::Options(error.to_string()))
}

/// What a URL asks of its connections.
pub(super) struct Request {
    pub(super) options: ConnectionOptions,
    /// Whether weir waits for a caller at the URL's address, instead of calling.
    pub(super) is_listener: bool,
}

/// What a connection to this target is to be like. No value is shown: the passphrase may stand anywhere.
pub(super) fn request(target: &Target, shared: &ConnectionOptions) -> Result<Request, TargetError> {
    let mut options = shared.clone();
    let wrong = |missing: &'static str| TargetError::Incomplete { url: target.to_string(), missing };
    let (path, query) = target.path.split_once('?').unwrap_or((&target.path, ""));
    if !path.is_empty() && path != "/" {
        return Err(wrong("SRT has no paths; write srt://host:port?streamid=NAME"));
    }
    let (mut passphrase, mut refresh, mut announce) = (None, None, None);
    let mut is_listener = false;
    let mut length = shared.encryption.as_ref().map_or(KeyLength::default(), |it| it.key_length);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_decode_str(value).decode_utf8().map_err(|_| wrong("a parameter is not UTF-8"))?;
        let number = || value.parse::<u32>();
        let millis = || {
            let said = number().ok().filter(|millis| *millis <= u32::from(u16::MAX));
            said.map(|millis| Duration::from_millis(millis.into()))
                .ok_or_else(|| wrong("a latency in a URL is a number of milliseconds, 65535 at the most"))
        };
        match key {
            "streamid" if value.len() <= weir_srt::stream_id::MOST_BYTES => {
                options.stream_id = value.into_owned();
            }
            "streamid" => return Err(wrong("a stream ID has 512 bytes at the most")),
            "latency" => (options.receive_latency, options.send_latency) = (millis()?, millis()?),
            "rcvlatency" => options.receive_latency = millis()?,
            "peerlatency" => options.send_latency = millis()?,
            "passphrase" => passphrase = Some(value.into_owned()),
            "pbkeylen" => {
                let bytes = number().ok().filter(|bytes| *bytes != 0);
                length = bytes
                    .and_then(|bytes| KeyLength::of_bytes(bytes as usize))
                    .ok_or_else(|| wrong("pbkeylen is 16, 24 or 32 bytes"))?;
            }
            "kmrefreshrate" => refresh = number().ok().filter(|n| *n >= 2),
            "kmpreannounce" => announce = number().ok().filter(|n| *n >= 1),
            "mss" => {
                let mtu = number().ok().filter(|mtu| (244..=1_500).contains(mtu));
                options.mtu = mtu.ok_or_else(|| {
                    wrong("mss is 244 to 1500 bytes: one packet of MPEG-TS, or a frame of Ethernet")
                })?;
            }
            "peeridletimeo" => options.idle_timeout = millis()?,
            "mode" => {
                is_listener = match &*value {
                    "caller" => false,
                    "listener" => true,
                    _ => return Err(wrong("mode is caller or listener")),
                }
            }
            _ if WITHOUT_EFFECT.contains(&key) => {}
            _ => {
                return Err(wrong(
                    "there is a parameter that weir does not know; known: mode, streamid, latency, rcvlatency, peerlatency, passphrase, pbkeylen, kmrefreshrate, kmpreannounce, mss, peeridletimeo",
                ));
            }
        }
    }
    if let Some(text) = passphrase {
        let passphrase = Passphrase::new(&text).map_err(|_| wrong("a passphrase has 10 to 79 bytes"))?;
        options.encryption = Some(Encryption::new(passphrase));
    }
    if let Some(encryption) = &mut options.encryption {
        encryption.key_length = length;
        encryption.refresh_after = refresh.unwrap_or(encryption.refresh_after);
        encryption.announce_before =
            announce.unwrap_or(encryption.announce_before).min(encryption.refresh_after / 2);
        encryption.prepare();
    }
    Ok(Request { options, is_listener })
}

#[cfg(test)]
mod tests {
    use super::super::SCHEMES;
    use super::*;

    fn read(url: &str) -> Result<ConnectionOptions, String> {
        let target = Target::parse(url, "play", SCHEMES).map_err(|error| error.to_string())?;
        request(&target, &ConnectionOptions::default())
            .map(|it| it.options)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_url_says_what_libsrts_tools_say() {
        let read = read("srt://h:9000?streamid=#!::r=live/a,m=publish&latency=300&passphrase=correct%20horse&pbkeylen=32&kmrefreshrate=1000&kmpreannounce=900").unwrap();
        assert_eq!(read.stream_id, "#!::r=live/a,m=publish");
        assert_eq!((read.receive_latency.as_millis(), read.send_latency.as_millis()), (300, 300));
        let encryption = read.encryption.unwrap();
        assert_eq!(encryption.passphrase, Passphrase::new("correct horse").unwrap());
        assert_eq!(
            (encryption.key_length, encryption.refresh_after, encryption.announce_before),
            (KeyLength::Aes256, 1_000, 500)
        );
    }

    #[test]
    fn what_is_wrong_is_said_without_a_secret() {
        for (url, words) in [
            ("srt://h:1/live/a", "no paths"),
            ("srt://h:1?passphrase=s3cret", "10 to 79"),
            ("srt://h:1?pbkeylen=8", "16, 24 or 32"),
            ("srt://h:1?latency=1s", "milliseconds"),
            ("srt://h:1?s3cret=1", "does not know"),
            ("srt://h:1?mode=rendezvous", "caller or listener"),
            ("srt://h:1?mss=100", "mss is"),
        ] {
            let said = read(url).unwrap_err();
            assert!(said.contains(words) && !said.contains("s3cret"), "{said}");
        }
        assert!(latency("66s").is_err() && key_length("100").is_err());
        assert_eq!(key_length("192"), Ok(KeyLength::Aes192));
    }
}
