//! Lines over time as SVG: a pure function of numbers.
//!
//! charts-rs was tried first. It spaces the time axis by category, so that ticks fall on odd seconds and a
//! stage's window cannot be shaded; it writes colours into attributes, so that one drawing cannot follow a
//! light and a dark page; and its legend stands apart from the lines. This module does that and no more.

mod path;
mod ticks;

pub(crate) use ticks::{Tick, nines, step, tick_number, time_label, time_step};

use crate::quantity::{Units, number, shortened, unit_of};
use askama::Template;
use path::{marks, outline, path, thinned};
use ticks::{nine_ticks, number_ticks, time_ticks};

/// Several lines over the same seconds.
#[derive(Debug)]
pub(crate) struct Plot {
    pub(crate) title: String,
    pub(crate) units: Units,
    pub(crate) lines: Vec<Line>,
    pub(crate) bands: Vec<Band>,
    pub(crate) events: Vec<Event>,
    /// What the points are drawn over.
    pub(crate) across: Across,
    /// Length of that axis.
    pub(crate) length: f64,
    /// What the numbers of that axis are of.
    pub(crate) across_unit: String,
    /// What stands at places of that axis instead of numbers: dates of runs.
    pub(crate) places: Vec<(f64, String)>,
    /// The note under it.
    pub(crate) note: String,
    /// Whether a few values far above all others may lie above the axis, marked, so that they do not flatten the rest.
    pub(crate) robust: bool,
}

/// What the axis is of that points are drawn over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Across {
    /// Seconds of a run.
    Time,
    /// Numbers, such as of clients.
    Numbers,
    /// Percentiles, in nines: see [`nines`].
    Nines,
}

/// What a line is of. It has the same colour in every plot of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hue {
    /// What clients did: playing, sent, received.
    Done,
    /// What was planned or expected, and what is there for comparison only.
    Plan,
    /// A median.
    Median,
    /// The 99th percentile.
    Tail,
    /// A watched server, by its position.
    Target(usize),
    /// A thread of a watched server, by its rank.
    Thread(usize),
    /// weir itself.
    Generator,
    /// What held.
    Good,
    /// Failures and what did not hold, by rank.
    Bad(usize),
    /// Stalls, and what says nothing.
    Doubtful,
    /// One of several things of a kind: sides of a comparison, stages.
    Series(usize),
}

impl Hue {
    /// The class of `page.css`.
    fn class(self) -> String {
        match self {
            Self::Done => "h-done".to_owned(),
            Self::Plan => "h-plan".to_owned(),
            Self::Median => "h-median".to_owned(),
            Self::Tail => "h-tail".to_owned(),
            Self::Target(position) => format!("h-target{}", position % 4),
            Self::Thread(rank) => format!("h-thread{}", rank.min(COLOURS - 1)),
            Self::Generator => "h-generator".to_owned(),
            Self::Good => "h-good".to_owned(),
            Self::Bad(rank) => format!("h-bad{}", rank.min(3)),
            Self::Doubtful => "h-doubtful".to_owned(),
            Self::Series(position) => format!("l{}", position % COLOURS),
        }
    }
}

/// One line. Where there is no value, there is a gap.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, Option<f64>)>,
    /// What was meant, as against what was.
    pub(crate) dashed: bool,
    pub(crate) hue: Hue,
    /// Between what values it lies, where that is known: shaded.
    pub(crate) range: Vec<(f64, Option<(f64, f64)>)>,
    /// What its points are drawn as, where it is no line: one thing does not lead to the next.
    pub(crate) mark: Option<Mark>,
}

/// The shape of a point, by which it is known without its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Circle,
    Cross,
    Square,
}

impl Mark {
    /// A path from the point on.
    fn path(self) -> &'static str {
        match self {
            Self::Circle => "m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0",
            Self::Cross => "m-3.5 -3.5l7 7m-7 0l7 -7",
            Self::Square => "m-3 -3h6v6h-6z",
        }
    }
}

impl Line {
    /// A line of this colour.
    pub(crate) fn new(name: impl Into<String>, hue: Hue, points: Vec<(f64, Option<f64>)>) -> Self {
        Self { name: name.into(), points, dashed: false, hue, range: Vec::new(), mark: None }
    }

    /// The same as points of this shape.
    pub(crate) fn marked(self, mark: Mark) -> Self {
        Self { mark: Some(mark), ..self }
    }

    /// The same, dashed.
    pub(crate) fn dashed(self) -> Self {
        Self { dashed: true, ..self }
    }
}

/// A stage on the time axis, with the window that figures come from.
#[derive(Clone, Debug)]
pub(crate) struct Band {
    pub(crate) label: String,
    pub(crate) begin: f64,
    pub(crate) end: f64,
    pub(crate) window: (f64, f64),
}

/// What happened at one moment of the time axis, marked by a line from top to bottom.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) at: f64,
    /// The word beside the line.
    pub(crate) label: &'static str,
    /// The sentence of it, for a pointer and for screen readers.
    pub(crate) words: String,
}

/// A line of fewer values has none that is far above the others.
const FEWEST_FOR_PEAKS: usize = 8;

/// The number of lines that colours distinguish.
pub(crate) const COLOURS: usize = 6;

/// Where the lines are, within the 368 by 216 units of `plot.svg`. Text is 11 of them high: as many pixels as of a drawing on a page
/// of 400 pixels, whose margins take 32.
const LEFT: f64 = 40.0;
const RIGHT: f64 = 280.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 192.0;
/// Letters of a name that fit beside the lines.
const NAME_LETTERS: usize = 12;
/// Width of a letter of a tick's label, and a little more.
const LETTER: f64 = 6.0;
/// Between an event's line and its word.
const EVENT_GAP: f64 = 3.0;
/// Between two labels beside the lines.
const LABEL_GAP: f64 = 14.0;

/// A plot with every coordinate worked out.
#[derive(Template)]
#[template(path = "plot.svg", escape = "html")]
pub(crate) struct Drawing {
    id: String,
    title: String,
    description: String,
    pub(crate) note: String,
    unit: &'static str,
    /// What the page's script needs to say which values a place has.
    low: f64,
    high: f64,
    length: f64,
    across: &'static str,
    across_unit: String,
    /// Said beside the title, of values above the axis.
    above: String,
    peaks: Vec<Peak>,
    bands: Vec<DrawnBand>,
    events: Vec<DrawnEvent>,
    ticks: Vec<Tick>,
    value_ticks: Vec<Tick>,
    lines: Vec<DrawnLine>,
    zero: f64,
}

struct DrawnBand {
    label: String,
    begin: f64,
    middle: f64,
    window: f64,
    window_width: f64,
}

struct DrawnEvent {
    at: f64,
    label: &'static str,
    /// Where the word begins, or ends where there is no room behind the line.
    label_at: f64,
    is_before: bool,
    words: String,
}

/// A value above the axis.
struct Peak {
    at: f64,
    value: String,
}

struct DrawnLine {
    class: String,
    path: String,
    /// What stands before its name: a piece of it, from the middle on.
    key: &'static str,
    /// The outline of its range.
    range: String,
    name: String,
    label: String,
    label_at: f64,
}

/// From values to places.
struct Axes {
    length: f64,
    low: f64,
    high: f64,
}

impl Axes {
    fn x(&self, at: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * (at / self.length).clamp(0.0, 1.0)
    }

    fn y(&self, value: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }
}

impl Plot {
    /// Lines over numbers up to `length`, without stages and without a note.
    pub(crate) fn new(title: String, units: Units, lines: Vec<Line>, length: f64) -> Self {
        Self {
            title,
            units,
            lines,
            bands: Vec::new(),
            events: Vec::new(),
            across: Across::Numbers,
            length,
            across_unit: String::new(),
            places: Vec::new(),
            note: String::new(),
            robust: false,
        }
    }

    /// The drawing; none if there is nothing to draw: no value but 0, or a single point, which a table says as well.
    pub(crate) fn draw(&self, id: &str) -> Option<Drawing> {
        let points = || self.lines.iter().flat_map(|line| line.points.iter());
        let points = || points().filter_map(|(at, value)| Some((*at, value.filter(|it| it.is_finite())?)));
        let values = || points().map(|(_, value)| value);
        values().find(|value| *value != 0.0)?;
        let (first, _) = points().next()?;
        points().find(|(at, _)| *at != first)?;
        let ranges = self.lines.iter().flat_map(|line| &line.range);
        let ends = ranges.filter_map(|(_, range)| *range).flat_map(|(low, high)| [low, high]);
        let (lowest, peak) = values()
            .chain(ends.filter(|end| end.is_finite()))
            .fold((0.0, 0.0), |(low, high): (f64, f64), v| (low.min(v), high.max(v)));
        let highest = self.ceiling(peak).unwrap_or(peak);
        let (scale, unit) = unit_of(highest.max(-lowest), self.units);
        let range = highest - lowest;
        // Whole things, such as clients, have no half between two ticks.
        let is_whole = scale == 1.0 && values().all(|value| value.fract() == 0.0);
        let step = if is_whole { step(range).max(1.0) } else { step(range / scale) * scale };
        let low = (lowest / step).floor() * step;
        let high = (highest / step).ceil() * step;
        let axes = Axes { length: self.length.max(1.0), low, high };
        let steps = ((high - low) / step).round() as u32;
        let value_ticks = (0..=steps).map(|count| low + f64::from(count) * step);
        let drawn = |line: &Line| DrawnLine {
            class: format!("{}{}", line.hue.class(), if line.dashed { " meant" } else { "" }),
            path: match line.mark {
                Some(mark) => marks(&thinned(&line.points), &axes, mark),
                None => path(&thinned(&line.points), &axes),
            },
            key: line.mark.map_or("m-6 0h12", Mark::path),
            range: outline(&line.range, &axes),
            name: line.name.clone(),
            label: shortened(&line.name, NAME_LETTERS),
            label_at: axes.y(self.label_value(line)),
        };
        let lines = self.lines.iter().filter(|line| line.points.iter().any(|(_, value)| value.is_some()));
        let mut lines: Vec<DrawnLine> = lines.map(drawn).collect();
        part(&mut lines);
        let peaks = self.peaks(&axes);
        Some(Drawing {
            id: id.to_owned(),
            title: self.title.clone(),
            description: self.description(),
            note: self.note.clone(),
            unit,
            low: low / scale,
            high: high / scale,
            length: axes.length,
            across: match self.across {
                Across::Time => "time",
                Across::Numbers => "numbers",
                Across::Nines => "nines",
            },
            above: if peaks.is_empty() {
                String::new()
            } else {
                format!("▲ above: up to {}", self.say(peak))
            },
            peaks,
            bands: self.bands.iter().map(|band| band.drawn(&axes)).collect(),
            events: self.events.iter().map(|event| event.drawn(&axes)).collect(),
            across_unit: self.across_unit.clone(),
            ticks: match self.across {
                _ if !self.places.is_empty() => {
                    let tick = |(at, label): &(f64, String)| Tick { at: axes.x(*at), label: label.clone() };
                    self.places.iter().map(tick).collect()
                }
                Across::Time => time_ticks(&axes),
                Across::Numbers => number_ticks(&axes),
                Across::Nines => nine_ticks(&axes),
            },
            value_ticks: value_ticks.map(|v| Tick { at: axes.y(v), label: tick_number(v / scale) }).collect(),
            lines,
            zero: axes.y(0.0),
        })
    }

    /// Where the axis ends if a few values are far above all others: two of a line, or 2 %, more than twice as high as what is left
    /// of any line without them. Their places are marked at the axis' end. A value in a stage's window is never one of them.
    fn ceiling(&self, peak: f64) -> Option<f64> {
        let is_in_window =
            |at: f64| self.bands.iter().any(|band| (band.window.0..band.window.1).contains(&at));
        let rest = |line: &Line| {
            let known = line.points.iter().filter_map(|(at, value)| Some((*at, (*value)?)));
            let known: Vec<(f64, f64)> = known.filter(|(_, value)| value.is_finite()).collect();
            let (inside, mut outside) =
                known.iter().partition::<Vec<(f64, f64)>, _>(|(at, _)| is_in_window(*at));
            outside.sort_by(|a, b| b.1.total_cmp(&a.1));
            let dropped = if known.len() < FEWEST_FOR_PEAKS { 0 } else { (known.len() / 50).max(2) };
            inside
                .into_iter()
                .chain(outside.into_iter().skip(dropped))
                .map(|(_, value)| value)
                .fold(0.0, f64::max)
        };
        let rest = self.lines.iter().map(rest).fold(0.0, f64::max);
        (self.robust && rest > 0.0 && peak > 2.0 * rest).then_some(rest)
    }

    /// The values above the axis, each at its place.
    fn peaks(&self, axes: &Axes) -> Vec<Peak> {
        let above = self.lines.iter().flat_map(|line| line.points.iter().map(move |it| (line, it)));
        let peak = |(line, (at, value)): (&Line, &(f64, Option<f64>))| {
            let value = value.filter(|value| value.is_finite() && *value > axes.high)?;
            Some(Peak { at: axes.x(*at), value: format!("{}: {}", line.name, self.say(value)) })
        };
        above.filter_map(peak).collect()
    }

    /// A value in its unit.
    fn say(&self, value: f64) -> String {
        let (scale, unit) = unit_of(value, self.units);
        format!("{} {unit}", number(value / scale)).trim().to_owned()
    }

    /// Where a line is named: at the end of the last window, before the clients leave.
    fn label_value(&self, line: &Line) -> f64 {
        let until = self.bands.last().map_or(f64::INFINITY, |band| band.window.1);
        let measured = || line.points.iter().filter(|(_, value)| value.is_some_and(f64::is_finite));
        let last =
            measured().take_while(|(second, _)| *second < until).last().or_else(|| measured().next_back());
        last.and_then(|(_, value)| *value).unwrap_or(0.0)
    }

    /// A description for screen readers: the range of each line, and what happened.
    fn description(&self) -> String {
        let ranges = self.lines.iter().filter_map(|line| {
            let values = || line.points.iter().filter_map(|(_, value)| *value);
            let highest = values().reduce(f64::max)?;
            let lowest = values().reduce(f64::min)?;
            Some(format!("{} from {} to {}.", line.name, self.say(lowest), self.say(highest)))
        });
        let events = self.events.iter().map(|event| format!("{}.", event.words));
        ranges.chain(events).collect::<Vec<_>>().join(" ")
    }
}

impl Band {
    fn drawn(&self, axes: &Axes) -> DrawnBand {
        let (begin, end) = (axes.x(self.begin), axes.x(self.end));
        let (window, window_end) = (axes.x(self.window.0), axes.x(self.window.1));
        let room = self.label.chars().count() as f64 * LETTER;
        DrawnBand {
            label: if end - begin >= room { self.label.clone() } else { String::new() },
            begin,
            middle: f64::midpoint(begin, end),
            window,
            window_width: (window_end - window).max(0.0),
        }
    }
}

impl Event {
    fn drawn(&self, axes: &Axes) -> DrawnEvent {
        let at = axes.x(self.at);
        let is_before = at + LETTER * self.label.chars().count() as f64 + EVENT_GAP > RIGHT;
        let label_at = if is_before { at - EVENT_GAP } else { at + EVENT_GAP };
        DrawnEvent { at, label: self.label, label_at, is_before, words: self.words.clone() }
    }
}

/// Moves labels apart, in the order of their lines from top to bottom, and keeps them on the drawing.
fn part(lines: &mut [DrawnLine]) {
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by(|a, b| lines[*a].label_at.total_cmp(&lines[*b].label_at));
    let mut above = TOP - LABEL_GAP;
    for &position in &order {
        above = lines[position].label_at.max(above + LABEL_GAP);
        lines[position].label_at = above;
    }
    let mut below = BOTTOM + LABEL_GAP;
    for &position in order.iter().rev() {
        below = lines[position].label_at.min(below - LABEL_GAP);
        lines[position].label_at = below;
    }
}

#[cfg(test)]
mod tests {
    use super::path::{LONE, POINTS};
    use super::*;
    use crate::quantity::COUNT;

    fn plot(points: Vec<(f64, Option<f64>)>) -> Plot {
        let lines = vec![Line::new("a <b>", Hue::Done, points)];
        Plot { across: Across::Time, ..Plot::new("T & t".to_owned(), COUNT, lines, 60.0) }
    }

    #[test]
    fn one_second_far_above_all_others_is_marked_and_sets_no_axis() {
        let points: Vec<_> =
            (0..60).map(|at| (f64::from(at), Some(if at == 0 { 90.0 } else { 3.0 }))).collect();
        let window = Band { label: String::new(), begin: 0.0, end: 60.0, window: (0.0, 60.0) };
        let inside = Plot { robust: true, bands: vec![window], ..plot(points.clone()) }.draw("p").unwrap();
        assert_eq!((inside.high, inside.peaks.len()), (100.0, 0), "a value in a window is what is measured");
        let drawing = Plot { robust: true, ..plot(points.clone()) }.draw("p").unwrap();
        assert_eq!((drawing.high, drawing.peaks.len()), (3.0, 1));
        assert_eq!((&*drawing.above, &*drawing.peaks[0].value), ("▲ above: up to 90", "a <b>: 90"));
        let all = plot(points).draw("p").unwrap();
        assert_eq!((all.high, all.peaks.len()), (100.0, 0), "only where it is asked for");
        // What comes again and again is no exception.
        let often = (0..60).map(|at| (f64::from(at), Some(if at % 9 == 0 { 90.0 } else { 3.0 }))).collect();
        let drawing = Plot { robust: true, ..plot(often) }.draw("p").unwrap();
        assert!(drawing.peaks.is_empty() && drawing.above.is_empty());
    }

    #[test]
    fn an_axis_of_nines_ends_with_the_last_that_was_measured() {
        let points = [0.5, 0.9, 0.99].map(|quantile| (nines(quantile), Some(quantile))).to_vec();
        let plot = Plot { across: Across::Nines, length: 2.0, ..plot(points) };
        let ticks: Vec<_> = plot.draw("p").unwrap().ticks.into_iter().map(|tick| tick.label).collect();
        assert_eq!(ticks, ["0%", "50%", "90%", "99%"]);
    }

    #[test]
    fn nothing_measured_is_not_drawn() {
        assert!(plot(Vec::new()).draw("p").is_none());
        assert!(plot(vec![(0.0, None), (1.0, Some(f64::NAN))]).draw("p").is_none());
        assert!(
            plot(vec![(0.0, Some(0.0)), (1.0, Some(0.0))]).draw("p").is_none(),
            "an axis from 0 to 1 says nothing"
        );
        assert!(
            plot(vec![(1.0, Some(7.0)), (1.0, Some(3.0))]).draw("p").is_none(),
            "nor does a single place"
        );
    }

    #[test]
    fn steps_are_round_and_few() {
        for (range, expected) in [(1.0, 0.5), (2_500.0, 1_000.0), (97.0, 50.0), (0.0041, 0.002), (4.0, 1.0)] {
            assert!((step(range) / expected - 1.0).abs() < 1e-9, "{range}: {}", step(range));
        }
    }

    #[test]
    fn a_flat_line_has_an_axis_from_zero_on() {
        let drawing = plot(vec![(0.0, Some(1.0)), (1.0, Some(1.0))]).draw("p").unwrap();
        let ticks: Vec<_> = drawing.value_ticks.iter().map(|tick| tick.label.as_str()).collect();
        assert_eq!(ticks, ["0", "1"], "half a client says nothing");
        assert!(drawing.lines[0].path.chars().all(|letter| "ML0123456789. ".contains(letter)));
    }

    #[test]
    fn a_gap_parts_a_line_and_a_lone_value_is_a_short_bar() {
        let points = vec![(0.0, Some(1.0)), (1.0, None), (2.0, Some(2.0)), (3.0, Some(2.0))];
        let drawing = plot(points).draw("p").unwrap();
        assert_eq!(drawing.lines[0].path.matches('M').count(), 2);
        assert_eq!(drawing.lines[0].path.matches(LONE).count(), 1);
    }

    #[test]
    fn a_day_is_thinned_and_keeps_its_peak() {
        let points: Vec<_> =
            (0..86_400).map(|s| (f64::from(s), Some(if s == 43_210 { 9.0 } else { 1.0 }))).collect();
        let thin = thinned(&points);
        assert!(thin.len() <= POINTS);
        assert!(thin.contains(&(43_210.0, Some(9.0))));
    }

    #[test]
    fn text_is_escaped() {
        let svg = plot(vec![(0.0, Some(1.0)), (1.0, Some(2.0))]).draw("p").unwrap().to_string();
        assert!(!svg.contains("<b>") && !svg.contains("& t"), "{svg}");
    }

    #[test]
    fn an_event_is_a_line_with_a_word_beside_it_that_stays_on_the_drawing() {
        let event = |at| Event { at, label: "restart", words: "a <b> was told to end".to_owned() };
        let events = vec![event(10.0), event(58.0)];
        let drawing = Plot { events, ..plot(vec![(0.0, Some(1.0)), (1.0, Some(2.0))]) }.draw("p").unwrap();
        let [early, late] = &drawing.events[..] else { panic!() };
        assert!(early.label_at > early.at && !early.is_before);
        assert!(late.label_at < late.at && late.is_before && late.at <= RIGHT);
        assert!(drawing.description.ends_with("a <b> was told to end."), "{}", drawing.description);
        let svg = drawing.to_string();
        assert!(svg.matches("class=\"event\"").count() == 2 && !svg.contains("<b>"), "{svg}");
    }

    #[test]
    fn labels_never_overlap_nor_leave_the_drawing() {
        let line = |at| DrawnLine {
            class: String::new(),
            path: String::new(),
            key: "",
            range: String::new(),
            name: String::new(),
            label: String::new(),
            label_at: at,
        };
        let mut lines: Vec<_> = [190.0, 190.0, 189.0, 34.0, 34.0].into_iter().map(line).collect();
        part(&mut lines);
        let mut places: Vec<_> = lines.iter().map(|line| line.label_at).collect();
        places.sort_by(f64::total_cmp);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= LABEL_GAP - 1e-9), "{places:?}");
        assert!(places[0] >= TOP - 1e-9 && places[4] <= BOTTOM + 1e-9, "{places:?}");
    }
}
