//! The parts of an RTMP URL: application and stream.

use crate::target::{Target, TargetError};

/// What an RTMP client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// The application, with its instance.
    pub(super) app: String,
    /// The URL up to and with the application, without user.
    pub(super) tc_url: String,
    /// The stream's name, with the query.
    pub(super) stream: String,
}

impl Address {
    /// Splits the path of a URL as ffmpeg does: one part of the path, or two of three and more, are the
    /// application; the rest is the stream. A query in the first part (SRS: `live?vhost=a/stream`)
    /// belongs to the application.
    ///
    /// # Errors
    /// The path names no application or no stream.
    pub(super) fn of(target: &Target) -> Result<Self, TargetError> {
        let incomplete = |missing| TargetError::Incomplete { url: target.to_string(), missing };
        let path = target.path.strip_prefix('/').unwrap_or("");
        let query = path.find('?').unwrap_or(path.len());
        let slashes: Vec<usize> = match path.find('/') {
            // The query of an application ends with the last slash.
            Some(first) if query < first => path.rfind('/').into_iter().collect(),
            _ => path[..query].match_indices('/').map(|(at, _)| at).collect(),
        };
        let split = match slashes[..] {
            [] => return Err(incomplete("no stream in the path; write rtmp://host/app/stream")),
            [only] => only,
            [_, second, ..] => second,
        };
        let (app, stream) = (&path[..split], &path[split + 1..]);
        if app.is_empty() || stream.is_empty() {
            return Err(incomplete(
                "the path lacks the application or the stream; write rtmp://host/app/stream",
            ));
        }
        Ok(Self {
            app: app.to_owned(),
            tc_url: format!("{}/{app}", target.base()),
            stream: stream.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtmp::SCHEMES;

    fn address(url: &str) -> Result<Address, TargetError> {
        Address::of(&Target::parse(url, "play", SCHEMES).unwrap())
    }

    #[test]
    fn application_and_stream_are_told_apart() {
        for (url, app, stream, tc_url) in [
            ("rtmp://h/live/a", "live", "a", "rtmp://h/live"),
            ("rtmp://h:1936/live/a?t=1", "live", "a?t=1", "rtmp://h:1936/live"),
            ("rtmp://h/live/inst/a", "live/inst", "a", "rtmp://h/live/inst"),
            ("rtmp://h/live/inst/a/b", "live/inst", "a/b", "rtmp://h/live/inst"),
            ("rtmp://h/live/a?t=x/y", "live", "a?t=x/y", "rtmp://h/live"),
            ("rtmp://h/live?vhost=v/a", "live?vhost=v", "a", "rtmp://h/live?vhost=v"),
            ("rtmps://[::1]/live/a", "live", "a", "rtmps://[::1]/live"),
        ] {
            let found = address(url).unwrap();
            assert_eq!((&*found.app, &*found.stream, &*found.tc_url), (app, stream, tc_url), "{url}");
        }
    }

    #[test]
    fn a_user_is_in_no_part_of_it() {
        let address = address("rtmp://me:secret@h/live/a").unwrap();
        assert_eq!((&*address.app, &*address.stream, &*address.tc_url), ("live", "a", "rtmp://h/live"));
    }

    #[test]
    fn a_path_without_stream_is_an_error_that_shows_how_to_write_one() {
        for url in
            ["rtmp://h", "rtmp://h/", "rtmp://h/live", "rtmp://h/live/", "rtmp://h//a", "rtmp://h/live?v=1"]
        {
            let said = address(url).unwrap_err().to_string();
            assert!(said.contains("rtmp://host/app/stream"), "{url}: {said}");
        }
    }
}
