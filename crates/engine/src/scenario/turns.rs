//! In which order the runs of a scenario are made.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// In which order the runs of a series are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Every variant once, then all in reverse, then forward again: what one leaves behind, and what changes slowly on the
    /// machine, is spread over all of them. Of two variants each comes first as often if `repeat` is even.
    #[default]
    Interleaved,
    /// All repetitions of the first variant, then those of the next.
    Sequential,
    /// Every variant once in an order that the seed decides, then all in another one: what changes on the machine in step
    /// with a fixed order hits none of them more than others.
    Random,
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
}
