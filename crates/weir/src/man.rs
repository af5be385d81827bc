//! `weir man`: a page for weir and one for each command, made from the declaration of the command line.

use crate::args::Man;
use crate::exit::Exit;
use crate::help;
use clap::Command;
use std::fs;
use std::io;
use weir_runner::RunError;

/// Writes the pages into a directory.
pub(crate) fn man(args: &Man) -> Result<Exit, RunError> {
    let write = || {
        fs::create_dir_all(&args.directory)?;
        pages()?.into_iter().try_for_each(|page| fs::write(args.directory.join(&page.file), &page.text))
    };
    write().map_err(|error| RunError::of_file(&args.directory, &error))?;
    Ok(Exit::Passed)
}

/// A man page.
struct Page {
    file: String,
    text: Vec<u8>,
}

fn pages() -> io::Result<Vec<Page>> {
    let mut cli = help::whole();
    cli.build();
    let commands: Vec<_> = cli.get_subcommands().filter(|it| !it.is_hide_set()).cloned().collect();
    [cli].into_iter().chain(commands).map(page).collect()
}

/// Renders a page section by section: what clap_mangen puts together by itself says a command's first sentence twice, under NAME and under
/// DESCRIPTION, has all of its flags in the synopsis, and calls the examples EXTRA.
fn page(mut command: Command) -> io::Result<Page> {
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    let text = |text: Option<&clap::builder::StyledStr>| text.map(ToString::to_string).unwrap_or_default();
    let (about, long_about) = (text(command.get_about()), text(command.get_long_about()));
    let more = long_about.strip_prefix(&about).unwrap_or(&long_about);
    let more = more.trim_start_matches('.').trim_start().to_owned();
    let examples = text(command.get_after_long_help());
    let has_subcommands = command.has_subcommands();
    // The name of the page stands in front of it.
    let about = about.strip_prefix("weir ").unwrap_or(&about).to_owned();
    let source = format!("weir {}", env!("CARGO_PKG_VERSION"));
    let has_more = !more.is_empty();
    let man =
        clap_mangen::Man::new(command.about(about).long_about(more).override_usage(usage)).source(source);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    if has_more {
        man.render_description_section(&mut page)?;
    }
    man.render_options_section(&mut page)?;
    if has_subcommands {
        man.render_subcommands_section(&mut page)?;
    }
    page.extend(examples_section(&examples).into_bytes());
    man.render_version_section(&mut page)?;
    Ok(Page { file: man.get_filename(), text: page })
}

/// The lines below `Examples:`, set as they are (roff's `.nf`); a line with `\` would be an escape.
fn examples_section(examples: &str) -> String {
    let lines =
        examples.lines().skip(1).map(|line| line.trim().replace('\\', "\\\\").replace('-', "\\-") + "\n");
    format!(".SH EXAMPLES\n.nf\n{}.fi\n", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_page_says_a_sentence_twice_and_each_has_examples() {
        let pages = pages().unwrap();
        assert!(pages.len() > 20, "{}", pages.len());
        for Page { file, text } in pages {
            let text = String::from_utf8(text).unwrap();
            let mut seen = BTreeSet::new();
            let is_sentence = |line: &&str| !line.starts_with('.') && line.split(' ').count() > 3;
            let sentences = text.lines().filter(is_sentence);
            let twice: Vec<_> = sentences.filter(|line| !seen.insert(*line)).collect();
            assert!(twice.is_empty(), "{file}: {twice:#?}");
            let name = text.lines().skip_while(|line| *line != ".SH NAME").nth(1).unwrap();
            let (_, about) = name.split_once(" \\- ").unwrap_or_else(|| panic!("{file}: {name}"));
            assert_eq!(text.matches(about).count(), 1, "{file}: {about}");
            assert!(text.contains(".SH EXAMPLES\n.nf\nweir "), "{file}: {text}");
            assert!(text.contains(&format!("\"weir {}\"", env!("CARGO_PKG_VERSION"))), "{file}: {text}");
        }
    }
}
