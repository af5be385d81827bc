//! What a viewer plays: which of the variants of a Multivariant Playlist, whether parts, and which places of a recording.

use super::seeking::SeekInterval;
use clap::Args;
use std::str::FromStr;
use std::time::Duration;
use weir_clients::HttpVersion;
use weir_metrics::BitRate;

/// The options of viewers of HLS.
#[derive(Args)]
#[command(next_help_heading = "HLS")]
pub(super) struct HlsFields {
    /// Which variant of a multivariant playlist to play: the first that it lists, as a player does that has measured nothing yet, the
    /// one with the lowest or the highest BANDWIDTH, the highest that is not above a bit rate, or segment by segment what the link brings (first, lowest,
    /// highest, 3mbps, auto)
    #[arg(long, value_name = "WHICH", default_value = "first")]
    pub(super) variant: VariantChoice,
    /// What its link brings, if that is narrow: an option that other protocols have as well.
    #[arg(skip)]
    pub(super) bandwidth: Option<BitRate>,
    /// Tell servers with each request what it is for and how the player is (CMCD, CTA-5004), as players do whose CDN evaluates that: on or off
    #[arg(long, value_name = "on|off", default_value = "off", value_parser = on_or_off, action = clap::ArgAction::Set)]
    pub(super) cmcd: bool,
    /// Whether to play partial segments where the server has them, and to ask for what is to come (LL-HLS): on or off
    #[arg(long, value_name = "on|off", default_value = "on", value_parser = on_or_off, action = clap::ArgAction::Set)]
    pub(super) low_latency: bool,
    /// Of a recording (EXT-X-ENDLIST): where each viewer begins, from its beginning (10m)
    #[arg(long, value_name = "TIME", value_parser = weir_metrics::parse_duration)]
    pub(super) start_at: Option<Duration>,
    /// Of a recording: go to another place, any of it, that often (every:30s): what was buffered is of no use, and the segment at the new place is
    /// loaded first
    #[arg(long, value_name = "every:TIME")]
    pub(super) seek: Option<SeekInterval>,
    /// Which version of HTTP to ask by: over TLS the one that the server picks of 2 and 1.1, as browsers do, or one alone (auto, 1.1, 2)
    #[arg(long, value_name = "VERSION", default_value = "auto")]
    pub(super) http_version: HttpVersion,
}

fn on_or_off(text: &str) -> Result<bool, String> {
    match text {
        "on" | "true" => Ok(true),
        "off" | "false" => Ok(false),
        _ => Err(format!("{text} is neither on nor off")),
    }
}

/// A Variant Stream (`EXT-X-STREAM-INF`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Variant {
    pub(super) uri: String,
    /// Its peak, in bits per second (`BANDWIDTH`); 0 if it names none.
    pub(super) bandwidth: u64,
    /// The playlist of its sound, if that is apart: a rendition of its `AUDIO` group has a `URI`.
    pub(super) audio: Option<String>,
}

/// How one is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum VariantChoice {
    #[default]
    First,
    Lowest,
    Highest,
    /// The highest that is not above this, or the lowest.
    UpTo(BitRate),
    /// Like the first, and then segment by segment as fast as they come.
    Auto,
}

impl VariantChoice {
    /// The variant to play; of several that are alike, the first. `None` without variants.
    pub(super) fn choose(self, variants: &[Variant]) -> Option<&Variant> {
        let lowest = variants.iter().min_by_key(|it| it.bandwidth);
        // The last of several that are alike is what `max_by_key` takes.
        let highest = |most: f64| {
            variants.iter().rev().filter(|it| it.bandwidth as f64 <= most).max_by_key(|it| it.bandwidth)
        };
        match self {
            Self::First | Self::Auto => variants.first(),
            Self::Lowest => lowest,
            Self::Highest => highest(f64::INFINITY),
            Self::UpTo(rate) => highest(rate.bps()).or(lowest),
        }
    }
}

impl FromStr for VariantChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "first" => Ok(Self::First),
            "lowest" => Ok(Self::Lowest),
            "highest" => Ok(Self::Highest),
            "auto" => Ok(Self::Auto),
            rate => rate.parse().map(Self::UpTo).map_err(|_| {
                format!(
                    "{rate} is not a variant; write first, lowest, highest, auto or a bit rate such as 3mbps"
                )
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_are_chosen_by_place_or_bandwidth() {
        let variant = |uri: &str, bandwidth| Variant { uri: uri.to_owned(), bandwidth, audio: None };
        let all = [variant("b", 2_000), variant("c", 3_000), variant("a", 1_000), variant("c2", 3_000)];
        for (text, expected) in [
            ("first", "b"),
            ("lowest", "a"),
            ("highest", "c"),
            ("2500", "b"),
            ("2kbps", "b"),
            ("9mbps", "c"),
            ("10", "a"),
            ("auto", "b"),
        ] {
            let choice: VariantChoice = text.parse().unwrap();
            assert_eq!(choice.choose(&all).unwrap().uri, expected, "{text}");
        }
        assert_eq!(VariantChoice::Highest.choose(&[]), None);
        assert!("best".parse::<VariantChoice>().unwrap_err().contains("lowest"));
    }
}
