//! The stream ID: what a caller asks a listener for.

/// draft-sharabayko-srt-01, section 3.2.1.3: "The maximum allowed size of the StreamID extension is 512 bytes."
pub const MOST_BYTES: usize = 512;

/// What a caller wants to do with a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Receive it.
    Request,
    /// Send it.
    Publish,
    /// Both.
    Bidirectional,
}

/// A mode that is in no list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the mode of the stream ID is neither request nor publish nor bidirectional")]
pub struct UnknownMode;

/// A stream ID as an access control string: `#!::r=live/a,m=publish` (appendix B).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessControl<'a> {
    /// `r`: the resource; of an ID without the syntax, all of it.
    pub resource: Option<&'a str>,
    /// `m`: the mode.
    pub mode: Option<&'a str>,
    /// `u`: the user.
    pub user: Option<&'a str>,
    /// `h`: the host.
    pub host: Option<&'a str>,
    /// `s`: the session.
    pub session: Option<&'a str>,
    /// `t`: the type of the content.
    pub kind: Option<&'a str>,
}

impl<'a> AccessControl<'a> {
    /// Reads a stream ID.
    pub fn parse(text: &'a str) -> Self {
        let Some(list) = text.strip_prefix("#!::") else {
            return Self { resource: Some(text).filter(|text| !text.is_empty()), ..Self::default() };
        };
        let mut read = Self::default();
        for pair in list.split(',') {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let place = match key {
                "r" => &mut read.resource,
                "m" => &mut read.mode,
                "u" => &mut read.user,
                "h" => &mut read.host,
                "s" => &mut read.session,
                "t" => &mut read.kind,
                _ => continue,
            };
            place.get_or_insert(value);
        }
        read
    }

    /// What the mode says. None: it says nothing.
    ///
    /// # Errors
    /// The mode is not in the list.
    pub fn mode(&self) -> Result<Option<Mode>, UnknownMode> {
        match self.mode {
            None => Ok(None),
            Some("request") => Ok(Some(Mode::Request)),
            Some("publish") => Ok(Some(Mode::Publish)),
            Some("bidirectional") => Ok(Some(Mode::Bidirectional)),
            Some(_) => Err(UnknownMode),
        }
    }
}

/// Appends the contents of an extension that holds this text.
pub(crate) fn write(text: &str, out: &mut Vec<u8>) {
    //= draft-sharabayko-srt-01, section 3.2.1.3
    //# The content is stored as 32-bit little endian words.
    for word in text.as_bytes().chunks(4) {
        let mut bytes = [0; 4];
        bytes[..word.len()].copy_from_slice(word);
        bytes.reverse();
        out.extend(bytes);
    }
}

/// The text of an extension, if it is one.
pub(crate) fn read(contents: &[u8]) -> Option<String> {
    if contents.len() > MOST_BYTES {
        return None;
    }
    let mut bytes = Vec::with_capacity(contents.len());
    for word in contents.chunks(4) {
        bytes.extend(word.iter().rev());
    }
    //= draft-sharabayko-srt-01, section 3.2.1.3
    //# If the actual payload is less than the declared length, the remaining bytes are set to zeros.
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_each_word_are_reversed() {
        let mut out = Vec::new();
        write("STREAM", &mut out);
        assert_eq!(out, b"ERTS\0\0MA");
        assert_eq!(read(&out).as_deref(), Some("STREAM"));
        assert_eq!(read(&[0; 513]), None);
        assert_eq!(read(&[0xFF; 4]), None);
    }

    #[test]
    fn an_access_control_string_is_taken_apart() {
        let read = AccessControl::parse("#!::u=admin,r=live/a=b,m=publish,x=1,r=other");
        assert_eq!(
            (read.resource, read.user, read.mode()),
            (Some("live/a=b"), Some("admin"), Ok(Some(Mode::Publish)))
        );
        assert_eq!(AccessControl::parse("live/a").resource, Some("live/a"));
        assert_eq!(AccessControl::parse("").resource, None);
        assert_eq!(AccessControl::parse("#!::m=steal").mode(), Err(UnknownMode));
    }
}
