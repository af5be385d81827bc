//! Lines that are drawn over themselves on the terminal of stderr. The cursor waits in the row below them, so that the `^C` that a
//! terminal writes by itself, or what somebody types, moves no line and goes with the next drawing.

use console::{Term, measure_text_width};
use std::io::IsTerminal;

/// Whether stderr is a terminal that may be drawn on.
pub(crate) fn is_for_drawing() -> bool {
    std::io::stderr().is_terminal() && !is_dumb() && !is_in_background()
}

/// Whether the terminal knows no escape sequences, as an editor's window says of itself.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|name| name == "dumb")
}

/// Whether stderr is a terminal in which another process group is in the foreground, as behind `weir … &`.
pub(crate) fn is_in_background() -> bool {
    let foreground = rustix::termios::tcgetpgrp(std::io::stderr());
    foreground.is_ok_and(|group| group != rustix::process::getpgrp())
}

/// What is drawn.
#[derive(Debug)]
pub(crate) struct Screen {
    terminal: Term,
    /// Columns of each line that stands there.
    drawn: Vec<usize>,
}

impl Screen {
    pub(crate) fn new() -> Self {
        Self { terminal: Term::buffered_stderr(), drawn: Vec::new() }
    }

    /// Columns and rows of the terminal now.
    pub(crate) fn size(&self) -> (usize, usize) {
        let (rows, columns) = self.terminal.size();
        (columns.into(), rows.into())
    }

    /// Draws these lines in place of those before.
    pub(crate) fn draw(&mut self, lines: &[String]) {
        // A terminal that has become narrower has broken them.
        let columns = self.size().0.max(1);
        let rows: usize = self.drawn.iter().map(|width| width.div_ceil(columns).max(1)).sum();
        // A reader that is gone must not end the run.
        let _ = self.replace(rows, lines);
        self.drawn = lines.iter().map(|line| measure_text_width(line)).collect();
    }

    fn replace(&self, rows: usize, lines: &[String]) -> std::io::Result<()> {
        // All of it at once, so that nothing flickers.
        self.terminal.write_str(&drawing(rows, lines))?;
        self.terminal.flush()
    }

    /// Takes away what is drawn.
    pub(crate) fn clear(&mut self) {
        if !self.drawn.is_empty() {
            self.draw(&[]);
        }
    }
}

/// Writes these lines in place of the `rows` above the cursor, and of what a person has typed in the cursor's own row.
///
/// Every row is erased by itself (ECMA-48, EL 2). An erased screen (ED) is what tmux moves into its history when the cursor is in the first
/// row (`scroll-on-clear`), so that each drawing would be found there again.
fn drawing(rows: usize, lines: &[String]) -> String {
    const ERASED_ROW: &str = "\x1b[2K";
    let up = |rows: usize| if rows == 0 { String::new() } else { format!("\x1b[{rows}A") };
    let mut text = format!("\r{}", up(rows));
    for line in lines {
        text.extend([ERASED_ROW, line, "\n"]);
    }
    let left_over = rows.saturating_sub(lines.len());
    text.push_str(&format!("{ERASED_ROW}\n").repeat(left_over));
    text.push_str(ERASED_ROW);
    text.push_str(&up(left_over));
    text
}

#[cfg(test)]
mod tests {
    use super::drawing;
    use std::num::NonZeroU16;

    fn lines(words: &str) -> Vec<String> {
        words.split_whitespace().map(str::to_owned).collect()
    }

    /// What stands on a terminal of 4 rows after these drawings; a person has typed `^C` before each but the first.
    fn shown(drawings: &[&str]) -> String {
        let [rows, columns] = [4, 20].map(|it| NonZeroU16::new(it).unwrap());
        let mut terminal = vt100::Parser::new(rows, columns, 0);
        let mut drawn = 0;
        for words in drawings {
            let lines = lines(words);
            // A terminal makes a carriage return and a line feed of a line feed.
            terminal.process(drawing(drawn, &lines).replace('\n', "\r\n").as_bytes());
            terminal.process(b"^C");
            drawn = lines.len();
        }
        terminal.screen().contents().replace('\n', " ")
    }

    #[test]
    fn lines_take_the_place_of_those_before_whether_they_are_more_or_fewer() {
        assert_eq!(shown(&["a b"]), "a b ^C");
        assert_eq!(shown(&["a b", "longer"]), "longer ^C");
        assert_eq!(shown(&["a", "c d e"]), "c d e ^C");
        assert_eq!(shown(&["a b c", ""]), "^C");
    }

    #[test]
    fn no_drawing_is_an_erased_screen_which_tmux_would_keep() {
        for (rows, words) in [(0, "a"), (3, "a b c"), (3, ""), (1, "a b")] {
            let text = drawing(rows, &lines(words));
            let sequences =
                text.split('\x1b').skip(1).filter_map(|it| it.chars().find(char::is_ascii_alphabetic));
            assert!(sequences.clone().all(|it| matches!(it, 'A' | 'K')), "{text:?}");
        }
    }
}
