//! What `weir --version` says beside the version (the target, and of a release the commit, where one is known), and the
//! schemas that `weir schema` prints, in a tenth of their size.

use flate2::{Compression, write::DeflateEncoder};
use std::io::Write;
use std::path::Path;
use std::process::Command;

fn main() {
    pack_schemas().expect("the schemas below schemas/");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=WEIR_COMMIT");
    let of = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let target = of("TARGET").unwrap_or_default();
    // In development each commit would compile all of the package's tests again.
    let text = if of("PROFILE").is_some_and(|profile| profile == "release") {
        let commit = of("WEIR_COMMIT").or_else(commit);
        commit.map_or_else(|| format!(" ({target})"), |commit| format!(" ({commit}, {target})"))
    } else {
        format!(" (a development build, {target})")
    };
    println!("cargo::rustc-env=WEIR_BUILD={text}");
}

/// Writes name and text of each schema into one file, with a zero behind each.
fn pack_schemas() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=schemas");
    let path = Path::new(&std::env::var_os("OUT_DIR").unwrap_or_default()).join("schemas");
    let mut packed = DeflateEncoder::new(std::fs::File::create(path)?, Compression::best());
    // The same from whatever file system.
    let entries = std::fs::read_dir("schemas")?.map(|entry| Ok(entry?.path()));
    let mut paths = entries.collect::<std::io::Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        println!("cargo::rerun-if-changed={}", path.display());
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        write!(packed, "{name}\0{}\0", std::fs::read_to_string(&path)?)?;
    }
    packed.finish()?;
    Ok(())
}

/// The commit of this checkout, or of the one that a package was made from; none where neither is known.
fn commit() -> Option<String> {
    let packed = std::fs::read_to_string(".cargo_vcs_info.json").ok();
    if let Some(hash) = packed.as_deref().and_then(|text| text.split("\"sha1\": \"").nth(1)) {
        return hash.get(..12).map(str::to_owned);
    }
    // A checkout of something else, in which this is unpacked, has another commit.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    let branch = git(&["symbolic-ref", "HEAD"]);
    for of in ["HEAD"].into_iter().chain(branch.as_deref()) {
        if let Some(path) = git(&["rev-parse", "--git-path", of]).filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

/// What git says; none where it, or a checkout, is missing.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|it| it.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
