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
        self.terminal.write_str("\r")?;
        self.terminal.move_cursor_up(rows)?;
        self.terminal.clear_to_end_of_screen()?;
        lines.iter().try_for_each(|line| self.terminal.write_line(line))?;
        // All of it at once, so that nothing flickers.
        self.terminal.flush()
    }

    /// Takes away what is drawn.
    pub(crate) fn clear(&mut self) {
        if !self.drawn.is_empty() {
            self.draw(&[]);
        }
    }
}
