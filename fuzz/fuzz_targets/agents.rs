//! What comes over NATS: a dialogue of a coordinator and an agent into which anybody may speak, and a second of an agent.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    weir_agents::harness::dialogue(data);
    weir_engine::harness::agent_second(data);
});
