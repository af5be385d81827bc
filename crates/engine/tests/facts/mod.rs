//! What a run knows of a workload of RTMP by what its scenario says alone.

use weir_engine::WorkloadFacts;
use weir_engine::scenario::WorkloadSpec;

pub(crate) fn facts_of(spec: &WorkloadSpec) -> WorkloadFacts {
    let (role, urls) = spec.verb().unwrap();
    WorkloadFacts {
        background: false,
        servers: Vec::new(),
        warnings: Vec::new(),
        name: spec.label(),
        role,
        protocol: "rtmp".to_owned(),
        targets: urls.to_vec(),
        expect: None,
        frame_time_seconds: None,
        messages_per_second: None,
        timeout_seconds: 10.0,
    }
}
