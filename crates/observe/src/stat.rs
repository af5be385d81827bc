//! `/proc/PID/stat` and `/proc/PID/status`, of a process or of one thread (`/proc/PID/task/TID/…`).
//! Parsed by hand: these two are read for every thread every second.

use crate::field::{decimal, labelled, words};

/// The fields of `stat` that weir uses. Field numbers are those of proc_pid_stat(5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat<'a> {
    /// Field 2 without its parentheses: the name of the (main) thread, any bytes, 15 at most.
    pub(crate) comm: &'a [u8],
    /// Field 3.
    pub(crate) state: u8,
    /// Field 4: the pid of the parent.
    pub(crate) parent: u32,
    /// Field 12.
    pub(crate) major_faults: u64,
    /// Field 14, in clock ticks.
    pub(crate) user_ticks: u64,
    /// Field 15, in clock ticks.
    pub(crate) system_ticks: u64,
    /// Field 20: threads of the whole process.
    pub(crate) threads: u64,
    /// Field 22, in clock ticks since boot.
    pub(crate) start_ticks: u64,
    /// Field 24, in pages.
    pub(crate) rss_pages: u64,
}

impl<'a> Stat<'a> {
    /// `None` for a text that is no `stat`. A name may hold spaces, parentheses and line ends: it ends at
    /// the last `)`.
    pub(crate) fn parse(text: &'a [u8]) -> Option<Self> {
        let open = text.iter().position(|&byte| byte == b'(')?;
        let close = text.iter().rposition(|&byte| byte == b')')?;
        let comm = text.get(open + 1..close)?;
        // `words` starts at field 3; each `nth(n)` skips n fields and takes the next.
        let mut words = words(&text[close + 1..]);
        let state = *words.next()?.first()?;
        let mut number = |skipped: usize| words.nth(skipped).and_then(decimal);
        Some(Self {
            comm,
            state,
            parent: u32::try_from(number(0)?).ok()?,
            major_faults: number(7)?,
            user_ticks: number(1)?,
            system_ticks: number(0)?,
            threads: number(4)?,
            start_ticks: number(1)?,
            rss_pages: number(1)?,
        })
    }

    /// Nothing runs any more: a zombie (`Z`) or dead (`X`), with no thread that outlived the main one.
    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x') && self.threads <= 1
    }
}

/// `(voluntary, involuntary)` context switches of one thread out of its `status`.
pub(crate) fn context_switches(status: &[u8]) -> Option<(u64, u64)> {
    // The two lines are the last ones: looking from the end saves two thirds of the text.
    let tail = &status[status.len().saturating_sub(128)..];
    Some((labelled(tail, "voluntary_ctxt_switches:")?, labelled(tail, "nonvoluntary_ctxt_switches:")?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // Captured on Linux 6.18 from a process that had renamed itself.
    const HOSTILE: &[u8] = b"5419 (a) R 1 (b\n) S 5417 5417 4405 0 -1 4194304 102 0 3 0 250 75 0 0 20 0 4 0 \
        78522 3133440 411 18446744073709551615 94447847428096 94447847447977 140728594755568 0 0 0 0 0 0 0 0 \
        0 17 0 0 0 0 0 0 94447847463984 94447847465600 94448599257088 140728594758141 140728594758161 \
        140728594758161 140728594759659 0\n";

    #[test]
    fn a_name_may_hold_spaces_and_parentheses() {
        assert_eq!(
            Stat::parse(HOSTILE),
            Some(Stat {
                comm: b"a) R 1 (b\n",
                state: b'S',
                parent: 5417,
                major_faults: 3,
                user_ticks: 250,
                system_ticks: 75,
                threads: 4,
                start_ticks: 78522,
                rss_pages: 411,
            })
        );
    }

    #[test]
    fn a_zombie_is_dead_once_its_last_thread_is() {
        let stat = Stat::parse(HOSTILE).unwrap();
        assert!(!stat.is_dead());
        assert!(!Stat { state: b'Z', threads: 2, ..stat }.is_dead());
        assert!(Stat { state: b'Z', threads: 1, ..stat }.is_dead());
    }

    #[test]
    fn context_switches_are_the_last_two_lines() {
        let status = b"Name:\tcat\nUmask:\t0022\nMems_allowed_list:\t0\n\
            voluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(context_switches(status), Some((12, 3)));
        assert_eq!(context_switches(b"Name:\tcat\n"), None);
    }

    proptest! {
        #[test]
        fn no_text_panics(text: Vec<u8>, cut in 0..HOSTILE.len()) {
            Stat::parse(&text);
            Stat::parse(&HOSTILE[..cut]);
            context_switches(&text);
        }
    }
}
