//! Lines that are drawn over themselves on the terminal of stderr. The cursor waits in the row below them, so that the `^C` that a
//! terminal writes by itself, or what somebody types, moves no line and goes with the next drawing.

use console::{Term, measure_text_width};

/// What is drawn.
#[derive(Debug)]
pub(super) struct Screen {
    terminal: Term,
    /// Columns of each line that stands there.
    drawn: Vec<usize>,
}

impl Screen {
    pub(super) fn new() -> Self {
        Self { terminal: Term::buffered_stderr(), drawn: Vec::new() }
    }

    /// Columns and rows of the terminal now.
    pub(super) fn size(&self) -> (usize, usize) {
        let (rows, columns) = self.terminal.size();
        (columns.into(), rows.into())
    }

    /// Draws these lines in place of those before.
    pub(super) fn draw(&mut self, lines: &[String]) {
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
    pub(super) fn clear(&mut self) {
        if !self.drawn.is_empty() {
            self.draw(&[]);
        }
    }
}
