//! Which of ever more clients are kept one by one: each of the first hundred thousand, then as many drawn at random out of all.

/// Records that are kept one by one: 100 MB of those with most columns.
pub(crate) const MOST: usize = 100_000;

/// Gives each client its place among those that are kept, or none.
#[derive(Debug)]
pub(crate) struct Reservoir {
    all: u64,
    /// Of a fixed seed: the same records are written down and kept in memory, and a later reader of the file keeps the same ones.
    random: fastrand::Rng,
}

impl Default for Reservoir {
    fn default() -> Self {
        Self { all: 0, random: fastrand::Rng::with_seed(0) }
    }
}

impl Reservoir {
    /// Whether the next place is still free.
    pub(crate) fn is_filling(&self) -> bool {
        self.all < MOST as u64
    }

    /// The place of the next client; another may have had it before.
    pub(crate) fn place(&mut self) -> Option<usize> {
        self.all += 1;
        if self.all <= MOST as u64 {
            return usize::try_from(self.all - 1).ok();
        }
        // Algorithm R (J. Vitter, Random sampling with a reservoir, ACM TOMS 11, 1985): each of all has the same chance.
        usize::try_from(self.random.u64(..self.all)).ok().filter(|place| *place < MOST)
    }

    /// Counts clients whose places were given elsewhere.
    pub(crate) fn skip(&mut self, clients: u64) {
        self.all = self.all.saturating_add(clients);
    }
}
