//! Links between the pages, and the names of files in them.

use super::markdown::{anchors, code_spans, links};
use super::pages::{Page, pages, root};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// Takes `.` and `..` out of a path.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => assert!(plain.pop(), "{} leaves the repository", path.display()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// What is wrong with a link of a page.
fn wrong(page: &Page, pages: &[Page], link: &str) -> Option<&'static str> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
    let target = match file {
        "" => page.path.clone(),
        file => plain(&page.path.parent().unwrap_or(Path::new("")).join(file)),
    };
    if !root().join(&target).exists() {
        return Some("there is no such file");
    }
    if page.path.starts_with("docs") && !target.starts_with("docs") {
        return Some("the book has only what is below docs/; write the address of the repository");
    }
    let anchor = anchor?;
    match pages.iter().find(|it| it.path == target) {
        Some(page) if anchors(&page.text).iter().any(|it| it == anchor) => None,
        Some(_) => Some("there is no such heading"),
        None => Some("only pages have headings"),
    }
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let pages = pages();
    let mut found = 0;
    let mut all_wrong = Vec::new();
    for page in &pages {
        for link in links(&page.text) {
            found += 1;
            all_wrong.extend(
                wrong(page, &pages, &link).map(|why| format!("{}: {link}: {why}", page.path.display())),
            );
        }
    }
    assert!(found > 100, "{found} links");
    assert!(all_wrong.is_empty(), "{all_wrong:#?}");
}

#[test]
fn the_book_has_every_page() {
    let pages = pages();
    let summary = pages.iter().find(|page| page.path.ends_with("SUMMARY.md")).expect("docs/SUMMARY.md");
    let listed: BTreeSet<PathBuf> =
        links(&summary.text).iter().map(|link| Path::new("docs").join(link)).collect();
    let there =
        pages.iter().map(|page| &page.path).filter(|path| path.starts_with("docs") && **path != summary.path);
    let missing: Vec<_> = there.filter(|path| !listed.contains(*path)).collect();
    assert!(missing.is_empty(), "docs/SUMMARY.md does not list {missing:?}");
}

/// `rtmp/src/chunk/reader.rs` in ARCHITECTURE.md is a file below `crates/` (`NAME` stands for any); `scenarios/srs.yaml` anywhere is one of the
/// repository; what `Code:` names in docs/method is a crate, or a file or folder of its sources.
#[test]
fn every_file_that_is_named_is_there() {
    let mut missing = Vec::new();
    let (mut sources, mut scenarios, mut code) = (0, 0, 0);
    for page in pages() {
        let mut check = |name: &str, is_there: bool| {
            if !is_there {
                missing.push(format!("{}: {name}", page.path.display()));
            }
        };
        for span in code_spans(&page.text) {
            if span.contains("/src/") && span.ends_with(".rs") && !span.contains("NAME") {
                sources += 1;
                let path = span.strip_prefix("crates/").unwrap_or(&span);
                check(&span, root().join("crates").join(path).exists());
            }
            if let Some(file) = span.split(' ').find(|word| word.starts_with("scenarios/")) {
                scenarios += 1;
                check(&span, root().join(file).exists());
            }
        }
        if !page.path.starts_with("docs/method") {
            continue;
        }
        for paragraph in page.text.split("\n\n").filter_map(|it| it.strip_prefix("Code: ")) {
            // In brackets stands what is meant in the file.
            for span in
                code_spans(paragraph).into_iter().filter(|span| !paragraph.contains(&format!("(`{span}`)")))
            {
                code += 1;
                let (name, file) = span.split_once('/').unwrap_or((&span, ""));
                let source = root().join("crates").join(name).join("src").join(file);
                check(&span, source.exists() || source.with_extension("rs").exists());
            }
        }
    }
    assert!(
        sources > 20 && scenarios > 5 && code > 30,
        "{sources} sources, {scenarios} scenarios, {code} in docs/method"
    );
    assert!(missing.is_empty(), "{missing:#?}");
}
