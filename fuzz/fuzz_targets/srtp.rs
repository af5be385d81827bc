//! Any bytes are opened without harm; what is protected opens once, and is then what it was.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_rtc::srtp::{Inbound, KeyingMaterial, Outbound, Profile};

fuzz_target!(|data: &[u8]| {
    let Some((&which, data)) = data.split_first() else { return };
    let profile = Profile::ALL[usize::from(which) % Profile::ALL.len()];
    let material = vec![7; KeyingMaterial::length(profile)];
    let key = KeyingMaterial::split(profile, &material).expect("material of the right length").client;
    let mut outbound = Outbound::new(&key).expect("a key");
    let mut inbound = Inbound::new(&key).expect("a key");
    for bytes in data.chunks(60) {
        assert!(inbound.open_rtp(&mut bytes.to_vec()).is_err());
        assert!(inbound.open_rtcp(&mut bytes.to_vec()).is_err());
        let mut packet = bytes.to_vec();
        if outbound.protect_rtp(&mut packet, 0).is_ok() {
            assert_eq!(packet.len(), bytes.len() + profile.rtp_overhead());
            if let Ok(opened) = inbound.open_rtp(&mut packet.clone()) {
                assert_eq!(opened, bytes);
                assert!(inbound.open_rtp(&mut packet).is_err());
            }
        }
        let mut packet = bytes.to_vec();
        if outbound.protect_rtcp(&mut packet, 0).is_ok() {
            assert_eq!(inbound.open_rtcp(&mut packet.clone()).expect("a packet that was protected"), bytes);
            assert!(inbound.open_rtcp(&mut packet).is_err());
        }
    }
});
