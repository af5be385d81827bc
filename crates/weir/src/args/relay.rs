//! `weir relay`.

use crate::listen::listen_address;
use clap::Args;
use std::net::SocketAddr;
use weir_engine::scenario::{BitRateText, Span};
use weir_metrics::{Measure, parse_quantity};

/// `weir relay`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Relay {
    /// Where it takes datagrams
    #[arg(long, value_name = "[HOST]:PORT", value_parser = listen_address)]
    pub(crate) listen: SocketAddr,
    /// Where it sends them
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) to: String,
    /// The share of datagrams that are lost, in each direction
    #[arg(long, value_name = "RATIO", default_value = "0%", value_parser = ratio, help_heading = "The link")]
    pub(crate) loss: f64,
    /// Datagrams that are lost in a row
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000), help_heading = "The link")]
    pub(crate) burst: u32,
    /// The share of datagrams that arrive 16 ms late, so that others overtake them
    #[arg(long, value_name = "RATIO", default_value = "0%", value_parser = ratio, help_heading = "The link")]
    pub(crate) reorder: f64,
    /// How long each datagram is on its way, in each direction
    #[arg(long, value_name = "TIME", default_value = "0s", help_heading = "The link")]
    pub(crate) delay: Span,
    /// How much longer at the most, evenly distributed; datagrams stay in their order
    #[arg(long, value_name = "TIME", default_value = "0s", help_heading = "The link")]
    pub(crate) jitter: Span,
    /// Bits a second in each direction [default: not limited]
    #[arg(long, value_name = "BITRATE", help_heading = "The link")]
    pub(crate) rate: Option<BitRateText>,
    /// How long datagrams may wait because of --rate; what would wait longer is dropped
    #[arg(long, value_name = "TIME", default_value = "100ms", help_heading = "The link")]
    pub(crate) queue: Span,
    /// What decides which datagrams are lost and late: the same seed decides alike
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "The link")]
    pub(crate) seed: u64,
    /// For how long [default: until Ctrl-C]
    #[arg(short, long, value_name = "TIME")]
    pub(crate) duration: Option<Span>,
    /// Write what it carried as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn ratio(text: &str) -> Result<f64, String> {
    let quantity = parse_quantity(text).map_err(|error| error.to_string())?;
    let is_share = matches!(quantity.measure, Measure::Ratio) && (0.0..=1.0).contains(&quantity.value);
    is_share.then_some(quantity.value).ok_or_else(|| format!("{text} is no share; give for example 2%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_has_a_percent_sign() {
        assert_eq!((ratio("2%"), ratio("0.1%"), ratio("100%")), (Ok(0.02), Ok(0.001), Ok(1.0)));
        for text in ["101%", "2ms", "two"] {
            assert!(ratio(text).is_err(), "{text}");
        }
    }
}
