//! Writing a description. Lines end with CR and LF, as the standard has it and servers insist on.

use std::fmt;

use super::{Description, Direction, Format, Media, MediaKind, Setup};

impl fmt::Display for Description {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "v=0\r\no=- {} 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n", self.session)?;
        if self.ice_lite {
            write!(out, "a=ice-lite\r\n")?;
        }
        if !self.bundle.is_empty() {
            write!(out, "a=group:BUNDLE {}\r\n", self.bundle.join(" "))?;
        }
        if self.extensions_mixed {
            write!(out, "a=extmap-allow-mixed\r\n")?;
        }
        write!(out, "a=msid-semantic: WMS *\r\n")?;
        self.media.iter().try_for_each(|media| write_media(media, out))
    }
}

/// In the order in which browsers write it: servers have parsers that were tried with nothing else.
fn write_media(media: &Media, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (kind, protocol) = match media.kind {
        MediaKind::Video => ("video", "UDP/TLS/RTP/SAVPF"),
        MediaKind::Audio => ("audio", "UDP/TLS/RTP/SAVPF"),
        MediaKind::Other => ("application", "UDP/DTLS/SCTP"),
    };
    write!(out, "m={kind} {} {protocol}", if media.rejected { 0 } else { 9 })?;
    if media.kind == MediaKind::Other {
        write!(out, " webrtc-datachannel")?;
    }
    for format in &media.formats {
        write!(out, " {}", format.payload_type)?;
    }
    write!(out, "\r\nc=IN IP4 0.0.0.0\r\n")?;
    if media.rtcp_mux {
        write!(out, "a=rtcp:9 IN IP4 0.0.0.0\r\n")?;
    }
    for candidate in &media.candidates {
        write!(out, "a=candidate:{candidate}\r\n")?;
    }
    if media.end_of_candidates {
        write!(out, "a=end-of-candidates\r\n")?;
    }
    write_transport(media, out)?;
    if !media.identifier.is_empty() {
        write!(out, "a=mid:{}\r\n", media.identifier)?;
    }
    for extension in &media.extensions {
        write!(out, "a=extmap:{} {}\r\n", extension.identifier, extension.name)?;
    }
    let direction = match media.direction {
        Direction::SendReceive => "sendrecv",
        Direction::SendOnly => "sendonly",
        Direction::ReceiveOnly => "recvonly",
        Direction::Inactive => "inactive",
    };
    write!(out, "a={direction}\r\n")?;
    if let Some(stream) = &media.stream {
        write!(out, "a=msid:{stream}\r\n")?;
    }
    for (set, name) in [(media.rtcp_mux, "rtcp-mux"), (media.rtcp_reduced_size, "rtcp-rsize")] {
        if set {
            write!(out, "a={name}\r\n")?;
        }
    }
    media.formats.iter().try_for_each(|format| write_format(format, out))?;
    for (source, repair) in &media.repairs {
        write!(out, "a=ssrc-group:FID {source} {repair}\r\n")?;
    }
    for source in &media.sources {
        write!(out, "a=ssrc:{source} cname:weir\r\n")?;
        // Servers older than `a=msid` look for it here (RFC 5576; SRS 6 looks nowhere else).
        if let Some(stream) = &media.stream {
            write!(out, "a=ssrc:{source} msid:{stream}\r\n")?;
        }
    }
    Ok(())
}

fn write_transport(media: &Media, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    if let Some(user_fragment) = &media.user_fragment {
        write!(out, "a=ice-ufrag:{user_fragment}\r\n")?;
    }
    if let Some(password) = &media.password {
        // All candidates stand here as well; JSEP has the option in every description (RFC 8829 section 5.2.1).
        write!(out, "a=ice-pwd:{password}\r\na=ice-options:trickle\r\n")?;
    }
    if let Some(fingerprint) = &media.fingerprint {
        write!(out, "a=fingerprint:{fingerprint}\r\n")?;
    }
    match media.setup {
        Some(Setup::Either) => write!(out, "a=setup:actpass\r\n"),
        Some(Setup::Active) => write!(out, "a=setup:active\r\n"),
        Some(Setup::Passive) => write!(out, "a=setup:passive\r\n"),
        None => Ok(()),
    }
}

fn write_format(format: &Format, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let payload_type = format.payload_type;
    if !format.name.is_empty() {
        write!(out, "a=rtpmap:{payload_type} {}/{}", format.name, format.clock_rate)?;
        if let Some(channels) = format.channels {
            write!(out, "/{channels}")?;
        }
        write!(out, "\r\n")?;
    }
    for feedback in &format.feedback {
        write!(out, "a=rtcp-fb:{payload_type} {feedback}\r\n")?;
    }
    if !format.parameters.is_empty() {
        write!(out, "a=fmtp:{payload_type} {}\r\n", format.parameters)?;
    }
    Ok(())
}
