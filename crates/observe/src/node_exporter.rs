//! A node_exporter, asked directly: the four collectors that the figures need, out of its text format.

use std::time::{Duration, Instant};

use crate::exposition::{Metric, metrics};
use crate::machine::{CpuTime, InterfaceBytes, Reading};
use crate::{Interfaces, MachineError, MachineFacts, MachineSource, MachineValues};
use weir_http::{Http, HttpAddress, HttpTrust, refusal};
use weir_setting::NODE_EXPORTER;

/// Version 0.0.4 is the format that [`metrics`] reads.
const ACCEPT: &str = "text/plain;version=0.0.4";
/// What is asked of a node_exporter: the rest costs its machine time.
const COLLECTORS: [(&str, &str); 4] =
    [("collect[]", "cpu"), ("collect[]", "meminfo"), ("collect[]", "loadavg"), ("collect[]", "netdev")];
/// Interfaces that are looked at.
const MOST_INTERFACES: usize = 4_096;
/// Time from one scrape to the next.
pub(crate) const PERIOD: Duration = Duration::from_secs(1);

/// A node_exporter that has answered once.
#[derive(Debug)]
pub(crate) struct NodeExporter {
    http: Http,
    address: HttpAddress,
    /// The address as it was asked for.
    shown: String,
    interfaces: Interfaces,
    last: (Instant, Reading),
}

impl NodeExporter {
    /// Scrapes it once. A URL without a path means `/metrics`.
    pub(crate) fn new(url: &str, interfaces: Interfaces, trust: &HttpTrust) -> Result<Self, MachineError> {
        let address = HttpAddress::parse(url)
            .ok_or_else(|| MachineError::not_a_url(url, NODE_EXPORTER, "http://HOST:9100"))?;
        let address = if address.is_bare() { address.below("metrics") } else { address };
        let unheard =
            |source| MachineError::Unheard { what: "node_exporter", address: address.to_string(), source };
        let http = Http::new(&address, trust).map_err(unheard)?;
        let filtered = if address.has_query() { address.clone() } else { address.with(&COLLECTORS) };
        let began = Instant::now();
        let (status, body) = http.answer(&filtered, ACCEPT).map_err(unheard)?;
        let (kept, at, body) = match status {
            200..300 => (filtered, middle(began), body),
            // One that has a collector switched off refuses to be asked for it.
            400 if !address.has_query() => {
                let began = Instant::now();
                let body = http.get(&address, ACCEPT).map_err(unheard)?;
                (address.clone(), middle(began), body)
            }
            status => return Err(unheard(refusal(status, &body))),
        };
        let reading = Reading::of_exposition(&body);
        if reading == Reading::default() {
            return Err(MachineError::NotNodeExporter { address: address.to_string() });
        }
        Ok(Self { http, address: kept, shown: address.to_string(), interfaces, last: (at, reading) })
    }

    pub(crate) fn facts(&self) -> MachineFacts {
        MachineFacts {
            source: MachineSource::NodeExporter,
            address: Some(self.shown.clone()),
            ..MachineFacts::of_this_machine(self.interfaces.clone())
        }
    }

    /// Scrapes: the moment, the seconds since the last success, and the figures. The error is in words.
    pub(crate) fn scrape(&mut self) -> Result<(Instant, f64, MachineValues), String> {
        let began = Instant::now();
        let body = self.http.get(&self.address, ACCEPT).map_err(|error| error.to_string())?;
        let at = middle(began);
        let reading = Reading::of_exposition(&body);
        if reading == Reading::default() {
            return Err("the answer holds none of a node_exporter's metrics".to_owned());
        }
        let seconds = at.duration_since(self.last.0).as_secs_f64();
        let values = MachineValues::between(&self.last.1, &reading, seconds.max(1e-3), &self.interfaces);
        self.last = (at, reading);
        Ok((at, seconds, values))
    }
}

/// The counters are read somewhere between the request and its answer.
fn middle(began: Instant) -> Instant {
    began + began.elapsed() / 2
}

impl Reading {
    /// What an exposition says of the machine; what it does not say is absent.
    pub(crate) fn of_exposition(text: &[u8]) -> Self {
        let mut reading = Self::default();
        let (mut cpu, mut idle_is_known) = (CpuTime::default(), false);
        let mut memory = [None; 4];
        for metric in metrics(text).filter(|metric| metric.value.is_finite()) {
            match metric.name {
                "node_cpu_seconds_total" => {
                    cpu.total_seconds += metric.value;
                    if metric.label("mode") == Some("idle") {
                        cpu.idle_seconds += metric.value;
                        idle_is_known = true;
                    }
                }
                "node_memory_MemTotal_bytes" => memory[0] = Some(metric.value),
                "node_memory_MemFree_bytes" => memory[1] = Some(metric.value),
                "node_memory_Buffers_bytes" => memory[2] = Some(metric.value),
                "node_memory_Cached_bytes" => memory[3] = Some(metric.value),
                "node_load1" => reading.load1 = Some(metric.value),
                "node_network_transmit_bytes_total" => {
                    if let Some(interface) = reading.interface(&metric) {
                        interface.tx_bytes = Some(metric.value);
                    }
                }
                "node_network_receive_bytes_total" => {
                    if let Some(interface) = reading.interface(&metric) {
                        interface.rx_bytes = Some(metric.value);
                    }
                }
                _ => {}
            }
        }
        reading.cpu = idle_is_known.then_some(cpu);
        if let [Some(total), Some(free), Some(buffers), Some(cached)] = memory {
            reading.memory_bytes = Some(total - (free + buffers + cached));
        }
        reading
    }

    /// The interface that a metric is about, as long as there are not too many.
    fn interface(&mut self, metric: &Metric<'_>) -> Option<&mut InterfaceBytes> {
        let name = metric.label("device")?;
        let known = self.interfaces.iter().position(|interface| interface.name == name);
        if known.is_none() && self.interfaces.len() < MOST_INTERFACES {
            self.interfaces.push(InterfaceBytes { name: name.to_owned(), ..InterfaceBytes::default() });
        }
        match known {
            Some(at) => self.interfaces.get_mut(at),
            None => self.interfaces.last_mut().filter(|interface| interface.name == name),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu=\"0\",mode=\"idle\"} 100.5
node_cpu_seconds_total{cpu=\"0\",mode=\"iowait\"} 2
node_cpu_seconds_total{cpu=\"0\",mode=\"user\"} 7.5
node_cpu_seconds_total{cpu=\"1\",mode=\"idle\"} 90
node_cpu_guest_seconds_total{cpu=\"1\",mode=\"user\"} 5
node_load1 1.25
node_memory_MemTotal_bytes 1000
node_memory_MemFree_bytes 300
node_memory_Buffers_bytes 100
node_memory_Cached_bytes 200
node_network_receive_bytes_total{device=\"eth0\"} 1e+06
node_network_transmit_bytes_total{device=\"eth0\"} 2e+06
node_network_transmit_bytes_total{device=\"lo\"} 5
";

    #[test]
    fn an_exposition_becomes_a_reading() {
        let reading = Reading::of_exposition(TEXT.as_bytes());
        assert_eq!(
            reading.cpu,
            Some(CpuTime { idle_seconds: 190.5, total_seconds: 200.0 }),
            "guests are in user"
        );
        assert_eq!((reading.load1, reading.memory_bytes), (Some(1.25), Some(400.0)));
        let eth0 = InterfaceBytes { name: "eth0".into(), tx_bytes: Some(2e6), rx_bytes: Some(1e6) };
        let lo = InterfaceBytes { name: "lo".into(), tx_bytes: Some(5.0), rx_bytes: None };
        assert_eq!(reading.interfaces, [eth0, lo]);
    }

    #[test]
    fn a_part_that_is_missing_is_absent() {
        let without = |line: &str| {
            let kept: Vec<_> = TEXT.lines().filter(|it| !it.contains(line)).collect();
            Reading::of_exposition(kept.join("\n").as_bytes())
        };
        assert_eq!(without("Buffers").memory_bytes, None);
        assert_eq!(without("mode=\"idle\"").cpu, None);
        assert_eq!(without("load1").load1, None);
        assert_eq!(Reading::of_exposition(b"go_goroutines 7\n"), Reading::default());
    }

    proptest! {
        #[test]
        fn no_text_panics(text: Vec<u8>) {
            Reading::of_exposition(&text);
        }
    }
}
