//! The guide's pictures: each is made by `.ci/screenshots`, is there, and is shown by a page.

use super::pages::{pages, root};
use std::collections::BTreeSet;

/// All pictures together, so that a clone stays small.
const MOST_BYTES: u64 = 1_500_000;

#[test]
fn every_picture_is_made_by_the_script_and_shown_by_a_page() {
    let script = std::fs::read_to_string(root().join(".ci/screenshots")).unwrap();
    let made: BTreeSet<String> = script
        .lines()
        .filter_map(|line| Some(line.trim().strip_prefix("picture ")?.split(' ').next()?.to_owned()))
        .collect();
    let folder = root().join("docs/pictures").read_dir().unwrap().map(Result::unwrap);
    let files: Vec<_> = folder.map(|it| (it.path(), it.metadata().unwrap().len())).collect();
    let there: BTreeSet<String> =
        files.iter().map(|(path, _)| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(made, there, "`make screenshots` makes what is missing; remove what is not made");
    for (path, _) in &files {
        let bytes = std::fs::read(path).unwrap();
        assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"), "{} is no PNG", path.display());
    }
    let bytes: u64 = files.iter().map(|(_, bytes)| bytes).sum();
    assert!(bytes <= MOST_BYTES, "{bytes} bytes");
    let shown: BTreeSet<String> = pages()
        .iter()
        .flat_map(|page| {
            page.text
                .split("pictures/")
                .skip(1)
                .filter_map(|rest| Some(rest.split_once(".png)")?.0.to_owned()))
                .collect::<Vec<_>>()
        })
        .filter(|name| name.len() < 30)
        .collect();
    assert_eq!(shown, there, "a page shows each of them as `![what it is](…/pictures/NAME.png)`");
}
