//! A scenario file as it reads for each of its variants.

use super::Variants;
use crate::scenario::{Scenario, ScenarioError, Step, Variant};
use std::path::Path;
use weir_files::MOST_TEXT;

/// One variant of a scenario file, ready to be run: the file as it reads with the variant's values in their places.
#[derive(Clone, Debug, PartialEq)]
pub struct Variation {
    /// Its name and values; none for a file without variants.
    pub variant: Option<Variant>,
    /// What is to be run.
    pub scenario: Scenario,
}

impl Variation {
    /// Reads a scenario file, once for each of its variants.
    ///
    /// # Errors
    /// The file cannot be read, is not strictly a scenario with the values of one of its variants, or its variants are all the
    /// same.
    pub fn read(path: &Path) -> Result<Vec<Self>, ScenarioError> {
        let name = path.display().to_string();
        let text = weir_files::read_text(path, MOST_TEXT)
            .map_err(|source| ScenarioError::Read { path: name.clone(), source })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut variations =
            Self::parse(&text, folder).map_err(|text| ScenarioError::Parse { path: name, text })?;
        for Self { scenario, .. } in &mut variations {
            if scenario.name.is_empty() {
                scenario.name =
                    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            }
        }
        Ok(variations)
    }

    /// Reads a scenario's text, once for each of its variants; files of `fill` are looked for in `folder`.
    ///
    /// # Errors
    /// `line:column: what is wrong`, or what is wrong with the variants.
    pub fn parse(text: &str, folder: &Path) -> Result<Vec<Self>, String> {
        let variants = Variants::of(text)?;
        if variants.is_empty() {
            return Ok(vec![Self { variant: None, scenario: Scenario::parse(text)? }]);
        }
        variants.check()?;
        let variations = variants.iter().map(|variant| {
            let mut scenario = Scenario::parse(&variant.fill(text))?;
            scenario.matrix.hide(&variant.secret_keys);
            scenario.variants.hide(&variant.secret_keys);
            Ok(Self { variant: Some(variant.clone()), scenario })
        });
        let variations: Vec<Self> = variations.collect::<Result<_, String>>()?;
        let steps = variations.iter().flat_map(|it| it.scenario.before.iter().chain(&it.scenario.after));
        let mut places = vec![text.to_owned()];
        for step in steps {
            if let Step::Fill(fill) = step {
                let path = folder.join(&fill.from);
                let read = weir_files::read_text(&path, MOST_TEXT);
                places.push(read.map_err(|error| format!("fill: {}: {error}", path.display()))?);
            }
        }
        variants.check_places(&places)?;
        Ok(variations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
variants:
  few: {clients: 2, server: 'rtmp://h/a'}
  many: {clients: 20, server: 'rtmp://h/b'}
repeat: 3
workloads: [{play: '{server}/s{i}', streams: 2, clients: \"{clients}\", duration: 1s}]
";

    fn parse(text: &str) -> Result<Vec<Variation>, String> {
        Variation::parse(text, Path::new(""))
    }

    #[test]
    fn each_variant_is_the_file_with_its_values() {
        let found = parse(&TEXT.replace("\"{clients}\"", "{clients}")).unwrap();
        let of = |at: usize| {
            (&found[at].scenario.workloads[0].play.0[0][..], found[at].scenario.workloads[0].clients)
        };
        assert_eq!((of(0), of(1)), (("rtmp://h/a/s{i}", Some(2)), ("rtmp://h/b/s{i}", Some(20))));
        assert_eq!(found[1].variant.as_ref().unwrap().name, "many");
        assert_eq!(found[0].scenario.repeat, Some(3));
        let plain = parse("workloads: [{play: rtmp://h/a/s, duration: 1s}]").unwrap();
        assert_eq!((plain.len(), &plain[0].variant), (1, &None));
    }

    #[test]
    fn values_stand_there_as_they_are_written() {
        let text = "variants: {a: {v: on}, b: {v: 1.10}, c: {v: 0777}, d: {v: '{w}', w: x}, e: {v: 1e3}}";
        let variants = Variants::of(text).unwrap();
        let filled: Vec<_> = variants.iter().map(|it| it.fill("<{v}> {} {vv} {v")).collect();
        assert_eq!(filled[..3], ["<on> {} {vv} {v", "<1.10> {} {vv} {v", "<0777> {} {vv} {v"]);
        assert_eq!(filled[3..], ["<{w}> {} {vv} {v", "<1e3> {} {vv} {v"]);
    }

    #[test]
    fn variants_that_cannot_be_are_one_line() {
        let text = TEXT.replace("\"{clients}\"", "{clients}");
        for (one, other, words) in [
            ("clients: 20, ", "", "variants: 'many' says nothing of {clients}"),
            ("20", "[1, 2]", "4:"),
            ("20", "\"1\\n2\"", "variants: {clients} of 'many' has a control character in it"),
            ("{clients}", "5", "variants: {clients} stands nowhere in the scenario or in a file of `fill`"),
            ("server", "i", "variants: {i} has a meaning of its own in URLs; choose another key"),
            ("many:", "few:", "key `few` stands there twice"),
            ("{clients: 20, server: 'rtmp://h/b'}", "{clients: x, server: 'rtmp://h/b'}", "6:"),
        ] {
            let said = parse(&text.replace(one, other)).unwrap_err();
            assert!(said.contains(words), "{said} lacks {words}");
            assert_eq!(said.lines().count(), 1, "{said}");
        }
    }

    #[test]
    fn a_key_may_stand_in_a_file_of_the_target_alone() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("server.conf.in"), "workers {workers};").unwrap();
        let text = "
variants: {one: {workers: 1}, two: {workers: 2}}
before: [fill: {from: server.conf.in, to: server.conf}, start: server -c server.conf, wait: '127.0.0.1:1935']
workloads: [{play: rtmp://h/a/s, duration: 1s}]
";
        let found = Variation::parse(text, folder.path()).unwrap();
        assert_eq!(found[1].scenario.before.len(), 3);
        assert_eq!(found[1].scenario.before[2], Step::Wait("127.0.0.1:1935".to_owned()));
        std::fs::remove_file(folder.path().join("server.conf.in")).unwrap();
        assert!(Variation::parse(text, folder.path()).unwrap_err().contains("server.conf.in: No such file"));
    }
}
