//! What was meant by a name that is not known.

/// The known name that differs from `written` in the fewest letters, if it differs in few: in a third of them at the
/// most. Many leave out what a name begins with, up to its dot, or how it ends, from an underscore or a plus on.
pub fn meant<'a>(written: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let begins_with_it =
        |name: &str| name.strip_prefix(written).is_some_and(|rest| rest.starts_with(['_', '+']));
    let distance = |name: &'a str| {
        let ending = name.rsplit('.').next().unwrap_or(name);
        let by_letters =
            strsim::damerau_levenshtein(written, name).min(strsim::damerau_levenshtein(written, ending));
        let ending = written.rsplit('.').next().unwrap_or(written);
        let most = (ending.chars().count() / 3).max(1);
        (by_letters <= most || begins_with_it(name)).then_some((by_letters, name))
    };
    known.filter_map(distance).min_by_key(|(letters, _)| *letters).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 7] = [
        "startup",
        "bitrate",
        "ts.lost_packets",
        "ts.trailing_bytes",
        "ts.version_changes",
        "ts.skipped_bytes",
        "rtmp.acks",
    ];

    #[test]
    fn a_slip_of_the_pen_is_put_right() {
        for (written, name) in [
            ("startupp", "startup"),
            ("statrup", "startup"),
            ("bit_rate", "bitrate"),
            ("ts.lost_packet", "ts.lost_packets"),
            ("lost_packets", "ts.lost_packets"),
            ("ts.skipped", "ts.skipped_bytes"),
            ("rtmp.ack", "rtmp.acks"),
        ] {
            assert_eq!(meant(written, KNOWN.into_iter()), Some(name), "{written}");
        }
    }

    #[test]
    fn a_scheme_that_was_mistyped_or_cut_short_is_found() {
        let schemes = ["rtmp", "rtmps", "whep+http", "whep+https", "mirakurun+http", "mqtt"];
        for (written, name) in
            [("rtpm", "rtmp"), ("rtmpt", "rtmp"), ("whip+http", "whep+http"), ("whep", "whep+http")]
        {
            assert_eq!(meant(written, schemes.into_iter()), Some(name), "{written}");
        }
        assert_eq!(meant("gopher", schemes.into_iter()), None);
    }

    #[test]
    fn what_resembles_nothing_is_not_guessed_at() {
        for written in ["ts.nosuch", "ts.", "x", "", "speed", "ts.lots_of_it", "rtmp.nope"] {
            assert_eq!(meant(written, KNOWN.into_iter()), None, "{written}");
        }
        assert_eq!(meant("bit_rate", ["ts.trailing_bytes", "ts.bytes"].into_iter()), None);
    }
}
