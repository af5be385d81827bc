//! Whole reports of made-up runs, as people will read them.

use crate::fixture;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use insta::assert_snapshot;
use sha2::{Digest, Sha256};
use weir_engine::growth::{Growth, GrowthFinding, TargetGrowth};
use weir_engine::startup_map::StartupMap;
use weir_engine::summary::{FailureCount, Outage, OutageKind, Outcome, Summary};
use weir_metrics::{Estimate, Failure};
use weir_report::{Report, Text, shortfall};

fn written(format: &str, summary: &Summary) -> String {
    written_as(format, &Text::default(), summary)
}

fn written_as(format: &str, text: &Text, summary: &Summary) -> String {
    let mut bytes = Vec::new();
    summary.write(format, text, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn text(width: u16, summary: &Summary) -> String {
    let page = written_as("text", &Text { width, ..Text::default() }, summary);
    for line in page.lines().filter(|line| !line.starts_with("http")) {
        assert!(line.chars().count() <= usize::from(width), "wider than {width}: {line}");
    }
    page
}

/// A page without its style and without the courses of its lines.
fn outline(page: &str) -> String {
    let (before, rest) = page.split_once("<style>").unwrap();
    let (_, after) = rest.split_once("</style>").unwrap();
    let after = after.split_once("<script>").map_or(after, |(after, _)| after);
    let mut pieces = after.split(" d=\"");
    let mut outline = format!("{before}{}", pieces.next().unwrap());
    for piece in pieces {
        outline.push_str(piece.split_once('"').unwrap().1);
    }
    outline
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
            assert_snapshot!(format!("{name}_markdown"), written("markdown", &summary));
            assert_snapshot!(format!("{name}_csv"), written("csv", &summary));
            assert_snapshot!(format!("{name}_junit"), written("junit", &summary));
            assert_snapshot!(format!("{name}_html"), outline(&written("html", &summary)));
        }
    )*};
}

pages!(
    steps,
    failures,
    invalid,
    drift,
    both,
    machines,
    empty,
    nothing_measured,
    unanswered,
    channels,
    clients
);

#[test]
fn why_a_run_did_not_pass_is_one_line() {
    let why = |summary: &Summary| shortfall(summary).unwrap_or_else(|| "it passed".to_owned());
    assert_eq!(
        why(&fixture::unanswered()),
        "nothing answered at ws://127.0.0.1:3333 (connection refused, 16 of 16); start the server, or check host and \
         port: `ss -ltn` on its machine lists what listens"
    );
    // What goes by UDP is in another list.
    let mut by_datagrams = fixture::unanswered();
    for workload in &mut by_datagrams.workloads {
        workload.targets.iter_mut().for_each(|target| *target = "srt://127.0.0.1:9000".into());
    }
    assert!(
        why(&by_datagrams).ends_with("`ss -lun` on its machine lists what listens"),
        "{}",
        why(&by_datagrams)
    );
    // The run may be shorter than the time that the handshake has.
    let silent = "rtmp://127.0.0.1:1935 accepted 16 connections, no handshake";
    assert!(why(&fixture::silent()).starts_with(&format!("{silent} in ")), "{}", why(&fixture::silent()));
    let mut overdue = fixture::silent();
    overdue.workloads[0].failures = vec![FailureCount {
        kind: Failure::HandshakeTimeout,
        side: Failure::HandshakeTimeout.side(),
        ..fixture::unanswered().workloads[0].failures[0].clone()
    }];
    assert!(why(&overdue).starts_with(&format!("{silent} (handshake timeout, ")), "{}", why(&overdue));
    let mut unknown = fixture::unanswered();
    let failures = &mut unknown.workloads[0].failures;
    failures[0].clients = 4;
    failures.push(FailureCount {
        kind: Failure::StreamNotFound,
        clients: 12,
        words: "no such stream".into(),
        ..failures[0].clone()
    });
    let line = "no client played at ws://127.0.0.1:3333/app/stream (stream not found 12, connection refused 4 of 16: no such stream); ";
    assert!(why(&unknown).starts_with(line), "{}", why(&unknown));
    let mut wrong = fixture::unanswered();
    let workload = &mut wrong.workloads[0];
    workload.targets = vec!["rtmp://127.0.0.1:1935/app/…1".to_owned()];
    workload.failures[0].kind = Failure::ClosedByPeer;
    assert!(
        why(&wrong).contains("check the application (rtmp://HOST/APPLICATION/STREAM)"),
        "{}",
        why(&wrong)
    );
    assert_eq!(why(&fixture::nothing_measured()), "interrupted after 0.4 s");
    assert_eq!(why(&fixture::both()), "it passed");
    let others = [fixture::steps(), fixture::invalid(), fixture::failures()].map(|it| why(&it));
    assert_snapshot!("why", others.join("\n"));
}

#[test]
fn messages_have_their_own_columns_and_a_stage_that_broke_is_no_row_of_dashes() {
    assert_snapshot!("messages_text_80", text(80, &fixture::messages()));
    assert_snapshot!("messages_text_40", text(40, &fixture::messages()));
}

#[test]
fn messages_that_were_saved_have_an_account() {
    assert_snapshot!("saved_text_80", text(80, &fixture::saved()));
}

/// The table of stages has three columns more where units have numbers. It becomes two before it becomes blocks.
#[test]
fn the_table_of_webrtc_stages_reads_as_one_table_or_two() {
    let mut summary = fixture::clients();
    let mut stage = summary.workloads[0].stages[0].clone();
    for clients in [1_000, 2_500] {
        (stage.stage, stage.clients) = (stage.stage + 1, clients);
        summary.workloads[0].stages.push(stage.clone());
    }
    let table = |width: u16| {
        let page = text(width, &summary);
        let begin = page.find("\nPlay\n").unwrap();
        page[begin..begin + page[begin..].find("\nStarts").unwrap()].to_owned()
    };
    assert_snapshot!("webrtc_stages_80", table(80));
    assert_snapshot!("webrtc_stages_100", table(100));
    assert_snapshot!("webrtc_stages_140", table(140));
}

/// A channel whose readers failed before they read has no rate, and as many columns as the others.
#[test]
fn the_table_of_channels_holds_where_a_reader_failed() {
    let mut summary = fixture::channels();
    for width in [60, 80, 89, 100] {
        let rows_of = |summary: &Summary| {
            let page = text(width, summary);
            let begin = page.find("CHANNEL").unwrap();
            let begin = page[..begin].rfind('\n').map_or(0, |at| at + 1);
            page[begin..].lines().take_while(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>()
        };
        let whole = rows_of(&summary);
        let channels = &mut summary.workloads[0].channels;
        let before = channels.clone();
        let last = channels.last_mut().unwrap();
        (last.readers, last.failed, last.bit_rate_bps) = (0, 12, 0.0);
        last.figures.iter_mut().for_each(|figure| figure.total = 0);
        let failed = rows_of(&summary);
        summary.workloads[0].channels = before;
        assert_eq!(failed.len(), whole.len(), "at {width} columns:\n{}", failed.join("\n"));
        let name = |rows: &[String]| {
            rows.iter().map(|row| row.split("  ").next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(name(&failed), name(&whole), "names are as long as before");
    }
}

#[test]
fn every_client_has_a_row_of_its_own() {
    assert_snapshot!("clients_rows", written("clients", &fixture::clients()));
    // Of a protocol whose clients leave nothing there is the head alone.
    assert_eq!(written("clients", &fixture::steps()).lines().count(), 1);
}

#[test]
fn json_reads_back_as_it_was_written() {
    let first = written("json", &fixture::both());
    let summary: Summary = serde_json::from_str(&first).unwrap();
    assert_eq!(written("json", &summary), first);
}

#[test]
fn a_page_asks_for_nothing_and_runs_its_own_script_alone() {
    for summary in [fixture::steps(), fixture::both(), fixture::empty()] {
        let page = written("html", &summary);
        for call in ["<link", "<img", "<iframe", "src=", "url(", "@import", "onload=", "fetch(", "innerHTML"]
        {
            assert!(!page.contains(call), "{call}");
        }
        // Its links lead to its own sections, each to one that is there.
        for link in page.split("href=\"").skip(1) {
            let id = link.split('"').next().unwrap().strip_prefix('#').unwrap();
            assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
        }
        let script = page.split_once("<script>").unwrap().1.split_once("</script>").unwrap().0;
        assert_eq!(script, include_str!("../../templates/hover.js"));
        assert_eq!(page.matches("<script").count(), 1);
        let allowed = format!("script-src 'sha256-{}'", STANDARD.encode(Sha256::digest(script)));
        assert!(page.contains(&allowed), "{allowed}");
        // The namespace of SVG is a name, not an address that is called.
        assert_eq!(page.replace("http://www.w3.org/2000/svg", "").find("http"), page.find("http-equiv"));
    }
}

/// Only of many clients that did not all come in one ramp.
#[test]
fn a_blackout_stands_on_the_first_screen_and_in_the_plots() {
    let mut summary = fixture::steps();
    let outage = Outage {
        kind: OutageKind::Media,
        from_seconds: 12.0,
        until_seconds: Some(15.0),
        viewers: 2_500,
        of_viewers: 2_500,
        made_by_run: false,
    };
    summary.workloads[0].outages = vec![outage];
    let page = written("html", &summary);
    let (said, mark) = ("no viewer received media from 0:12 to 0:15", ">no media</text>");
    let first = page.find(said).unwrap();
    assert!(first < page.find("<svg").unwrap(), "before the first plot");
    assert!(page.contains(mark) && page.contains("from which on viewers were without media"));
    summary.workloads[0].outages[0].made_by_run = true;
    let page = written("html", &summary);
    assert!(!page.contains(said) && !page.contains(mark), "what the run made itself is no outage");
}

#[test]
fn when_clients_came_is_a_map_of_its_own() {
    let map = |columns: usize| StartupMap {
        column_seconds: 2,
        bounds_seconds: vec![0.001, 0.002],
        columns: vec![vec![0, 30, 1]; columns],
    };
    let mut summary = fixture::steps();
    let picture = |summary: &Summary| {
        let page = written("html", summary);
        let svg = page.split_once("id=\"plot-startup-by-when-clients-came\"")?.1;
        Some(svg.split_once("</svg>")?.0.to_owned())
    };
    assert_eq!(picture(&summary), None);
    summary.workloads[0].startup_map = Some(map(9));
    assert_eq!(picture(&summary), None);
    summary.workloads[0].startup_map = Some(map(40));
    let svg = picture(&summary).unwrap();
    assert_eq!(svg.matches("<rect").count(), 80);
    assert!(svg.contains("30 clients after 1.00\u{a0}ms to 2.00\u{a0}ms, from 78 s on"), "{svg}");
    assert!(svg.contains("1 client after 2.00\u{a0}ms or more, from 0 s on"), "{svg}");
    // A file may have been written by anybody.
    summary.workloads[0].startup_map.as_mut().unwrap().columns[3].pop();
    assert_eq!(picture(&summary), None);
}

/// What was the limit is asked of the stages that were measured, not of one that is still to come.
#[test]
fn a_stage_that_is_to_come_hides_nothing_of_those_that_were() {
    let mut summary = fixture::steps();
    summary.outcome = Outcome::Running;
    let limit = |summary: &Summary| {
        let page = written("html", summary);
        let card = page.split_once("What was the limit?").unwrap().1.to_owned();
        card.split_once("What was").map_or(card.clone(), |(card, _)| card.to_owned())
    };
    assert!(!limit(&summary).contains("Not known yet"));
    let stages = &mut summary.workloads[0].stages;
    let last = stages.last_mut().unwrap();
    (last.host, last.targets) = (None, Vec::new());
    assert!(!limit(&summary).contains("Not known yet"));
    for stage in &mut summary.workloads[0].stages {
        (stage.host, stage.targets) = (None, Vec::new());
    }
    assert!(limit(&summary).contains("Not known yet"));
}

/// What is replaced by its id on a page that grows must be there once.
#[test]
fn no_two_parts_of_a_page_have_one_id() {
    for summary in [fixture::steps(), fixture::both(), fixture::machines(), fixture::channels()] {
        let page = written("html", &summary);
        let mut ids: Vec<_> =
            page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all);
    }
}

#[test]
fn words_of_a_hostile_server_stay_words() {
    let summary = fixture::failures();
    let page = written("html", &summary);
    for tag in ["<img", "<b>", "<worker"] {
        assert!(!page.contains(tag), "{tag}");
    }
    assert_eq!(page.matches("<script").count(), 1, "weir's own");
    assert!(page.len() < 200_000, "{} bytes", page.len());
    let markdown = written("markdown", &summary);
    assert!(markdown.contains(r"\[e\](javascript:"));
    for markup in ["<script", "<img", "`c`"] {
        assert!(!markdown.contains(markup), "{markup}");
    }
    for page in [page, markdown, text(80, &summary), text(40, &summary), written("junit", &summary)] {
        let steering = page.chars().find(|letter| letter.is_control() && *letter != '\n');
        assert_eq!(steering, None);
        assert!(!page.contains('\u{202e}'));
    }
}

#[test]
fn colour_is_only_given_when_asked_for_and_says_nothing_new() {
    let summary = fixture::invalid();
    let coloured = written_as("text", &Text { colour: true, ..Text::default() }, &summary);
    assert!(coloured.contains("\u{1b}["));
    let mut plain = String::new();
    let mut pieces = coloured.split("\u{1b}[");
    plain.push_str(pieces.next().unwrap());
    for piece in pieces {
        plain.push_str(piece.split_once('m').unwrap().1);
    }
    let plain: Vec<_> = plain.lines().map(str::trim_end).collect();
    assert_eq!(plain, text(80, &summary).lines().collect::<Vec<_>>());
}

#[test]
fn a_long_run_makes_a_page_that_opens() {
    let mut summary = fixture::steps();
    let day = summary.series.iter().cycle().take(86_400).cloned().collect::<Vec<_>>();
    summary.series = day;
    for (second, point) in (0..).zip(&mut summary.series) {
        point.second = second;
    }
    assert!(written("html", &summary).len() < 1_000_000);
}

#[test]
fn every_row_of_csv_has_every_column() {
    for summary in [fixture::both(), fixture::empty(), fixture::nothing_measured()] {
        let text = written("csv", &summary);
        let mut rows = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
        let width = rows.records().next().unwrap().unwrap().len();
        assert!(rows.records().all(|row| row.unwrap().len() == width));
    }
}

/// What a server that refuses says itself is its limit, even on a busy host; and whether it grows stands there too.
#[test]
fn the_card_on_the_limit_names_a_refusal_first_and_says_whether_the_server_grows() {
    let card = |summary: &Summary| {
        let page = written("html", summary).replace('\u{a0}', " ");
        let (_, card) = page.split_once("What was the limit?").unwrap();
        card.split_once("</section>").map_or(card, |it| it.0).chars().take(1_500).collect::<String>()
    };
    let mut summary = fixture::steps();
    for stage in &mut summary.workloads[0].stages {
        stage.host.as_mut().unwrap().cpu_percent = 100.0 * summary.run.environment.cpu.online_count as f64;
    }
    assert!(card(&summary).contains("The host&#39;s CPU"), "{}", card(&summary));
    let failure = FailureCount {
        kind: Failure::Rejected,
        side: weir_metrics::Side::Remote,
        clients: 40,
        words: "too many viewers".to_owned(),
    };
    summary.workloads[0].failures = vec![failure];
    let slope = Estimate { mean: 4_150.0, low: 4_040.0, high: 4_250.0 };
    let memory = Growth { per_client: Some(slope), per_second: slope, finding: GrowthFinding::Grows };
    summary.growth = vec![TargetGrowth {
        target: "name=nginx".to_owned(),
        begin_seconds: 15.0,
        end_seconds: 40.0,
        clients: 1_967,
        memory: Some(memory),
        descriptors: None,
        residue: None,
    }];
    let shown = card(&summary);
    for words in [
        "The server refuses more",
        "40 clients failed: rejected",
        "memory of nginx: grows by 4.15 kB a client",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}
