//! How the time of a sweep is shared among its searches: what some leave over is for those that come after them.

use crate::table::TableRun;
use std::collections::BTreeSet;
use std::time::Duration;

/// What the next search may take of a sweep of `searches`, of which `made` were made in `used`, where each may take `each`:
/// those that come share what those before left over.
pub fn budget_of_next(each: Duration, searches: u32, made: u32, used: Duration) -> Duration {
    let left = (each * searches).saturating_sub(used);
    (left / searches.saturating_sub(made).max(1)).max(each)
}

/// What another variant than this one is sure to carry in every search of it, the most of any. One that is shown to carry no
/// more is not the best, whatever it carries.
pub fn rival_of(variant: &str, searches: &[TableRun]) -> Option<u32> {
    let others = searches.iter().filter(|search| search.variant != variant && search.is_counted());
    let names: BTreeSet<&str> = others.map(|search| search.variant.as_str()).collect();
    let carries = |name: &&str| {
        let of = searches.iter().filter(|search| search.variant == **name && search.is_counted());
        let lowers: Option<Vec<u32>> =
            of.map(|search| search.capacity.filter(|it| it.lower_is_sure).and_then(|it| it.lower)).collect();
        lowers?.into_iter().min()
    };
    names.iter().filter_map(carries).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::Evidence;
    use crate::sweep::fixture::search;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn what_a_search_leaves_over_is_shared_by_those_that_come() {
        assert_eq!(budget_of_next(20 * MINUTE, 3, 0, Duration::ZERO), 20 * MINUTE);
        assert_eq!(budget_of_next(20 * MINUTE, 3, 1, 4 * MINUTE), 28 * MINUTE);
        assert_eq!(budget_of_next(20 * MINUTE, 3, 2, 10 * MINUTE), 50 * MINUTE);
        // None has less than it was promised, though servers take time to start.
        assert_eq!(budget_of_next(20 * MINUTE, 3, 2, 45 * MINUTE), 20 * MINUTE);
    }

    #[test]
    fn a_rival_is_what_another_variant_is_sure_to_carry_each_time() {
        let cell = |variant: &str, lower, is_sure| {
            search(variant, lower, None, if is_sure { Evidence::AtLeast } else { Evidence::Undecided })
        };
        let cells = [cell("a", 100, true), cell("a", 90, true), cell("b", 120, false), cell("c", 80, true)];
        assert_eq!(rival_of("c", &cells), Some(90));
        assert_eq!(rival_of("a", &cells), Some(80));
        assert_eq!(rival_of("a", &cells[..2]), None);
    }
}
