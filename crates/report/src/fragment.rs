//! A page of this crate in parts, so that only changed parts need be sent: the elements of its body, each with an `id`.
//!
//! The page is the one that the files have: it is made once, and taken apart behind the templates, so that what is seen while a
//! run goes on is what its report says at the end.

/// The elements that a body is made of, on whatever level of nesting they are found first.
const ELEMENTS: [&str; 5] = ["header", "nav", "section", "footer", "aside"];

/// An element of a page's body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Its `id`, of which there is no other among them.
    pub id: String,
    /// The whole element.
    pub html: String,
}

/// What the pages look like: the contents of their `style` element.
pub fn page_style() -> &'static str {
    include_str!("../templates/page.css")
}

/// What the pages run: it shows the values of a plot under the pointer, also of plots that come later.
pub fn page_script() -> &'static str {
    include_str!("../templates/hover.js")
}

/// The elements of a page that [`Report`](crate::Report) has written. Those without an `id` are given one that
/// begins with `prefix`; those of another page on the same screen must have another.
pub fn fragments(page: &str, prefix: &str) -> Vec<Fragment> {
    let body = page.split_once("<body>").map_or(page, |(_, body)| body);
    let body = body.rsplit_once("</body>").map_or(body, |(body, _)| body);
    let mut fragments: Vec<Fragment> = Vec::new();
    let (mut rest, mut begun, mut depth) = (body, None, 0_usize);
    while let Some(at) = rest.find('<') {
        let here = body.len() - rest.len() + at;
        rest = &rest[at + 1..];
        let (is_end, name) = match rest.strip_prefix('/') {
            Some(name) => (true, name),
            None => (false, rest),
        };
        if !ELEMENTS.iter().any(|element| is_tag(name, element)) {
            continue;
        }
        if !is_end {
            begun = begun.or(Some(here));
            depth += 1;
            continue;
        }
        depth = depth.saturating_sub(1);
        let (0, Some(begin), Some(length)) = (depth, begun, rest.find('>')) else { continue };
        rest = &rest[length + 1..];
        begun = None;
        let html = &body[begin..body.len() - rest.len()];
        let number = fragments.len();
        let known: Vec<&str> = fragments.iter().map(|it| it.id.as_str()).collect();
        let fragment = identified(html, &known, prefix, number);
        fragments.push(fragment);
    }
    fragments
}

/// Whether a tag's text begins with this name.
fn is_tag(text: &str, name: &str) -> bool {
    text.strip_prefix(name).is_some_and(|rest| rest.starts_with(['>', ' ', '\n']))
}

fn identified(html: &str, known: &[&str], prefix: &str, number: usize) -> Fragment {
    let tag = html.split_once('>').map_or(html, |(tag, _)| tag);
    let own = tag.split_once(" id=\"").and_then(|(_, rest)| rest.split_once('"')).map(|(id, _)| id);
    if let Some(id) = own.filter(|id| !known.contains(id) && prefix.is_empty()) {
        return Fragment { id: id.to_owned(), html: html.to_owned() };
    }
    let id = format!("{prefix}part-{number}");
    let html = match own {
        Some(own) => html.replacen(&format!(" id=\"{own}\""), &format!(" id=\"{id}\""), 1),
        None => format!("{tag} id=\"{id}\"{}", &html[tag.len()..]),
    };
    Fragment { id, html }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_its_outermost_elements() {
        let page = "<html><body>\n<header class=\"a\"><h1>x</h1></header>\n<main>\n<section id=\"run\"><section>in</section></section>\n\
                    <section id=\"run\">again</section></main><footer>f</footer></body></html>";
        let found = fragments(page, "");
        let found: Vec<_> = found.iter().map(|it| (it.id.as_str(), it.html.as_str())).collect();
        let expected = [
            ("part-0", "<header class=\"a\" id=\"part-0\"><h1>x</h1></header>"),
            ("run", "<section id=\"run\"><section>in</section></section>"),
            ("part-2", "<section id=\"part-2\">again</section>"),
            ("part-3", "<footer id=\"part-3\">f</footer>"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_parts_of_two_pages_have_names_of_their_own() {
        let page = "<body><section id=\"run\"></section></body>";
        assert_eq!(fragments(page, "all-")[0].html, "<section id=\"all-part-0\"></section>");
    }
}
