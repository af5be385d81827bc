//! What paths name: `/APP/STREAM.m3u8`, and beside it a folder with the segments.

use super::settings::SegmentContainer;

/// The name of a key.
const KEY: &str = "segments.key";

/// Something that is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Resource {
    Playlist,
    /// A segment, by its Media Sequence Number.
    Segment(u64),
    /// A part, by its name.
    Part(u64),
    /// A Media Initialization Section.
    Map(u64),
    /// What segments and parts are encrypted with.
    Key,
}

impl Resource {
    /// The stream, and what of it, that a path names.
    pub(super) fn find(segments: &[impl AsRef<str>]) -> Option<(String, Self)> {
        let (last, folders) = segments.split_last()?;
        let join = |last: Option<&str>| {
            let parts: Vec<_> = folders.iter().map(AsRef::as_ref).chain(last).collect();
            parts.join("/")
        };
        let last = last.as_ref();
        if let Some(stream) = last.strip_suffix(".m3u8") {
            return (!stream.is_empty()).then(|| (join(Some(stream)), Self::Playlist));
        }
        if last == KEY {
            return Some((join(None), Self::Key));
        }
        let (name, extension) = last.rsplit_once('.')?;
        let resource = match (name.split_once('-'), extension) {
            (None, "ts" | "m4s") => Self::Segment(name.parse().ok()?),
            (Some(("part", id)), "ts" | "m4s") => Self::Part(id.parse().ok()?),
            (Some(("init", id)), "mp4") => Self::Map(id.parse().ok()?),
            _ => return None,
        };
        Some((join(None), resource))
    }

    /// Its URI, relative to the playlist of a stream.
    pub(super) fn uri(&self, stream: &str, container: SegmentContainer) -> String {
        let name = stream.rsplit('/').next().unwrap_or_default();
        // RFC 3986, section 2.3: what is not unreserved could mean something else in a relative reference.
        let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let folder: String = name
            .bytes()
            .map(
                |byte| {
                    if is_unreserved(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
                },
            )
            .collect();
        let extension = match container {
            SegmentContainer::TransportStream => "ts",
            SegmentContainer::FragmentedMp4 => "m4s",
        };
        match self {
            Self::Playlist => format!("{folder}.m3u8"),
            Self::Segment(number) => format!("{folder}/{number}.{extension}"),
            Self::Part(id) => format!("{folder}/part-{id}.{extension}"),
            Self::Map(id) => format!("{folder}/init-{id}.mp4"),
            Self::Key => format!("{folder}/{KEY}"),
        }
    }

    /// The media type (RFC 8216, section 10; RFC 4337).
    pub(super) fn content_type(&self, container: SegmentContainer) -> &'static str {
        match (self, container) {
            (Self::Playlist, _) => "application/vnd.apple.mpegurl",
            (Self::Key, _) => "application/octet-stream",
            (Self::Segment(_) | Self::Part(_), SegmentContainer::TransportStream) => "video/mp2t",
            _ => "video/mp4",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_a_playlist_names_leads_to_what_it_names() {
        for resource in [Resource::Segment(7), Resource::Part(12), Resource::Key] {
            for container in [SegmentContainer::TransportStream, SegmentContainer::FragmentedMp4] {
                let uri = resource.uri("live/a", container);
                let path: Vec<_> = format!("live/{uri}").split('/').map(str::to_owned).collect();
                assert_eq!(Resource::find(&path), Some(("live/a".to_owned(), resource.clone())));
            }
        }
        let map = Resource::Map(0).uri("a", SegmentContainer::FragmentedMp4);
        assert_eq!(map, "a/init-0.mp4");
        assert_eq!(Resource::find(&["a", "init-0.mp4"]), Some(("a".to_owned(), Resource::Map(0))));
        assert_eq!(Resource::find(&["live", "a.m3u8"]), Some(("live/a".to_owned(), Resource::Playlist)));
        for none in [".m3u8", "a", "a.ts", "-1.ts", "part-.ts", "init-1.ts", "99999999999999999999.ts"] {
            assert_eq!(Resource::find(&["live", none]), None, "{none}");
        }
        assert_eq!(Resource::find(&[] as &[&str]), None);
    }

    #[test]
    fn a_name_is_never_more_than_a_name() {
        let uri = Resource::Segment(1).uri("live/a b:?#%é", SegmentContainer::TransportStream);
        assert_eq!(uri, "a%20b%3A%3F%23%25%C3%A9/1.ts");
    }
}
