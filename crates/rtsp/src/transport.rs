//! How a track is carried: the field `Transport` (RFC 2326 section 12.39).

use std::fmt;

/// The protocol below RTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lower {
    /// Datagrams.
    Udp,
    /// Interleaved in the connection.
    Tcp,
}

/// One way to carry a track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transport {
    /// The protocol below RTP.
    pub lower: Lower,
    /// Whether packets are encrypted (`RTP/SAVP`, `RTP/SAVPF`).
    pub is_secure: bool,
    /// Whether packets go to a group of receivers.
    pub is_multicast: bool,
    /// The channels of RTP and RTCP.
    pub interleaved: Option<(u8, u8)>,
    /// The client's ports for RTP and RTCP.
    pub client_port: Option<(u16, u16)>,
    /// The server's.
    pub server_port: Option<(u16, u16)>,
    /// Where packets come from, if that is not the server's address.
    pub source: Option<String>,
    /// The synchronisation source of packets.
    pub ssrc: Option<u32>,
    /// Whether the client sends: `mode=record`.
    pub records: bool,
}

impl Transport {
    /// Interleaved, with these channels.
    pub fn tcp(channels: (u8, u8)) -> Self {
        Self { interleaved: Some(channels), ..Self::over(Lower::Tcp) }
    }

    /// As datagrams to these ports of the client.
    pub fn udp(ports: (u16, u16)) -> Self {
        Self { client_port: Some(ports), ..Self::over(Lower::Udp) }
    }

    fn over(lower: Lower) -> Self {
        Self {
            lower,
            is_secure: false,
            is_multicast: false,
            interleaved: None,
            client_port: None,
            server_port: None,
            source: None,
            ssrc: None,
            records: false,
        }
    }

    /// The same, in the direction of the server.
    #[must_use]
    pub fn recording(self) -> Self {
        Self { records: true, ..self }
    }

    /// The ways in a field, the best first; what is not RTP is left out.
    pub fn parse(value: &str) -> impl Iterator<Item = Self> {
        value.split(',').filter_map(Self::parse_one)
    }

    fn parse_one(text: &str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let mut protocol = parts.next()?.split('/');
        let (name, profile) = (protocol.next()?, protocol.next()?);
        let lower = match protocol.next() {
            Some(lower) if lower.eq_ignore_ascii_case("TCP") => Lower::Tcp,
            _ => Lower::Udp,
        };
        if !name.eq_ignore_ascii_case("RTP") {
            return None;
        }
        let profile = profile.to_ascii_uppercase();
        let mut transport = Self { is_secure: profile.starts_with("SAVP"), ..Self::over(lower) };
        for parameter in parts {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let value = value.trim().trim_matches('"');
            match name.trim().to_ascii_lowercase().as_str() {
                "multicast" => transport.is_multicast = true,
                "interleaved" => transport.interleaved = pair(value),
                "client_port" => transport.client_port = pair(value),
                "server_port" => transport.server_port = pair(value),
                "source" => transport.source = Some(value.to_owned()).filter(|it| !it.is_empty()),
                "ssrc" => transport.ssrc = u32::from_str_radix(value.trim_start_matches("0x"), 16).ok(),
                "mode" => {
                    let value = value.to_ascii_lowercase();
                    transport.records = value.contains("record") || value.contains("receive");
                }
                _ => {}
            }
        }
        Some(transport)
    }
}

/// `4-5`, or `4` alone, whose second is the next one.
fn pair<N: Copy + std::str::FromStr + TryFrom<u32> + Into<u32>>(value: &str) -> Option<(N, N)> {
    let (first, second) =
        value.split_once('-').map_or((value, None), |(first, second)| (first, Some(second)));
    let first: N = first.trim().parse().ok()?;
    let second = match second {
        Some(second) => second.trim().parse().ok()?,
        None => N::try_from(first.into() + 1).ok()?,
    };
    Some((first, second))
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.lower {
            Lower::Tcp => "RTP/AVP/TCP;unicast",
            Lower::Udp => "RTP/AVP;unicast",
        })?;
        if let Some((rtp, rtcp)) = self.interleaved {
            write!(f, ";interleaved={rtp}-{rtcp}")?;
        }
        if let Some((rtp, rtcp)) = self.client_port {
            write!(f, ";client_port={rtp}-{rtcp}")?;
        }
        if let Some((rtp, rtcp)) = self.server_port {
            write!(f, ";server_port={rtp}-{rtcp}")?;
        }
        if let Some(ssrc) = self.ssrc {
            write!(f, ";ssrc={ssrc:08X}")?;
        }
        if self.records { f.write_str(";mode=record") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for transport in [
            Transport::tcp((2, 3)).recording(),
            Transport { server_port: Some((9, 10)), ssrc: Some(0xAB), ..Transport::udp((4, 5)) },
        ] {
            let read: Vec<_> = Transport::parse(&transport.to_string()).collect();
            assert_eq!(read, [transport]);
        }
    }

    #[test]
    fn fields_of_servers_are_read() {
        let value = "RTP/AVP/UDP;unicast;client_port=5000;server_port=6000-6001;source=10.0.0.1;mode=\"PLAY\", RAW/RAW/UDP, \
            rtp/savp/tcp; interleaved=6-7; ssrc=0x1F; mode=\"RECORD\",RTP/AVP;multicast;port=1";
        let read: Vec<_> = Transport::parse(value).collect();
        assert_eq!(read.len(), 3);
        assert_eq!((read[0].client_port, read[0].server_port), (Some((5000, 5001)), Some((6000, 6001))));
        assert_eq!((read[0].lower, read[0].source.as_deref()), (Lower::Udp, Some("10.0.0.1")));
        assert_eq!((read[1].is_secure, read[1].interleaved, read[1].ssrc), (true, Some((6, 7)), Some(31)));
        assert!(read[1].records && read[2].is_multicast);
        assert_eq!(Transport::parse("RTP/AVP/TCP;interleaved=255").next().unwrap().interleaved, None);
    }
}
