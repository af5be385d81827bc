//! WebRTC: WHEP, WHIP and OvenMediaEngine's signalling.

use crate::asked;
use crate::comeback::{self, EndGrace, Reconnect};
use crate::content::{self, Content, Stamp};
use crate::given::Given;
use crate::group::Group;
use crate::http;
use crate::link::{self, Bandwidth, Queue};
use crate::protocol::{Circumstances, Excess, Play, Protocol, Publish, Serve};
use crate::secret::{first_line, variable};
use crate::served_stream::{ServedStream, StreamSource};
use crate::unfilled::{PUBLISHER, VIEWER};
use crate::viewer::{self, Viewer};
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;
use weir_clients::rtc::VideoCodec;
use weir_clients::{Placeholders, PlayOptions, RtcOptions, Scheme, WorkloadError, rtc};
use weir_metrics::common::{PLAYED, UNITS};

/// Of what is lost for good, after repair, one packet in a hundred is seen in most pictures.
const FEW_LOST: &str = "lost.ratio <= 1%";

/// A few datagrams of others reach any port. More of them are media that the server sends from an address that it has not proven, or
/// another session's: they are in no other figure.
const STRANGERS: Excess = Excess {
    counter: rtc::STRANGE,
    beside: UNITS,
    above: 0.01,
    invalid_from: None,
    words: "{count} datagrams beside {beside} packets are from addresses that no connectivity check has proven, or of no agreed kind: they are in no other figure, and packets that count as lost may be among them: look whether the server sends media from an address other than its candidates, and what else sends to these ports",
};

/// A sender that adapts has a narrow link drop some packets now and then, when it looks for more.
const DROPPED_BY_LINK: Excess = Excess {
    counter: rtc::LINK_DROPPED,
    beside: UNITS,
    above: 0.05,
    invalid_from: None,
    words: "viewers' links, which {bandwidth} makes narrow, dropped {count} packets beside {beside} that they carried (link.dropped): the server sends more than they take, and has adapted where link.adapt_time has a value",
};

/// A camera that is off, or a server that passes no pictures on.
const NO_PICTURES: Excess = Excess {
    counter: rtc::WITHOUT_PICTURES,
    beside: PLAYED,
    above: 0.0,
    invalid_from: None,
    words: "{count} of {beside} viewers agreed with the server on pictures and got sound alone: it is taken for a stream without pictures, such as a camera that is off",
};

/// What viewers of pictures are asked that the run publishes itself: a server passes them on.
const PICTURES_COME: &str = "rtc.without_pictures == 0";

/// The variable with the token.
const TOKEN: &str = "WEIR_RTC_TOKEN";

/// Viewers by WHEP.
pub(crate) const WHEP: Protocol = Protocol {
    schemes: rtc::WHEP_SCHEMES,
    placeholders: Placeholders::STREAM,
    play: Some(Play {
        options: &[
            Group::of::<Viewer>(),
            Group::of::<Token>(),
            Group::of::<Pictures>(),
            Group::of::<Feedback>(),
            Group::of::<Bandwidth>(),
            Group::of::<Queue>(),
            Group::of::<http::Fields>(),
            Group::of::<EndGrace>(),
            Group::of::<Reconnect>(),
        ],
        make: |making| {
            let options = viewer_options(making.options, making.given)?;
            rtc::whep(making.urls, &options, &rtc_options(making.given)?)
        },
        served: Some(served(rtc::WHEP_SCHEMES)),
        ..PLAY
    }),
    ..SIGNALLED
};

/// Viewers of OvenMediaEngine.
pub(crate) const OVEN: Protocol = Protocol { schemes: rtc::OVEN_SCHEMES, play: Some(PLAY), ..SIGNALLED };

/// Publishers by WHIP.
pub(crate) const WHIP: Protocol = Protocol {
    schemes: rtc::WHIP_SCHEMES,
    placeholders: Placeholders::STREAM,
    columns: &[],
    publish: Some(Publish {
        options: &[
            Group::of::<Content>(),
            Group::of::<Stamp>(),
            Group::of::<Token>(),
            Group::of::<http::Fields>(),
            Group::of::<Reconnect>(),
        ],
        output: content::output,
        asked: |_, _| Vec::new(),
        unfilled: PUBLISHER,
        make: |making| {
            let options = content::options(making.options, making.given, making.run.seed)?;
            rtc::whip(making.urls, &options, &rtc_options(making.given)?)
        },
    }),
    ..SIGNALLED
};

/// A stream with sound that WebRTC has. Viewers of it are sent datagrams, whatever carries the signalling.
const fn served(schemes: &'static [Scheme]) -> ServedStream {
    let stream = ServedStream::published(schemes, "/live/doctor");
    ServedStream { source: StreamSource::RtmpWithOpus, is_costly: true, ..stream }
}

/// What the ways of signalling have in common.
const SIGNALLED: Protocol = Protocol {
    schemes: &[],
    placeholders: Placeholders::STREAM,
    suffix: None,
    // A relay may be reached over TLS, whatever carries the signalling.
    redirects: true,
    schema: rtc::SCHEMA,
    columns: rtc::COLUMNS,
    excesses: &[STRANGERS, DROPPED_BY_LINK, NO_PICTURES],
    datagrams: None,
    play: None,
    publish: None,
    ingest: None,
    serve: Some(Serve {
        server: &weir_origin::RTC,
        help: "WebRTC on one port, usually :3333: WHIP in, WHEP and OvenMediaEngine's signalling out; pages for browsers",
        needs_publishers: true,
    }),
};

/// Viewers of OvenMediaEngine.
const PLAY: Play = Play {
    options: &[
        Group::of::<Viewer>(),
        Group::of::<Pictures>(),
        Group::of::<Feedback>(),
        Group::of::<Bandwidth>(),
        Group::of::<Queue>(),
        Group::of::<http::Fields>(),
        Group::of::<EndGrace>(),
        Group::of::<Reconnect>(),
    ],
    asked: of_viewers,
    unfilled: |_| VIEWER,
    shown: None,
    least_published: None,
    discovers: false,
    loads_ahead: false,
    served: Some(served(rtc::OVEN_SCHEMES)),
    clients: viewer::one,
    make: |making| {
        let options = viewer_options(making.options, making.given)?;
        rtc::oven(making.urls, &options, &rtc_options(making.given)?)
    },
};

/// What viewers are asked.
fn of_viewers(given: &Given, of: &Circumstances<'_>) -> Vec<&'static str> {
    if link::is_narrow(given) {
        return asked::of_run(&asked::OF_NARROW_VIEWERS, &[FEW_LOST]);
    }
    let promised = [FEW_LOST, PICTURES_COME];
    let are_published = usize::from(of.publishes_pictures);
    asked::of_viewers(given, &asked::OF_VIEWERS, &promised[..=are_published])
}

/// Who may play or publish.
#[derive(Args)]
#[command(next_help_heading = "WebRTC")]
struct Token {
    /// File whose first line is the bearer token of WHEP or WHIP [environment: the token itself in WEIR_RTC_TOKEN]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    token_file: Option<PathBuf>,
}

/// What viewers say to the server while they play.
#[derive(Args)]
#[command(next_help_heading = "WebRTC")]
struct Feedback {
    /// What viewers do not say to the server, to be like other testers; repeatable
    #[arg(long, value_name = "WHAT")]
    rtcp_off: Vec<Kind>,
}

/// What viewers ask for.
#[derive(Args)]
#[command(next_help_heading = "WebRTC")]
struct Pictures {
    /// The one codec of pictures to ask for [default: what a browser offers, and the server chooses]
    #[arg(long, value_name = "CODEC")]
    codec: Option<Codec>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Codec {
    /// VP8
    Vp8,
    /// VP9
    Vp9,
    /// H.264
    H264,
    /// H.265
    H265,
    /// AV1
    Av1,
}

impl From<Codec> for VideoCodec {
    fn from(codec: Codec) -> Self {
        match codec {
            Codec::Vp8 => Self::Vp8,
            Codec::Vp9 => Self::Vp9,
            Codec::H264 => Self::H264,
            Codec::H265 => Self::H265,
            Codec::Av1 => Self::Av1,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Requests for lost packets
    Nack,
    /// Requests for keyframes
    Pli,
    /// Receiver reports
    Reports,
    /// What bandwidth there is: transport-wide congestion control, REMB
    Bandwidth,
}

/// The options of viewers, whose session ends with their stream.
fn viewer_options(shared: PlayOptions, given: &Given) -> Result<PlayOptions, WorkloadError> {
    let returns = comeback::returns_after_end(given)?;
    Ok(PlayOptions { returns, ..viewer::options(shared, given)? })
}

fn rtc_options(given: &Given) -> Result<RtcOptions, WorkloadError> {
    let off = given.read::<Feedback>()?.rtcp_off;
    let says = |kind| !off.contains(&kind);
    Ok(RtcOptions {
        token: token(&given.read()?)?,
        given: http::fields(given)?,
        nack: says(Kind::Nack),
        pli: says(Kind::Pli),
        reports: says(Kind::Reports),
        bandwidth: says(Kind::Bandwidth),
        codec: given.read::<Pictures>()?.codec.map(VideoCodec::from),
        link: link::options(given)?,
    })
}

fn token(said: &Token) -> Result<Option<String>, WorkloadError> {
    let token = match &said.token_file {
        Some(path) => Some(first_line(path)?.trim().to_owned()).filter(|token| !token.is_empty()),
        None => variable(TOKEN),
    };
    match token {
        // Anything else would end the line of the request.
        Some(token) if !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Err(WorkloadError::Options("a bearer token has only visible ASCII characters in it".to_owned()))
        }
        token => Ok(token),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_metrics::Recorder;

    #[test]
    fn what_is_off_is_not_said() {
        let mut given = Given::default();
        given.0.insert("rtcp_off".to_owned(), vec!["nack".to_owned(), "reports".to_owned()]);
        let made = rtc_options(&given).unwrap();
        assert_eq!((made.nack, made.pli, made.reports, made.bandwidth), (false, true, false, true));
        let wrong = rtc_options(&Given::default().with("rtcp_off", "fir")).unwrap_err().to_string();
        assert!(wrong.contains("nack, pli, reports, bandwidth"), "{wrong}");
    }

    #[test]
    fn datagrams_of_strangers_are_a_warning_beyond_one_beside_a_hundred_packets() {
        let warnings = |units, strange| {
            let mut totals = Recorder::new(rtc::SCHEMA);
            totals.count(UNITS, units);
            totals.count(rtc::STRANGE, strange);
            crate::warnings("whep+http", &totals)
        };
        assert!(warnings(0, 0).is_empty() && warnings(100_000, 1_000).is_empty());
        assert!(warnings(100_000, 1_001)[0].starts_with("1,001 datagrams beside 100,000 packets are from"));
        assert_eq!(warnings(0, 5).len(), 1, "all that came are strangers'");
    }

    #[test]
    fn a_token_is_the_first_line_of_its_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let read = |text: &str| {
            std::fs::write(file.path(), text).unwrap();
            let given = Given::default().with("token_file", file.path().to_str().unwrap());
            rtc_options(&given).map(|options| options.token).map_err(|error| error.to_string())
        };
        assert_eq!(read("abc.def\nmore").unwrap().as_deref(), Some("abc.def"));
        assert!(read("a b").unwrap_err().contains("visible ASCII"));
    }
}
