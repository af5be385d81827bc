//! What the target, its machine and the network had left at the edge, and what a client or a message cost.

use super::lines::fullest;
use crate::document::Fact;
use crate::quantity::{bit_rate, count, joined, percent, seconds, several};
use crate::quote::quote;
use weir_answers::capacity::{CapacitySummary, Cost, CostOf, LoadOutcome, NetworkLoad, TrialVerdict};

/// One line each, at the largest load that was carried (if none was, at the smallest that was not), and at about half of it.
pub(super) fn facts(summary: &CapacitySummary) -> Vec<Fact> {
    let bounds = summary.answer.bounds;
    let lower = bounds.lower.and_then(|load| summary.at_with(load, TrialVerdict::Pass));
    let upper = || bounds.upper.and_then(|load| summary.at_with(load, TrialVerdict::Fail));
    let Some(edge) = lower.or_else(upper) else { return Vec::new() };
    let half = summary.at_half_of(edge.load);
    let cores = summary.run.environment.cpu.online_count.max(1);
    let line = |name: &str, words: &dyn Fn(&LoadOutcome) -> Option<String>| {
        let at_edge = words(edge)?;
        let at_half =
            half.and_then(|half| Some(format!("; at {} {}", count(half.load.into()), words(half)?)));
        Some(Fact::new(name, format!("{at_edge}{}", at_half.unwrap_or_default())))
    };
    let lines = [
        line("Cost", &|it| it.cost.map(cost)),
        line("CPU left", &|it| cpu_left(it, cores)),
        line("Network", &|it| it.network.as_ref().map(network)),
    ];
    lines.into_iter().flatten().collect()
}

/// `2.5% of a core a client`, `12.1 ms of CPU for 1,000 messages`.
fn cost(cost: Cost) -> String {
    match cost.of {
        CostOf::ClientSecond => format!("{} of a core a client", small_percent(100.0 * cost.cpu_seconds)),
        CostOf::ThousandMessages => format!("{} of CPU for 1,000 messages", seconds(cost.cpu_seconds)),
    }
}

/// With two digits, however small: a viewer costs less than a hundredth of a percent of a large server.
fn small_percent(value: f64) -> String {
    if value > 0.0 && value < 0.095 {
        let digits = (1.0 - value.log10().floor()).clamp(2.0, 9.0) as usize;
        format!("{value:.digits$}%")
    } else {
        percent(value)
    }
}

/// `1% of a core of nginx's busiest thread, 98% of 2 cores of the host`.
fn cpu_left(outcome: &LoadOutcome, cores: u64) -> Option<String> {
    let left = |used: f64, of: f64| percent((of - used).max(0.0));
    let thread = fullest(outcome).map(|it| format!("{} of a core for {}", left(it.percent, 100.0), it.name));
    let all = 100.0 * cores as f64;
    let host = outcome
        .host_cpu_percent
        .map(|cpu| format!("{} of the host's {}", left(100.0 * cpu / all, 100.0), several(cores, "core")));
    let parts: Vec<_> = thread.into_iter().chain(host).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// `804 Mbps sent, 812 Mbps received; 81% of eth0's 1.00 Gbps`.
fn network(network: &NetworkLoad) -> String {
    let rate = |bps| joined(bit_rate(bps));
    let (sent, received) = (rate(network.tx_bps), rate(network.rx_bps));
    let link = network.link.as_ref().map(|link| {
        let share = percent(100.0 * link.bps / link.speed_bps.max(1.0));
        format!(", {share} of {}'s {}", quote(&link.interface, 40), rate(link.speed_bps))
    });
    format!("{sent} sent, {received} received{}", link.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_engine::summary::LinkLoad;

    #[test]
    fn a_cost_has_two_digits_however_small_it_is() {
        let of = |of, cpu_seconds| cost(Cost { of, cpu_seconds }).replace('\u{a0}', " ");
        assert_eq!(of(CostOf::ClientSecond, 0.025), "2.5% of a core a client");
        assert_eq!(of(CostOf::ClientSecond, 0.000_028_4), "0.0028% of a core a client");
        assert_eq!(of(CostOf::ThousandMessages, 0.012_1), "12.1 ms of CPU for 1,000 messages");
    }

    #[test]
    fn a_link_is_named_where_its_speed_is_known() {
        let of = |link| network(&NetworkLoad { rx_bps: 1e6, tx_bps: 8e8, link }).replace('\u{a0}', " ");
        assert_eq!(of(None), "800 Mbps sent, 1.00 Mbps received");
        let link = LinkLoad { interface: "eth0".to_owned(), bps: 8e8, speed_bps: 1e9 };
        assert_eq!(of(Some(link)), "800 Mbps sent, 1.00 Mbps received, 80% of eth0's 1.00 Gbps");
    }
}
