//! The page's body as it stands, in parts, and what a tab that has seen an earlier one must be sent.
//!
//! A part that did not change is not sent again. Nothing is queued for a tab: one that reads slowly is sent the latest when it
//! has read what it was sent before, so that it costs no more memory than the page.

use std::fmt::Write as _;

/// An element of the page's body, with its `id` on its outermost tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its `id`, of which the page has no other.
    pub id: String,
    /// The whole element.
    pub html: String,
}

/// What is sent to new tabs first: when they come again if the link breaks, in milliseconds.
pub(crate) const GREETING: &str = "retry: 1000\n\n";
/// Keeps a link in use while nothing changes.
pub(crate) const STILL_HERE: &str = ": still here\n\n";

/// The body, numbered by its changes.
#[derive(Debug, Default)]
pub(crate) struct Page {
    parts: Vec<(Part, u64)>,
    /// The number of the last change.
    number: u64,
    /// The change in which parts came or went.
    shaped: u64,
    /// How it ended, and the change that said so.
    ended: Option<(String, u64)>,
}

impl Page {
    /// The body is this now.
    pub(crate) fn show(&mut self, parts: Vec<Part>) {
        let is_same_shape = parts.len() == self.parts.len()
            && parts.iter().zip(&self.parts).all(|(new, (old, _))| new.id == old.id);
        let number = self.number + 1;
        let changed = |(position, part): (usize, Part)| match self.parts.get(position) {
            Some((old, at)) if is_same_shape && *old == part => (part, *at),
            _ => (part, number),
        };
        let parts: Vec<_> = parts.into_iter().enumerate().map(changed).collect();
        if parts.iter().any(|(_, at)| *at == number) || !is_same_shape {
            self.number = number;
        }
        if !is_same_shape {
            self.shaped = number;
        }
        self.parts = parts;
    }

    /// Nothing follows: this is how it ended.
    pub(crate) fn end(&mut self, words: String) {
        self.number += 1;
        self.ended = Some((words, self.number));
    }

    /// The number of the last change.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// What has changed since a number, as server-sent events (HTML, section 9.2); none if nothing has.
    pub(crate) fn events_since(&self, seen: Option<u64>) -> Option<String> {
        // A number that is not ours yet is another listener's.
        let seen = seen.filter(|seen| *seen <= self.number && *seen >= self.shaped);
        let since = seen.unwrap_or(0);
        let mut events = String::new();
        let changed: String =
            self.parts.iter().filter(|(_, at)| *at > since).map(|(part, _)| part.html.as_str()).collect();
        if !changed.is_empty() {
            event(&mut events, self.number, if seen.is_some() { "interval" } else { "past" }, &changed);
        }
        if let Some((words, _)) = self.ended.as_ref().filter(|(_, at)| *at > since) {
            event(&mut events, self.number, "end", words);
        }
        (!events.is_empty()).then_some(events)
    }
}

fn event(events: &mut String, number: u64, name: &str, text: &str) {
    // A string takes all.
    let _ = write!(events, "id: {number}\nevent: {name}\n");
    for line in text.split(['\n', '\r']) {
        let _ = writeln!(events, "data: {line}");
    }
    events.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(texts: &[(&str, &str)]) -> Vec<Part> {
        let part = |(id, html): &(&str, &str)| Part { id: (*id).to_owned(), html: (*html).to_owned() };
        texts.iter().map(part).collect()
    }

    #[test]
    fn who_comes_late_gets_all_and_others_what_has_changed() {
        let mut page = Page::default();
        assert_eq!(page.events_since(None), None);
        page.show(parts(&[("a", "<p>1\n2</p>"), ("b", "<p>x</p>")]));
        let past = "id: 1\nevent: past\ndata: <p>1\ndata: 2</p><p>x</p>\n\n";
        assert_eq!(page.events_since(None).as_deref(), Some(past));
        assert_eq!(page.events_since(Some(1)), None);
        page.show(parts(&[("a", "<p>3</p>"), ("b", "<p>x</p>")]));
        let interval = "id: 2\nevent: interval\ndata: <p>3</p>\n\n";
        assert_eq!(page.events_since(Some(1)).as_deref(), Some(interval));
        // Nothing changed.
        page.show(parts(&[("a", "<p>3</p>"), ("b", "<p>x</p>")]));
        assert_eq!(page.number(), 2);
    }

    #[test]
    fn a_tab_that_skipped_seconds_is_sent_each_part_once() {
        let mut page = Page::default();
        page.show(parts(&[("a", "1"), ("b", "1")]));
        page.show(parts(&[("a", "2"), ("b", "1")]));
        page.show(parts(&[("a", "3"), ("b", "2")]));
        assert_eq!(page.events_since(Some(1)).as_deref(), Some("id: 3\nevent: interval\ndata: 32\n\n"));
    }

    #[test]
    fn where_parts_come_or_go_the_whole_page_is_sent() {
        let mut page = Page::default();
        page.show(parts(&[("a", "1")]));
        page.show(parts(&[("a", "1"), ("b", "2")]));
        assert_eq!(page.events_since(Some(1)).as_deref(), Some("id: 2\nevent: past\ndata: 12\n\n"));
        // As is a tab that an earlier listener at this place had.
        assert_eq!(page.events_since(Some(99)).as_deref(), Some("id: 2\nevent: past\ndata: 12\n\n"));
    }

    #[test]
    fn the_end_is_said_behind_the_last_change_and_to_those_who_come_after_it() {
        let mut page = Page::default();
        page.show(parts(&[("a", "1")]));
        page.end("interrupted".to_owned());
        let end = "id: 2\nevent: end\ndata: interrupted\n\n";
        assert_eq!(page.events_since(Some(1)).as_deref(), Some(end));
        assert_eq!(page.events_since(None).unwrap(), format!("id: 2\nevent: past\ndata: 1\n\n{end}"));
        assert_eq!(page.events_since(Some(2)), None);
    }
}
