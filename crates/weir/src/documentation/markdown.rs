//! As much of Markdown as the tests need: fenced blocks, headings, links, spans of code.

/// A fenced block of code.
pub(super) struct Block<'a> {
    /// The first word behind the fence: `sh`, `yaml`, `text`, or nothing.
    pub(super) language: &'a str,
    /// The second word is `not-run`: commands that need what a test does not have, or a text that is not weir's.
    pub(super) is_not_run: bool,
    pub(super) text: String,
}

/// The fenced blocks of a page, in order.
pub(super) fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<Block<'_>> = None;
    for line in text.lines() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(info), None) => {
                let (language, mark) = info.trim().split_once(' ').unwrap_or((info.trim(), ""));
                assert!(matches!(mark, "" | "not-run"), "a fence has the mark {mark}");
                open = Some(Block { language, is_not_run: mark == "not-run", text: String::new() });
            }
            (None, Some(block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a fence is not closed");
    blocks
}

/// The lines of a page outside of fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        inside ^= is_fence;
        !inside && !is_fence
    })
}

/// The anchors of a page's headings, as GitHub and mdBook make them: letters, digits, `_` and `-` in small letters,
/// `-` for a blank, `-1` behind the second of a name.
pub(super) fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for line in prose(text) {
        let Some((marks, title)) = line.split_once(' ') else { continue };
        if marks.is_empty() || marks.len() > 6 || marks.bytes().any(|byte| byte != b'#') {
            continue;
        }
        let name: String = title
            .trim()
            .chars()
            .filter(|it| it.is_alphanumeric() || matches!(it, '_' | '-' | ' '))
            .map(|it| if it == ' ' { '-' } else { it.to_ascii_lowercase() })
            .collect();
        let before = |it: &&String| {
            it.strip_prefix(&name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let same = anchors.iter().filter(before).filter(|it| is_numbered(&it[name.len()..])).count();
        anchors.push(if same == 0 { name } else { format!("{name}-{same}") });
    }
    anchors
}

/// Whether it is nothing, or a `-` and a number.
fn is_numbered(rest: &str) -> bool {
    rest.is_empty() || rest.strip_prefix('-').is_some_and(|number| number.parse::<u32>().is_ok())
}

/// The spans of code of a page, outside of fenced blocks.
pub(super) fn code_spans(text: &str) -> Vec<String> {
    let text: String = prose(text).flat_map(|line| [line, "\n"]).collect();
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Where the links and pictures of a page lead.
pub(super) fn links(text: &str) -> Vec<String> {
    let text: String = prose(text).flat_map(|line| [line, " "]).collect();
    // A link inside of a span of code is an example.
    let plain: String = text.split('`').step_by(2).collect();
    let inline = plain.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    inline.map(|target| target.split(' ').next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn anchors_are_those_of_github() {
    let text = "# A & b\n\n## 22. What `weir check` counts\n```sh\n# no heading\n```\n## Twice\n## Twice\n#no\n## Twice over";
    assert_eq!(anchors(text), ["a--b", "22-what-weir-check-counts", "twice", "twice-1", "twice-over"]);
}

#[test]
fn links_are_found_in_prose_and_not_in_code() {
    let text = "[a](b.md#c) and ![p](q.png), [`code`](d.md)\n`[no](link)`\n```\n[no](either)\n```\n[over\nlines](e.md)";
    assert_eq!(links(text), ["b.md#c", "q.png", "d.md", "e.md"]);
    assert_eq!(code_spans(text), ["code", "[no](link)"]);
    let blocks = blocks("x\n```sh not-run\nweir\n```\n```\ny\n```");
    assert_eq!((blocks[0].language, blocks[0].is_not_run, &*blocks[0].text), ("sh", true, "weir\n"));
    assert_eq!((blocks[1].language, blocks[1].is_not_run), ("", false));
}
