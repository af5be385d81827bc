//! Whole reports of made-up runs, as people will read them.

mod fixture;

use insta::assert_snapshot;
use weir_engine::summary::Summary;
use weir_report::{Csv, Format, Json, Junit, Markdown, Text};

fn written(format: &dyn Format, summary: &Summary) -> String {
    let mut bytes = Vec::new();
    format.write(summary, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn text(width: u16, summary: &Summary) -> String {
    let page = written(&Text { width, ..Text::default() }, summary);
    for line in page.lines() {
        assert!(line.chars().count() <= usize::from(width), "wider than {width}: {line}");
    }
    page
}

/// Snapshots of every run in every form that a person or a program reads.
macro_rules! pages {
    ($($run:ident),*) => {$(
        #[test]
        fn $run() {
            let summary = fixture::$run();
            let name = stringify!($run);
            assert_snapshot!(format!("{name}_text_80"), text(80, &summary));
            assert_snapshot!(format!("{name}_text_40"), text(40, &summary));
            assert_snapshot!(format!("{name}_markdown"), written(&Markdown, &summary));
            assert_snapshot!(format!("{name}_csv"), written(&Csv, &summary));
            assert_snapshot!(format!("{name}_junit"), written(&Junit, &summary));
        }
    )*};
}

pages!(steps, failures, invalid, drift, both, empty, nothing_measured);

#[test]
fn json_reads_back_as_it_was_written() {
    let first = written(&Json, &fixture::both());
    let summary: Summary = serde_json::from_str(&first).unwrap();
    assert_eq!(written(&Json, &summary), first);
}
