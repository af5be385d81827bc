//! A checked stream as a document: what it is, what is wrong with it, and where.

use crate::document::{Badge, Cell, Column, Document, Fact, Grid, Part, Section, Tone, columns};
use crate::quantity::{TIE, bit_rate, bytes, count, joined, seconds, several, share, span};
use crate::quote::quote;
use crate::stream::{FindingEntry, PidEntry, ProgramEntry, StreamCheck};

/// Longest name out of a stream, or of a file.
const NAME: usize = 60;

/// Totals that say what a stream is; all others say that something is wrong with it.
const PLAIN: [&str; 9] = [
    "bytes",
    "packets",
    "null_packets",
    "legal_duplicates",
    "scrambled_packets",
    "discontinuity_indicators",
    "pcrs",
    "version_changes",
    "random_access_indicators",
];

impl StreamCheck {
    /// What a person reads.
    pub(crate) fn document(&self) -> Document {
        let sections = [
            Some(Section::new("Stream", vec![Part::Facts(self.stream())])),
            self.asked(),
            self.services_and_programs(),
            self.packet_identifiers(),
            self.clocks(),
            Some(self.counters()),
            Some(self.priority(1, "TR 101 290, first priority", Tone::Bad)),
            Some(self.priority(2, "TR 101 290, second priority", Tone::Doubtful)),
            self.places(),
        ];
        Document {
            title: quote(if self.source == "-" { "stdin" } else { &self.source }, NAME),
            badges: self.badges(),
            sections: sections.into_iter().flatten().collect(),
        }
    }

    fn badges(&self) -> Vec<Badge> {
        let counts = &self.counts.0;
        let mut badges = Vec::new();
        // Findings on a handful of packets may be wrong: a wrong packet size finds packets as well.
        let skipped = counts.skipped_bytes as f64 / counts.bytes as f64;
        if skipped > 0.5 {
            badges.push(Badge::new(format!("{} of the bytes skipped", share(skipped)), Tone::Bad));
        }
        if counts.lost_estimate > 0 {
            let least = (counts.lost_packets > 0)
                .then(|| format!("at least {} lost", several(counts.lost_packets, "packet")));
            let about = if counts.lost_unknown > 0 {
                Some("how many more is not known".to_owned())
            } else {
                (counts.lost_estimate > counts.lost_packets)
                    .then(|| format!("about {} by the clock", count(counts.lost_estimate)))
            };
            let lost = least.into_iter().chain(about).collect::<Vec<_>>().join(", ");
            badges.push(Badge::new(lost, Tone::Bad));
        } else if self.findings.is_empty() && self.indicators.iter().all(|it| it.count == 0) {
            badges.push(Badge::new("nothing wrong".to_owned(), Tone::Good));
        } else if counts.resyncs > 0 {
            // A counter has 16 values: of a longer gap it shows only the remainder.
            badges.push(Badge::new("alignment lost, no gap counted".to_owned(), Tone::Bad));
        } else {
            badges.push(Badge::new("no packet lost, other findings".to_owned(), Tone::Doubtful));
        }
        let failed = self.thresholds.iter().filter(|threshold| !threshold.passed).count();
        if failed > 0 {
            badges.push(Badge::new(format!("{} failed", several(failed as u64, "threshold")), Tone::Bad));
        }
        if self.interrupted {
            badges.push(Badge::new("interrupted".to_owned(), Tone::Doubtful));
        }
        badges
    }

    fn stream(&self) -> Vec<Fact> {
        let counts = &self.counts.0;
        let mut size = format!("{}, {}", bytes(counts.bytes as f64), several(counts.packets, "packet"));
        if let Some(stride) = self.packet_size_bytes {
            size.push_str(&format!(" of {stride}{TIE}bytes"));
        }
        let mut facts = vec![Fact::new("Size", size)];
        if let Some(length) = self.duration_seconds {
            facts.push(Fact::new("Length", format!("{}, by its own clock", span(length))));
        }
        if let Some(bps) = self.bit_rate_bps {
            facts.push(Fact::new("Bit rate", format!("{}, null packets included", joined(bit_rate(bps)))));
        }
        facts.push(match &self.decodable {
            Some(place) => Fact::new(
                "Decodable",
                format!("from packet {} on, PID {}", count(place.packet), hex(place.pid)),
            ),
            None => Fact::new("Decodable", "nowhere: PAT, PMT or a random access point is missing")
                .tone(Tone::Doubtful),
        });
        facts
    }

    fn asked(&self) -> Option<Section> {
        let rows = self.thresholds.iter().map(|threshold| {
            let (word, tone) =
                if threshold.passed { ("✓ passed", Tone::Good) } else { ("✗ failed", Tone::Bad) };
            let value = threshold.value.map_or_else(|| "nothing".to_owned(), |value| count(value as u64));
            vec![
                Cell::text(word).tone(tone),
                Cell::text(quote(&threshold.expression, 100)),
                Cell::text(value),
            ]
        });
        let columns = columns![word "Result", prose "Threshold", number "Counted"];
        section("Thresholds", columns, rows.collect())
    }

    fn services_and_programs(&self) -> Option<Section> {
        let without_program =
            self.services.iter().filter(|service| self.programs.iter().all(|it| it.number != service.id));
        let mut facts: Vec<Fact> = self.programs.iter().map(|program| self.program(program)).collect();
        facts.extend(without_program.map(|service| {
            let name = quote(&service.name, NAME);
            Fact::new(format!("Service {}", service.id), format!("{name}; no program of the PAT"))
        }));
        (!facts.is_empty()).then(|| Section::new("Services", vec![Part::Facts(facts)]))
    }

    fn program(&self, program: &ProgramEntry) -> Fact {
        let mut lines = Vec::new();
        if let Some(service) = self.services.iter().find(|service| service.id == program.number) {
            let provider = quote(&service.provider, NAME);
            let by = if provider.is_empty() { String::new() } else { format!(", by {provider}") };
            lines.push(format!("{}{by}", quote(&service.name, NAME)));
        }
        let mut tables = format!("PMT on {}", hex(program.pmt_pid));
        match (program.version, program.pcr_pid) {
            (None, _) => tables.push_str(", which did not come"),
            (Some(_), None) => tables.push_str(", no clock"),
            (Some(_), Some(pid)) => tables.push_str(&format!(", clock on {}", hex(pid))),
        }
        lines.push(tables);
        lines.extend(program.components.iter().map(|component| {
            let mut line = format!("{}{TIE}{}", hex(component.pid), component.codec);
            for word in [&component.language, &component.name].into_iter().flatten() {
                line.push_str(&format!(", {}", quote(word, NAME)));
            }
            line
        }));
        let tone = if program.version.is_none() { Tone::Doubtful } else { Tone::Plain };
        let mut fact = Fact::new(format!("Program {}", program.number), "").tone(tone);
        fact.lines = lines;
        fact
    }

    fn packet_identifiers(&self) -> Option<Section> {
        let columns = columns![
            word "PID", word "Carries", number "Packets", number "Bit rate",
            number "Lost at least" / "Lost at\nleast", number "Gaps", number "Repeated" / "Re-\npeated",
            number "Damaged" / "Dam-\naged", number "Scrambled" / "Scram-\nbled", number "Drops",
        ];
        section("PIDs", columns, self.pids.iter().map(row).collect())
    }

    fn clocks(&self) -> Option<Section> {
        let clocks = self.pids.iter().filter_map(|pid| {
            let clock = pid.pcr.as_ref()?;
            let mut line = several(clock.count, "reference");
            if let (Some(mean), Some(most)) = (clock.interval_mean_seconds, clock.interval_max_seconds) {
                line.push_str(&format!(", every {}, at the most {}", seconds(mean), seconds(most)));
            }
            line.push_str(&match clock.jitter_max_seconds {
                Some(jitter) => format!("; off the constant rate by {} at the most", nanoseconds(jitter)),
                None => "; the rate is not constant".to_owned(),
            });
            if clock.discontinuities > 0 {
                line.push_str(&format!("; {}", several(clock.discontinuities, "jump")));
            }
            let tone = if clock.discontinuities > 0 { Tone::Doubtful } else { Tone::Plain };
            Some(Fact::new(hex(pid.pid), line).tone(tone))
        });
        let clocks: Vec<Fact> = clocks.collect();
        (!clocks.is_empty()).then(|| Section::new("Clocks", vec![Part::Facts(clocks)]))
    }

    /// Every total but the indicators, which have sections of their own.
    fn counters(&self) -> Section {
        let is_indicator = |name: &str| self.indicators.iter().any(|it| it.name.eq_ignore_ascii_case(name));
        let totals = self.counts.0.named().filter(|(name, _)| !is_indicator(name));
        let (zero, counted): (Vec<_>, Vec<_>) = totals.partition(|(_, total)| *total == 0);
        let counted = counted.into_iter().map(|(name, total)| {
            let tone = if PLAIN.contains(&name) { Tone::Plain } else { Tone::Doubtful };
            Fact::new(count(total), name).tone(tone)
        });
        let mut parts = vec![Part::Facts(counted.collect())];
        if !zero.is_empty() {
            let names: Vec<_> = zero.into_iter().map(|(name, _)| name).collect();
            parts.push(Part::Facts(vec![Fact::new("0", names.join(", "))]));
        }
        Section::new("Counters", parts)
    }

    fn priority(&self, priority: u8, title: &str, tone: Tone) -> Section {
        let facts = self.indicators.iter().filter(|it| it.priority == priority).map(|it| {
            let tone = if it.count > 0 { tone } else { Tone::Plain };
            Fact::new(count(it.count), format!("{} {}", it.number, it.name)).tone(tone)
        });
        Section::new(title, vec![Part::Facts(facts.collect())])
    }

    fn places(&self) -> Option<Section> {
        let columns = columns![number "Packet", word "PID", number "Time", word "Kind", prose "Finding"];
        let rows = self.findings.iter().map(|finding| {
            vec![
                Cell::text(count(finding.packet)),
                finding.pid.map_or_else(Cell::nothing, |pid| Cell::text(hex(pid))),
                finding
                    .time_seconds
                    .map_or_else(Cell::nothing, |time| Cell::quantity((format!("{time:.3}"), "s"))),
                Cell::text(finding.kind.clone()),
                Cell::text(finding.message.clone()),
            ]
        });
        let mut section = section("Findings", columns, rows.collect())?;
        section.parts.push(Part::Facts(self.remedies()));
        Some(section)
    }

    /// What to do, once a kind, and whether there may be more of it.
    fn remedies(&self) -> Vec<Fact> {
        let mut kinds: Vec<(&FindingEntry, u32)> = Vec::new();
        for finding in &self.findings {
            match kinds.iter_mut().find(|(first, _)| first.kind == finding.kind) {
                Some((_, times)) => *times += 1,
                None => kinds.push((finding, 1)),
            }
        }
        let facts = kinds.into_iter().map(|(first, times)| {
            let mut line = first.remedy.clone();
            if times >= self.findings_per_kind {
                line.push_str(&format!("; only the first {} are listed", count(times.into())));
            }
            Fact::new(first.kind.clone(), line)
        });
        facts.collect()
    }
}

/// A PID's row; what is 0 and should be is a dash, so that what is wrong stands out.
fn row(entry: &PidEntry) -> Vec<Cell> {
    let wrong = |number: u64, tone| match number {
        0 => Cell::nothing(),
        number => Cell::text(count(number)).tone(tone),
    };
    let mut carries = entry.carries.clone();
    if let Some(language) = &entry.language {
        carries.push_str(&format!(" {}", quote(language, 3)));
    }
    vec![
        Cell::text(hex(entry.pid)),
        Cell::text(carries),
        Cell::text(count(entry.packets)),
        entry.bit_rate_bps.map_or_else(Cell::nothing, |bps| Cell::quantity(bit_rate(bps))),
        wrong(entry.lost_packets, Tone::Bad),
        wrong(entry.gap_events, Tone::Bad),
        wrong(entry.illegal_duplicates, Tone::Bad),
        wrong(entry.transport_errors, Tone::Bad),
        wrong(entry.scrambled_packets + entry.reserved_scrambling_packets, Tone::Plain),
        wrong(entry.aribts_drops, Tone::Bad),
    ]
}

fn section(title: &str, columns: Vec<Column>, rows: Vec<Vec<Cell>>) -> Option<Section> {
    if rows.is_empty() {
        return None;
    }
    Some(Section::new(title, vec![Part::Grid(Grid { caption: title.to_owned(), columns, rows })]))
}

fn hex(pid: u16) -> String {
    format!("{pid:#06x}")
}

/// Jitter has a limit of 500 ns: microseconds would hide it.
fn nanoseconds(seconds: f64) -> String {
    format!("{}{TIE}ns", count((seconds * 1e9).round() as u64))
}
