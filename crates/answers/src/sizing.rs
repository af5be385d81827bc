//! How many machines a load needs: what a client costs, times the clients, against what a machine has of it.
//!
//! Functions of values. What a client costs comes from two steps of a measured run; how they were made, and what a machine is, is not
//! known here.

use std::str::FromStr;
use weir_clients::SecretUrl;
use weir_engine::summary::StageSummary;
use weir_engine::{CORES_OF_A_VALID_RUN, LINK_WITHIN_REACH};
use weir_metrics::{BitRate, ParseUnitError};

/// Share of the available memory that clients may take. The rest is for what is not in weir's resident memory: a TCP socket of the
/// kernel has 2.5 KiB, and what waits in it.
const MEMORY_SHARE: f64 = 0.8;
/// Bits on the wire for each bit of a stream. A full TCP segment has 1,448 bytes in 1,538 of Ethernet with preamble and gap (6 %),
/// SRT's 1,316 bytes of transport stream are 1,398 (6 %), and 1,200 bytes of RTP payload with SRTP 1,288 (7 %).
const WIRE_OVERHEAD: f64 = 1.07;
/// Highest bit rate of a client: above it is no stream, and no network card.
const MOST_BPS: f64 = 100e9;
/// Least difference of CPU between two steps, in percent of one core, from which the cost of a client is told apart from what weir uses
/// without clients: the kernel counts in ticks of 10 ms, which is 0.25 points at either end of a window of 4 s.
const DISTINCT_PERCENT: f64 = 1.0;
/// Share of what was used that a client's cost has at the least, however much of it both steps had in common: one step that was
/// disturbed must not make clients free.
const LEAST_SHARE: f64 = 0.5;

/// A load that is planned.
#[derive(Clone, Debug, PartialEq)]
pub struct SizingPlan {
    /// Where the clients are to go.
    pub url: SecretUrl,
    /// How many there are to be at a time.
    pub clients: u32,
    /// What each of them is to receive.
    pub rate: BitRate,
}

/// A text that is no such plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SizingPlanError {
    /// It has other words: write a URL, a number, `at` and a bit rate.
    #[error(
        "not of the form 'URL CLIENTS at BITRATE'; write for example 'rtmp://host/live/a 50000 at 2mbps'"
    )]
    Form,
    /// The number of clients is none: write it in digits.
    #[error("'{0}' is not a number of clients; write for example 50000")]
    Clients(String),
    /// No client needs no machine: write how many there are to be.
    #[error("0 clients need no machine; write how many there are to be")]
    NoClients,
    /// The bit rate is none.
    #[error(transparent)]
    Rate(#[from] ParseUnitError),
    /// The bit rate is that of no stream: write what one client receives.
    #[error("{0} is more than one client receives; write the bit rate of its stream, for example 4mbps")]
    RateOfNoStream(BitRate),
}

impl FromStr for SizingPlan {
    type Err = SizingPlanError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [url, clients, "at", rate @ ..] = &words[..] else { return Err(SizingPlanError::Form) };
        if !url.contains("://") || rate.is_empty() {
            return Err(SizingPlanError::Form);
        }
        let clients: u32 = clients.parse().map_err(|_| SizingPlanError::Clients((*clients).to_owned()))?;
        if clients == 0 {
            return Err(SizingPlanError::NoClients);
        }
        let rate: BitRate = rate.concat().parse()?;
        if rate.bps() > MOST_BPS {
            return Err(SizingPlanError::RateOfNoStream(rate));
        }
        Ok(Self { url: SecretUrl::new(*url), clients, rate })
    }
}

/// What one client takes of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClientCost {
    /// Cores: CPU seconds in a second.
    pub cores: f64,
    /// Resident memory of weir.
    pub memory_bytes: f64,
    /// Sockets: of each a descriptor and a local port.
    pub sockets: f64,
    /// Bits a second on the wire.
    pub wire_bps: f64,
}

impl ClientCost {
    /// The cost by two steps of one run, of which the second has more clients, each of whom is to receive this rate. What both steps have
    /// in common (weir itself, and a publisher beside the clients) is no client's. `None` if nothing of weir was read, or nothing played.
    pub fn between(few: &StageSummary, many: &StageSummary, rate: BitRate) -> Option<Self> {
        let (less, more) = (few.generator.as_ref()?, many.generator.as_ref()?);
        let added = many.playing_mean - few.playing_mean;
        if many.playing_mean < 1.0 || added < 1.0 {
            return None;
        }
        let together = more.cpu_percent / many.playing_mean;
        let growth = more.cpu_percent - less.cpu_percent;
        let alone = if growth >= DISTINCT_PERCENT { growth / added } else { together };
        let memory = more.rss_max_bytes.saturating_sub(less.rss_max_bytes) as f64 / added;
        let sockets = more.descriptors_max.unwrap_or(0).saturating_sub(less.descriptors_max.unwrap_or(0));
        let received = many.actual_bps / many.playing_mean;
        Some(Self {
            cores: alone.clamp(LEAST_SHARE * together, together) / 100.0,
            memory_bytes: memory,
            // Each client has one at the least.
            sockets: (sockets as f64 / added).max(1.0),
            wire_bps: received.max(rate.bps()) * WIRE_OVERHEAD,
        })
    }
}

/// What a machine has; what is not known limits nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineLimits {
    /// Cores that weir can use.
    pub cores: f64,
    /// Memory that is available.
    pub memory_bytes: Option<u64>,
    /// Descriptors that clients may have.
    pub descriptors: u64,
    /// Local ports of one address.
    pub ports: Option<u64>,
    /// Speed of the link to the target.
    pub link_bps: Option<f64>,
}

/// What can run out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// CPU.
    Cores,
    /// Memory.
    Memory,
    /// Open files.
    OpenFiles,
    /// Local ports.
    Ports,
    /// The link to the target.
    Network,
}

impl Resource {
    /// As a sentence has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cores => "cores",
            Self::Memory => "memory",
            Self::OpenFiles => "open files",
            Self::Ports => "local ports",
            Self::Network => "network",
        }
    }
}

/// What a load needs of one resource.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Need {
    /// Of what.
    pub resource: Resource,
    /// What all clients need.
    pub all: f64,
    /// What one machine gives them of it, if that is known.
    pub of_a_machine: Option<f64>,
    /// How many clients that is enough for, if it is known and clients take any.
    pub clients: Option<u64>,
}

/// How many machines a load needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizing {
    /// What it needs of each resource.
    pub needs: [Need; 5],
    /// What runs out first as clients are added to one machine.
    pub first: Option<Resource>,
    /// How many machines like this one; `None` if one carries no client at all.
    pub machines: Option<u64>,
}

impl Sizing {
    /// How many machines so many clients of this cost need.
    pub fn of(clients: u32, cost: &ClientCost, machine: &MachineLimits) -> Self {
        let memory = machine.memory_bytes.map(|bytes| bytes as f64 * MEMORY_SHARE);
        let cores = Some(machine.cores * CORES_OF_A_VALID_RUN);
        let need = |resource, each: f64, of_a_machine: Option<f64>| Need {
            resource,
            all: each * f64::from(clients),
            of_a_machine,
            // What a machine has is finite, and a quotient beyond what fits is as good as any.
            clients: of_a_machine.filter(|_| each > 0.0).map(|has| (has / each) as u64),
        };
        let needs = [
            need(Resource::Cores, cost.cores, cores),
            need(Resource::Memory, cost.memory_bytes, memory),
            need(Resource::OpenFiles, cost.sockets, Some(machine.descriptors as f64)),
            need(Resource::Ports, cost.sockets, machine.ports.map(|ports| ports as f64)),
            need(Resource::Network, cost.wire_bps, machine.link_bps.map(|bps| bps * LINK_WITHIN_REACH)),
        ];
        let tightest = needs.iter().filter(|it| it.clients.is_some()).min_by_key(|it| it.clients);
        let carried = tightest.and_then(|it| it.clients);
        Self {
            needs,
            first: tightest.map(|it| it.resource),
            machines: match carried {
                Some(0) => None,
                Some(carried) => Some(u64::from(clients).div_ceil(carried)),
                None => Some(1),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plan(text: &str) -> Result<SizingPlan, String> {
        text.parse().map_err(|error: SizingPlanError| error.to_string())
    }

    #[test]
    fn a_plan_is_a_url_a_number_and_a_bit_rate() {
        let url = SecretUrl::new("rtmp://host/live/a");
        let expected = SizingPlan { url, clients: 50_000, rate: BitRate::from_bps(2e6) };
        for text in ["rtmp://host/live/a 50000 at 2mbps", "  rtmp://host/live/a  50000 at 2 mbps "] {
            assert_eq!(plan(text), Ok(expected.clone()));
        }
    }

    #[test]
    fn what_is_no_plan_is_answered_by_one_line_that_says_what_would_be() {
        let form = "not of the form 'URL CLIENTS at BITRATE'";
        for (text, words) in [
            ("", form),
            ("rtmp://host/live/a", form),
            ("rtmp://host/live/a 50000", form),
            ("rtmp://host/live/a 50000 at", form),
            ("rtmp://host/live/a 50000 by 2mbps", form),
            ("host/live/a 50000 at 2mbps", form),
            ("rtmp://host/live/a many at 2mbps", "'many' is not a number of clients"),
            ("rtmp://host/live/a -1 at 2mbps", "'-1' is not a number of clients"),
            ("rtmp://host/live/a 5000000000 at 2mbps", "'5000000000' is not a number of clients"),
            ("rtmp://host/live/a 0 at 2mbps", "0 clients need no machine"),
            ("rtmp://host/live/a 5 at 0mbps", "'0mbps' is not a bit rate"),
            ("rtmp://host/live/a 5 at speed", "'speed' is not a bit rate"),
            ("rtmp://host/live/a 5 at 2000gbps", "2000.00 Gbps is more than one client receives"),
        ] {
            let line = plan(text).unwrap_err();
            assert!(line.starts_with(words) && line.lines().count() == 1, "{text}: {line}");
        }
        let beyond = format!("rtmp://h/a/b 5 at {}gbps", "9".repeat(400));
        assert!(plan(&beyond).is_err());
        let secret = plan("rtmp://u:password@host/live/key many at 2mbps").unwrap_err();
        assert!(!secret.contains("password") && !secret.contains("key"), "{secret}");
    }

    /// A machine of two cores, 4 GB, 28,000 ports, many files and 10 Gbit/s.
    fn machine() -> MachineLimits {
        MachineLimits {
            cores: 2.0,
            memory_bytes: Some(4_000_000_000),
            descriptors: 1_000_000,
            ports: Some(28_000),
            link_bps: Some(10e9),
        }
    }

    const COST: ClientCost =
        ClientCost { cores: 40e-6, memory_bytes: 4_000.0, sockets: 1.0, wire_bps: 214_000.0 };

    #[test]
    fn what_runs_out_first_says_how_many_machines() {
        let cost = COST;
        let limits = machine();
        let pinned = MachineLimits { cores: 0.5, ..limits.clone() };
        let small = MachineLimits { memory_bytes: Some(10_000_000), ..limits.clone() };
        let shell = MachineLimits { descriptors: 896, ..limits.clone() };
        let wide = MachineLimits { ports: Some(64_000), ..limits.clone() };
        let slow = MachineLimits { link_bps: Some(1e9), ..limits.clone() };
        let cases = [
            // 0.4 of 2 cores at 40 µs a second are 20,000; ports would be enough for 28,000.
            (50_000, cost, limits.clone(), Resource::Cores, Some(3)),
            (20_000, cost, limits.clone(), Resource::Cores, Some(1)),
            (20_001, cost, limits.clone(), Resource::Cores, Some(2)),
            (1, cost, limits.clone(), Resource::Cores, Some(1)),
            (50_000, cost, pinned, Resource::Cores, Some(10)),
            // 0.8 of 10 MB at 4 kB are 2,000.
            (50_000, cost, small, Resource::Memory, Some(25)),
            (50_000, cost, shell, Resource::OpenFiles, Some(56)),
            (50_000, ClientCost { cores: 1e-6, ..cost }, limits.clone(), Resource::Ports, Some(2)),
            // Two links a viewer, as of HLS, are two ports.
            (
                50_000,
                ClientCost { cores: 1e-6, sockets: 2.0, ..cost },
                limits.clone(),
                Resource::Ports,
                Some(4),
            ),
            // 0.9 of 10 Gbit/s at 214 kbit/s are 42,056.
            (50_000, ClientCost { cores: 1e-6, ..cost }, wide, Resource::Network, Some(2)),
            (50_000, cost, slow, Resource::Network, Some(12)),
            // One that takes more than the machine has: no number of such machines is enough.
            (5, ClientCost { cores: 3.0, ..cost }, limits.clone(), Resource::Cores, None),
            (u32::MAX, cost, limits, Resource::Cores, Some(214_749)),
        ];
        for (clients, cost, limits, first, machines) in cases {
            let sizing = Sizing::of(clients, &cost, &limits);
            assert_eq!((sizing.first, sizing.machines), (Some(first), machines), "{clients}, {limits:?}");
        }
    }

    #[test]
    fn what_is_not_known_limits_nothing_and_its_need_is_told_all_the_same() {
        let unknown = MachineLimits { memory_bytes: None, ports: None, link_bps: None, ..machine() };
        let sizing = Sizing::of(50_000, &COST, &unknown);
        assert_eq!((sizing.first, sizing.machines), (Some(Resource::Cores), Some(3)));
        let network = sizing.needs[4];
        assert_eq!((network.all, network.of_a_machine, network.clients), (10.7e9, None, None));
        // Clients that cost nothing that could be measured.
        let free = Sizing::of(7, &ClientCost { cores: 0.0, ..ClientCost::default() }, &unknown);
        assert_eq!((free.first, free.machines), (None, Some(1)));
    }

    /// A step in which weir used so much of a core for so many viewers.
    fn step(clients: f64, cpu_percent: f64, rss: u64, descriptors: u64, bps: f64) -> StageSummary {
        let generator = json!({
            "label": "weir", "cpu_percent": cpu_percent, "cpu_percent_max": cpu_percent, "rss_max_bytes": rss,
            "rss_mean_bytes": rss, "connections_max": null, "descriptors_max": descriptors,
            "context_switches_per_second": 0, "threads": []
        });
        serde_json::from_value(json!({
            "stage": 0, "clients": clients as u32, "begin_seconds": 0, "end_seconds": 8, "window_begin_seconds": 3,
            "window_end_seconds": 8, "playing_mean": clients, "expected_bps": bps, "actual_bps": bps, "figures": {},
            "targets": [], "generator": generator, "host": null, "verdict": "valid"
        }))
        .unwrap()
    }

    #[test]
    fn what_two_steps_have_in_common_is_no_clients() {
        let rate = BitRate::from_bps(1e6);
        let few = step(100.0, 2.0, 20_000_000, 120, 100e6);
        let cost = ClientCost::between(&few, &step(500.0, 6.0, 24_000_000, 520, 500e6), rate).unwrap();
        let expected = ClientCost { cores: 1e-4, memory_bytes: 10_000.0, sockets: 1.0, wire_bps: 1.07e6 };
        assert!((cost.cores - expected.cores).abs() < 1e-12, "{cost:?}");
        assert_eq!(ClientCost { cores: expected.cores, ..cost }, expected);
    }

    #[test]
    fn a_disturbed_step_makes_no_client_free_and_none_dearer_than_all_that_was_used() {
        let rate = BitRate::from_bps(1e6);
        let cores = |few: f64, many: f64| {
            let steps = (step(100.0, few, 0, 0, 1e8), step(500.0, many, 0, 0, 5e8));
            ClientCost::between(&steps.0, &steps.1, rate).unwrap().cores
        };
        let close = |cores: f64, expected: f64| assert!((cores - expected).abs() < 1e-12, "{cores}");
        // The second step used less than the first, or hardly more: all that was used is the clients'.
        close(cores(5.0, 4.0), 4.0 / 500.0 / 100.0);
        close(cores(4.5, 5.0), 5.0 / 500.0 / 100.0);
        // Nearly all of it was used without the second step's clients.
        close(cores(8.0, 10.0), 0.5 * 10.0 / 500.0 / 100.0);
        // The first step was not disturbed, and the second was.
        close(cores(0.0, 10.0), 10.0 / 500.0 / 100.0);
    }

    #[test]
    fn steps_in_which_nothing_played_or_nothing_was_read_have_no_cost() {
        let rate = BitRate::from_bps(1e6);
        let few = step(100.0, 2.0, 0, 0, 1e8);
        assert_eq!(ClientCost::between(&few, &step(0.0, 2.0, 0, 0, 0.0), rate), None);
        assert_eq!(ClientCost::between(&few, &few, rate), None);
        let unread = StageSummary { generator: None, ..step(500.0, 0.0, 0, 0, 5e8) };
        assert_eq!(ClientCost::between(&few, &unread, rate), None);
    }
}
