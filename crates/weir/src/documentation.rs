//! What the project's Markdown says is true: links lead somewhere, commands are taken by the command line, scenarios are
//! scenarios, and the reference pages are those of the declarations.
//!
//! It is part of the program's unit tests, because the declaration of the command line is private to the program.

mod architecture;
mod commands;
mod dashboard;
mod links;
mod markdown;
mod names;
mod pages;
mod phrases;
mod pictures;
mod reference;
mod transcripts;

use pages::root;

/// Holds a page to what the declarations make of it; `WEIR_WRITE=1` writes it again.
fn assert_up_to_date(path: &str, made: &str) {
    let file = root().join(path);
    if std::env::var_os("WEIR_WRITE").is_some() {
        std::fs::write(&file, made).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    let differing = made.lines().zip(written.lines()).find(|(made, written)| made != written);
    assert!(
        made == written,
        "{path} is not what the declarations say: WEIR_WRITE=1 cargo test -p weir --bin weir documentation\n{differing:#?}"
    );
}

#[test]
fn the_readme_is_read_in_one_go() {
    let lines = std::fs::read_to_string(root().join("README.md")).unwrap().lines().count();
    assert!(
        lines <= 150,
        "README.md has {lines} lines; what is more than 150 belongs to a page below docs/guide"
    );
}
