//! The diagram of crates in ARCHITECTURE.md is that of their manifests.

use super::pages::root;
use std::collections::{BTreeMap, BTreeSet};

/// Which crates of the workspace each crate is built with, tests and benches apart.
type Arrows = BTreeMap<String, BTreeSet<String>>;

fn of_the_manifests() -> Arrows {
    let mut arrows = Arrows::new();
    for entry in root().join("crates").read_dir().unwrap() {
        let path = entry.unwrap().path();
        let Ok(manifest) = std::fs::read_to_string(path.join("Cargo.toml")) else { continue };
        let section = manifest.split("\n[").find_map(|section| section.strip_prefix("dependencies]"));
        let names = section.unwrap_or_default().lines().filter_map(|line| line.strip_prefix("weir-"));
        let below = names.filter_map(|name| name.split(['.', ' ', '=']).next()).map(str::to_owned);
        arrows.insert(path.file_name().unwrap().to_string_lossy().into_owned(), below.collect());
    }
    arrows
}

fn of_the_diagram(text: &str) -> Arrows {
    let block = text.split("```").nth(1).expect("the diagram of crates");
    let mut arrows = Arrows::new();
    for line in block.lines().filter(|line| !line.is_empty()) {
        match line.split_once('▶') {
            Some((from, to)) => {
                let below = to.split(',').map(|name| name.trim().to_owned());
                arrows.insert(from.trim_end_matches(['─', ' ']).to_owned(), below.collect());
            }
            None => {
                let alone = line.split('(').next().unwrap_or_default().split_whitespace();
                arrows.extend(alone.map(|name| (name.to_owned(), BTreeSet::new())));
            }
        }
    }
    arrows
}

#[test]
fn the_diagram_of_crates_is_that_of_their_manifests() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (drawn, built) = (of_the_diagram(&text), of_the_manifests());
    for (name, below) in &built {
        assert_eq!(drawn.get(name), Some(below), "{name}: what is drawn, and what its Cargo.toml has");
        assert!(text.contains(&format!("\n| `{name}` |")), "{name} has no row in the table of crates");
    }
    assert_eq!(drawn.len(), built.len());
}

#[test]
fn crates_that_have_a_clients_session_are_optimised_for_speed() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let mut found = Vec::new();
    for name in of_the_manifests().into_keys() {
        let mut folders = vec![root().join("crates").join(&name).join("src")];
        let mut has_one = false;
        while let Some(folder) = folders.pop() {
            for entry in folder.read_dir().unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let code = std::fs::read_to_string(&path).unwrap_or_default();
                    has_one |= code.contains(concat!("impl ClientSession", " for "));
                }
            }
        }
        if has_one {
            assert!(manifest.contains(&format!("\nweir-{name}.opt-level = 3\n")), "{name} is built for size");
            found.push(name);
        }
    }
    assert!(found.iter().any(|it| it == "protocols"), "{found:?}");
}
