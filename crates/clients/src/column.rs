//! What a client leaves behind when it ends: one number a column, for tables of clients and of channels.
//!
//! A protocol declares its columns; code that adds clients up or prints them reads the declarations.

/// One column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Column {
    /// Name of the figure; columns of one figure stand together.
    pub figure: &'static str,
    /// Which of its numbers.
    pub statistic: Statistic,
    /// The title of the figure, for people.
    pub title: &'static str,
    /// What its number is in.
    pub unit: ColumnUnit,
    /// Whether the table of all clients has the figure.
    pub summed: bool,
    /// Where the table of single clients has it.
    pub place: ColumnPosition,
    /// Whether more of it makes a worse client: of many clients the worst are shown.
    pub bad: bool,
    /// Whether the table of channels adds it up.
    pub by_channel: bool,
}

/// Which number of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// A count: that of a client which never came to count is 0, and clients add up.
    Sum,
    /// One value; a client has it or not.
    Once,
    /// The mean over the client's life.
    Mean,
    /// The least.
    Least,
    /// The most.
    Most,
    /// The last.
    Last,
}

/// What a number is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnUnit {
    /// Plain numbers.
    Count,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// Bits a second: of a client that never played 0.
    BitsPerSecond,
    /// Events a second: of a client that never played 0.
    PerSecond,
    /// A position in a list of words.
    Word(&'static [&'static str]),
}

/// Where a table of single clients has a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnPosition {
    /// Only in files.
    Apart,
    /// In a column of its own.
    Own,
    /// Below the one before it.
    Below,
}

impl Column {
    const fn new(figure: &'static str, statistic: Statistic, title: &'static str, unit: ColumnUnit) -> Self {
        let (summed, place, bad, by_channel) = (false, ColumnPosition::Apart, false, false);
        Self { figure, statistic, title, unit, summed, place, bad, by_channel }
    }

    /// A count.
    pub(crate) const fn sum(figure: &'static str, title: &'static str, unit: ColumnUnit) -> Self {
        Self::new(figure, Statistic::Sum, title, unit)
    }

    /// A single value.
    pub(crate) const fn once(figure: &'static str, title: &'static str, unit: ColumnUnit) -> Self {
        Self::new(figure, Statistic::Once, title, unit)
    }

    /// A value out of many.
    pub(crate) const fn of(
        statistic: Statistic,
        figure: &'static str,
        title: &'static str,
        unit: ColumnUnit,
    ) -> Self {
        Self::new(figure, statistic, title, unit)
    }

    /// In the table of all clients too.
    pub(crate) const fn summed(self) -> Self {
        Self { summed: true, ..self }
    }

    /// In the table of single clients too.
    pub(crate) const fn placed(self, place: ColumnPosition) -> Self {
        Self { place, ..self }
    }

    /// Of many clients those with the most of it are shown.
    pub(crate) const fn bad(self) -> Self {
        Self { bad: true, ..self }
    }

    /// In the table of channels too.
    pub(crate) const fn by_channel(self) -> Self {
        Self { by_channel: true, ..self }
    }

    /// Its name in files, the unit included: `rtc.video_delay_max_seconds`.
    pub fn key(&self) -> String {
        let statistic = match self.statistic {
            Statistic::Sum | Statistic::Once => "",
            Statistic::Mean => "_mean",
            Statistic::Least => "_min",
            Statistic::Most => "_max",
            Statistic::Last => "_last",
        };
        let unit = match self.unit {
            ColumnUnit::Bytes if !self.figure.ends_with("bytes") => "_bytes",
            ColumnUnit::Seconds => "_seconds",
            ColumnUnit::BitsPerSecond => "_bps",
            ColumnUnit::Count | ColumnUnit::PerSecond | ColumnUnit::Bytes | ColumnUnit::Word(_) => "",
        };
        format!("{}{statistic}{unit}", self.figure)
    }

    /// Whether a client that has no number counts as one with 0.
    pub fn is_zero_by_default(&self) -> bool {
        self.statistic == Statistic::Sum
            || matches!(self.unit, ColumnUnit::BitsPerSecond | ColumnUnit::PerSecond)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_says_what_it_is_and_in_what() {
        let delay = Column::of(Statistic::Most, "rtc.video_delay", "Video Delay", ColumnUnit::Seconds);
        assert_eq!((&*delay.key(), delay.is_zero_by_default()), ("rtc.video_delay_max_seconds", false));
        let bytes = Column::sum("media", "#BYTES", ColumnUnit::Bytes);
        assert_eq!((&*bytes.key(), bytes.is_zero_by_default()), ("media_bytes", true));
    }
}
