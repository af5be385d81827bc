//! Writes the reports of the made-up runs into a directory, to look at them: `cargo run -p weir-report --example look -- DIR`.
#[allow(dead_code, reason = "it shows one of them")]
#[path = "../tests/formats/fixture/mod.rs"]
mod fixture;
use weir_report::{FORMATS, Report, Text};
fn main() -> std::io::Result<()> {
    let directory =
        std::path::PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "target/look".to_owned()));
    std::fs::create_dir_all(&directory)?;
    for (name, summary) in [
        ("steps", fixture::steps()),
        ("failures", fixture::failures()),
        ("invalid", fixture::invalid()),
        ("drift", fixture::drift()),
        ("both", fixture::both()),
        ("empty", fixture::empty()),
        ("nothing_measured", fixture::nothing_measured()),
        ("channels", fixture::channels()),
        ("clients", fixture::clients()),
        ("machines", fixture::machines()),
    ] {
        for format in FORMATS {
            let mut file = std::fs::File::create(directory.join(format!("{name}.{format}")))?;
            summary.write(format, &Text::default(), &mut file)?;
        }
        for width in [40, 60, 80, 100, 140] {
            let mut file = std::fs::File::create(directory.join(format!("{name}-{width}.txt")))?;
            let directory = Some(format!("runs/{}", summary.run.id));
            summary.write("text", &Text { width, colour: width == 100, directory }, &mut file)?;
        }
    }
    Ok(())
}
