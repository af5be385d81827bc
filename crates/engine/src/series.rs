//! A series: every variant of a scenario, run as often as it says, interleaved. Values only: which runs there are and what
//! they come to; the binary runs them.

mod figures;
mod summary;

pub use crate::units::FigureUnit;
pub use figures::SeriesFigure;
pub use summary::{
    Counted, Difference, Ending, FEWEST_PAIRS, LAYOUT, RunFailure, SeriesFacts, SeriesRun, SeriesSummary,
    VariantComparison, VariantSummary, VariantThreshold,
};

use crate::scenario::{Order, Scenario, ScenarioError, Step, Variant, Variants};
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

/// One run of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Position of its variant.
    pub variant: usize,
    /// Which repetition of it, from 1.
    pub repetition: u32,
}

/// The runs of a series, in the order in which they are made.
pub fn turns(variants: usize, repetitions: u32, order: Order, seed: u64) -> Vec<Turn> {
    let turn = |variant, repetition| Turn { variant, repetition };
    match order {
        Order::Sequential => (0..variants)
            .flat_map(|variant| (1..=repetitions).map(move |repetition| turn(variant, repetition)))
            .collect(),
        Order::Interleaved => (1..=repetitions)
            .flat_map(|repetition| {
                let forward = repetition % 2 == 1;
                (0..variants).map(move |at| turn(if forward { at } else { variants - 1 - at }, repetition))
            })
            .collect(),
        Order::Random => {
            let mut random = fastrand::Rng::with_seed(seed);
            let block = |repetition| {
                let mut block: Vec<_> = (0..variants).map(|variant| turn(variant, repetition)).collect();
                random.shuffle(&mut block);
                block
            };
            (1..=repetitions).flat_map(block).collect()
        }
    }
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

    #[test]
    fn turns_go_forth_and_back() {
        let order = |variants, repetitions, order| {
            turns(variants, repetitions, order, 0)
                .iter()
                .map(|it| (it.variant, it.repetition))
                .collect::<Vec<_>>()
        };
        assert_eq!(order(2, 3, Order::Interleaved), [(0, 1), (1, 1), (1, 2), (0, 2), (0, 3), (1, 3)]);
        assert_eq!(order(2, 2, Order::Sequential), [(0, 1), (0, 2), (1, 1), (1, 2)]);
        assert_eq!(order(1, 1, Order::default()), [(0, 1)]);
    }

    #[test]
    fn a_random_order_has_every_variant_once_in_each_block_and_is_the_seeds() {
        let order = |seed| turns(5, 40, Order::Random, seed);
        assert_eq!(order(7), order(7));
        assert_ne!(order(7), order(8));
        let turns = order(7);
        for (repetition, block) in (1..).zip(turns.chunks(5)) {
            let mut variants: Vec<_> = block.iter().map(|turn| turn.variant).collect();
            variants.sort_unstable();
            assert_eq!(variants, [0, 1, 2, 3, 4]);
            assert!(block.iter().all(|turn| turn.repetition == repetition));
        }
        assert!((0..5).all(|variant| turns.iter().step_by(5).any(|turn| turn.variant == variant)));
    }

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
