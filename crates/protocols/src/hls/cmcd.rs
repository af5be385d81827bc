//! What a viewer tells servers of itself with each request (CTA-5004, Common Media Client Data), as fields of HTTP.

use std::time::Duration;
use weir_metrics::Moment;

/// What the names of all its fields begin with.
pub(super) const PREFIX: &str = "CMCD-";

/// A viewer's session.
#[derive(Clone, Debug)]
pub(super) struct Cmcd {
    id: String,
}

/// What is asked for (key `ot`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectType {
    Manifest,
    Audio,
    Video,
    /// Both in one.
    Muxed,
    Initialization,
    Key,
}

/// What there is to say with one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report {
    pub(super) object: ObjectType,
    /// The media time of what is asked for.
    pub(super) duration: Option<Duration>,
    /// The bit rate of the variant, in bits per second.
    pub(super) bandwidth: Option<u64>,
    /// Media in the buffer; `None` before playback.
    pub(super) buffer: Option<Duration>,
    pub(super) is_stalled: bool,
    pub(super) is_live: bool,
}

impl Cmcd {
    pub(super) fn new(client: u32, now: Moment) -> Self {
        // A version 4 UUID, as the standard asks for, of what no other viewer of this machine has.
        let mut mixed = now.as_nanos() ^ u64::from(client) << 32 ^ u64::from(std::process::id());
        let mut next = || {
            // SplitMix64.
            mixed = mixed.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let step = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let step = (step ^ step >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            step ^ step >> 31
        };
        let (one, two) = (next(), next());
        let id = format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            one >> 32,
            one >> 16 & 0xFFFF,
            one & 0xFFF,
            two >> 52,
            two & 0xFFFF_FFFF_FFFF
        );
        Self { id }
    }

    /// The fields of one request. CTA-5004, section 3.2: keys are in the order of the alphabet.
    pub(super) fn fields(&self, report: &Report) -> Vec<(&'static str, String)> {
        let object = match report.object {
            ObjectType::Manifest => "m",
            ObjectType::Audio => "a",
            ObjectType::Video => "v",
            ObjectType::Muxed => "av",
            ObjectType::Initialization => "i",
            ObjectType::Key => "k",
        };
        // Kilobits a second; milliseconds.
        let rate = report.bandwidth.map(|it| format!("br={}", it.div_ceil(1_000)));
        let duration = report.duration.map(|it| format!("d={}", it.as_millis()));
        let about_object = rate.into_iter().chain(duration).chain([format!("ot={object}")]);
        // "This value MUST be rounded to the nearest 100 ms."
        let hundreds = |span: Duration| (span.as_millis() + 50) / 100 * 100;
        let is_media = matches!(report.object, ObjectType::Audio | ObjectType::Video | ObjectType::Muxed);
        let buffer = report.buffer.filter(|_| is_media).map(|it| format!("bl={}", hundreds(it)));
        let is_urgent = report.buffer.is_none() || report.is_stalled;
        let about_request = buffer.into_iter().chain(is_urgent.then(|| "su".to_owned()));
        let about_request = about_request.collect::<Vec<_>>().join(",");
        let kind = if report.is_live { "l" } else { "v" };
        let mut fields = vec![
            ("CMCD-Object", about_object.collect::<Vec<_>>().join(",")),
            ("CMCD-Session", format!("sf=h,sid=\"{}\",st={kind}", self.id)),
        ];
        if !about_request.is_empty() {
            fields.push(("CMCD-Request", about_request));
        }
        if report.is_stalled {
            fields.push(("CMCD-Status", "bs".to_owned()));
        }
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_what_it_is_for_and_how_the_player_is() {
        let now = Moment::from_nanos(1);
        let cmcd = Cmcd::new(1, now);
        assert!(cmcd.id.len() == 36 && cmcd.id != Cmcd::new(2, now).id, "{}", cmcd.id);
        let report = Report {
            object: ObjectType::Muxed,
            duration: Some(Duration::from_secs(2)),
            bandwidth: Some(1_500_100),
            buffer: Some(Duration::from_millis(5_960)),
            is_stalled: false,
            is_live: true,
        };
        let session = format!("sf=h,sid=\"{}\",st=l", cmcd.id);
        let fields = |report: &Report| {
            cmcd.fields(report)
                .into_iter()
                .map(|(name, value)| format!("{name}: {value}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            fields(&report),
            [
                "CMCD-Object: br=1501,d=2000,ot=av".to_owned(),
                format!("CMCD-Session: {session}"),
                "CMCD-Request: bl=6000".to_owned()
            ]
        );
        let stalled = Report {
            buffer: None,
            is_stalled: true,
            duration: None,
            bandwidth: None,
            object: ObjectType::Manifest,
            ..report
        };
        assert_eq!(fields(&stalled)[2..], ["CMCD-Request: su", "CMCD-Status: bs"]);
        assert_eq!(fields(&stalled)[0], "CMCD-Object: ot=m");
    }
}
