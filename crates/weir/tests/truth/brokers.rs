//! Brokers that nobody tuned for weir, and clients of others at weir's own, over TCP and in WebSockets.

use crate::support::{OtherBroker, measure, mqtt_js, paho, shared};
use weir_origin::{ANY_PORT, MQTT, Origin, OriginConfig};

/// Messages of each publisher.
const COUNT: u64 = 200;

#[test]
fn every_message_goes_through_brokers_of_others_over_both_carriers() {
    let _machine = shared();
    let (mochi, aedes) = (OtherBroker::mochi(), OtherBroker::aedes());
    let mut workloads = String::new();
    // mochi 2.7.9 acknowledges a message of QoS 1 that has user properties with reason code 1, which PUBACK does not have (MQTT 5
    // table 3-4). aedes speaks 3.1.1 only.
    for (broker, version, qos) in [(&mochi, "5", [2, 2]), (&aedes, "3.1.1", [1, 2])] {
        for (carrier, qos) in qos.into_iter().enumerate() {
            let play = &broker.urls("b/#")[carrier];
            let publish = &broker.urls("b/{client}/{seq}")[carrier];
            let common = format!("qos: {qos}, mqtt_version: {version}");
            workloads += &format!("  - {{play: '{play}', clients: 2, duration: 25s, {common}}}\n");
            workloads += &format!(
                "  - {{publish: '{publish}', delay: 1s, duration: 23s, rate: 50/s, count: {COUNT}, window: 20, wait_before_publishing: true, {common}}}\n"
            );
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("brokers.yaml");
    let thresholds = "thresholds: [lost == 0, messages.rate > 1/s, mqtt.connects >= 1]";
    std::fs::write(&file, format!("workloads:\n{workloads}warmup: 0s\n{thresholds}\n")).unwrap();
    let run = measure(["run".as_ref(), file.as_os_str()]);
    for (workload, figures) in run.workloads().iter().enumerate() {
        let total = |figure: &str| figures["total"][figure]["total"].as_f64().unwrap_or_default() as u64;
        let (units, acknowledged) = (total("units"), total("mqtt.acknowledged"));
        if workload % 2 == 1 {
            assert_eq!((units, acknowledged), (COUNT, COUNT), "publishers of {workload}");
        } else {
            // Two subscribers, and the publishers of both carriers.
            assert_eq!((units, total("duplicate"), total("mqtt.connects")), (4 * COUNT, 0, 2), "{workload}");
        }
    }
}

#[test]
fn clients_of_others_speak_every_qos_to_the_origin_over_both_carriers() {
    let _machine = shared();
    let origin = Origin::start(&OriginConfig::default().listening(&MQTT, ANY_PORT)).unwrap();
    let address = origin.address("mqtt").unwrap();
    let expected = |prefix: &str| {
        let lines =
            (0..3).flat_map(|qos| (0..20).map(move |number| format!("{prefix}/{qos} {qos} {number}")));
        let mut lines: Vec<_> = lines.collect();
        lines.sort();
        lines
    };
    for version in ["4", "5"] {
        for url in [format!("mqtt://{address}"), format!("ws://{address}/mqtt")] {
            assert_eq!(mqtt_js(&url, version, 20), expected("js"), "{url} {version}");
        }
        for transport in ["tcp", "websockets"] {
            assert_eq!(paho(address, transport, version, 20), expected("py"), "{transport} {version}");
        }
    }
}
