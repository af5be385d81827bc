#![doc = include_str!("../README.md")]

use std::sync::LazyLock;

/// What either end sends: zeros, in blocks of at most this length. They are made when they are first asked for: a megabyte of them
/// would be a megabyte of the program's file.
pub static ZEROS: LazyLock<Box<[u8]>> = LazyLock::new(|| vec![0; LARGEST_BLOCK].into_boxed_slice());

/// The largest block, in bytes.
pub const LARGEST_BLOCK: usize = 1 << 20;

/// What the peer answers when it accepts.
pub const CONSENT: &[u8] = b"weir bulk/1 ok\n";

/// Bytes that a total takes.
pub const TOTAL_LEN: usize = 8;

/// The longest line that is listened to.
const LINE_LIMIT: usize = 64;

/// What every line begins with.
const NAME: &str = "weir bulk/1 ";

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// The client sends.
    Up,
    /// The peer sends.
    Down {
        /// Bytes a block, 1 to [`LARGEST_BLOCK`].
        block: u32,
    },
}

/// A peer that speaks another protocol; the start of what it sent, in printable characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not weir's bulk protocol; the peer must be `weir origin --bulk`")]
pub struct Malformed(String);

impl Request {
    /// The line to send.
    pub fn line(self) -> String {
        match self {
            Self::Up => format!("{NAME}up\n"),
            Self::Down { block } => format!("{NAME}down {block}\n"),
        }
    }

    /// Reads a request from the beginning of `bytes`, and says how long its line is; none if it is not whole yet.
    ///
    /// # Errors
    /// What came is no request.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, Malformed> {
        let Some(line) = line(bytes)? else { return Ok(None) };
        let words = line.strip_prefix(NAME.as_bytes()).and_then(|words| std::str::from_utf8(words).ok());
        let request = match words.map(|words| words.split_once(' ').unwrap_or((words, ""))) {
            Some(("up", "")) => Some(Self::Up),
            Some(("down", block)) => {
                let block = block.parse().ok().filter(|block| (1..=LARGEST_BLOCK as u32).contains(block));
                block.map(|block| Self::Down { block })
            }
            _ => None,
        };
        // A number has one spelling.
        let request = request.filter(|request| request.line().trim_end().as_bytes() == line);
        request.map(|request| Some((request, line.len() + 1))).ok_or_else(|| malformed(line))
    }
}

/// Whether the peer accepted, once its answer is whole.
///
/// # Errors
/// It said something else.
pub fn consent(bytes: &[u8]) -> Result<bool, Malformed> {
    match line(bytes)? {
        None => Ok(false),
        Some(line) if line.len() + 1 == CONSENT.len() && CONSENT.starts_with(line) => Ok(true),
        Some(line) => Err(malformed(line)),
    }
}

/// A line without its end, if it is whole.
fn line(bytes: &[u8]) -> Result<Option<&[u8]>, Malformed> {
    let heard = &bytes[..bytes.len().min(LINE_LIMIT)];
    // A peer that speaks another protocol may never end a line.
    let whole = heard.len().min(NAME.len());
    if heard[..whole] != NAME.as_bytes()[..whole] {
        return Err(malformed(heard));
    }
    match heard.iter().position(|byte| *byte == b'\n') {
        Some(end) => Ok(Some(&heard[..end])),
        None if heard.len() == LINE_LIMIT => Err(malformed(heard)),
        None => Ok(None),
    }
}

fn malformed(bytes: &[u8]) -> Malformed {
    Malformed(bytes.escape_ascii().to_string())
}

/// Reads the totals of a peer that receives.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    partial: [u8; TOTAL_LEN],
    held: usize,
    latest: u64,
}

impl Totals {
    /// Takes what came; says by how many bytes the total has grown. One that shrinks has not.
    pub fn read(&mut self, bytes: &[u8]) -> u64 {
        let before = self.latest;
        for byte in bytes {
            self.partial[self.held] = *byte;
            self.held += 1;
            if self.held == TOTAL_LEN {
                self.held = 0;
                self.latest = self.latest.max(u64::from_be_bytes(self.partial));
            }
        }
        self.latest - before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_request_is_read_as_it_was_written() {
        for request in
            [Request::Up, Request::Down { block: 1 }, Request::Down { block: LARGEST_BLOCK as u32 }]
        {
            let line = request.line();
            assert_eq!(Request::parse(line.as_bytes()), Ok(Some((request, line.len()))));
            for end in 0..line.len() {
                assert_eq!(Request::parse(&line.as_bytes()[..end]), Ok(None));
            }
        }
    }

    #[test]
    fn who_speaks_something_else_is_told_at_once() {
        for line in [
            "GET / HTTP/1.1\r\n",
            "weir bulk/2 up\n",
            "weir bulk/1 down 0\n",
            "weir bulk/1 down 07\n",
            "weir bulk/1 down 1048577\n",
            "w\n",
        ] {
            assert!(Request::parse(line.as_bytes()).is_err(), "{line}");
        }
        let endless = format!("{NAME}{}", "x".repeat(LINE_LIMIT));
        assert!(Request::parse(endless.as_bytes()).is_err());
        let error = consent(b"220 ftp\r\n").unwrap_err().to_string();
        assert_eq!(
            error,
            "'220 ftp\\r\\n' is not weir's bulk protocol; the peer must be `weir origin --bulk`"
        );
    }

    #[test]
    fn consent_may_come_in_pieces() {
        assert_eq!(consent(&CONSENT[..5]), Ok(false));
        assert_eq!(consent(&[CONSENT, &7u64.to_be_bytes()].concat()), Ok(true));
    }

    proptest! {
        #[test]
        fn totals_add_up_however_they_are_cut(
            mut totals in prop::collection::vec(any::<u64>(), 1..20),
            cuts in prop::collection::vec(0usize..160, 0..10),
        ) {
            totals.sort_unstable();
            let bytes: Vec<u8> = totals.iter().flat_map(|total| total.to_be_bytes()).collect();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).chain([0, bytes.len()]).collect();
            cuts.sort_unstable();
            let mut reader = Totals::default();
            let grown: u64 = cuts.windows(2).map(|cut| reader.read(&bytes[cut[0]..cut[1]])).sum();
            prop_assert_eq!(grown, *totals.last().unwrap());
        }

        #[test]
        fn nothing_that_comes_is_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (Request::parse(&bytes), consent(&bytes), Totals::default().read(&bytes));
        }
    }
}
