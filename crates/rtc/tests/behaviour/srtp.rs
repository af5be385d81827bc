//! Packets go through SRTP and come out as they were; what was changed, repeated or is of others does not.

use proptest::prelude::*;
use weir_rtc::rtcp::append_receiver_report;
use weir_rtc::rtp::{Header, Packet};
use weir_rtc::srtp::{Inbound, KeyingMaterial, MAX_STREAMS, MasterKey, Outbound, Profile, SrtpError};

fn hex(text: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digit).collect()
}

fn key(profile: Profile) -> MasterKey {
    let material: Vec<u8> = (0..KeyingMaterial::length(profile) as u8).collect();
    KeyingMaterial::split(profile, &material).unwrap().client
}

fn pair(profile: Profile) -> (Outbound, Inbound) {
    (Outbound::new(&key(profile)).unwrap(), Inbound::new(&key(profile)).unwrap())
}

fn rtp(number: u16, ssrc: u32) -> Vec<u8> {
    let header = Header { marker: false, payload_type: 98, sequence_number: number, timestamp: 7, ssrc };
    let mut packet = Vec::new();
    header.append(&[(1, &[0x80])], &mut packet).unwrap();
    packet.extend((0..100).map(|byte| byte ^ number as u8));
    packet
}

/// The reference packets of libsrtp, whose keys are those of RFC 3711 appendix B.3.
#[test]
fn counter_mode_makes_the_packets_that_others_make() {
    let (key, salt) = (hex("e1f97a0d3e018be0d64fa32c06de4139"), hex("0ec675ad498afeebb6960b3aabe6"));
    let master = MasterKey::new(Profile::Aes128CmHmacSha1_80, &key, &salt).unwrap();
    let mut outbound = Outbound::new(&master).unwrap();
    let mut packet = hex("800f1234decafbadcafebabeabababababababababababababababab");
    outbound.protect_rtp(&mut packet, 0).unwrap();
    let expected = "800f1234decafbadcafebabe4e55dc4ce79978d88ca4d215949d2402b78d6acc99ea179b8dbb";
    assert_eq!(packet, hex(expected));
    let mut packet = hex("81c8000bcafebabeabababababababababababababababab");
    outbound.protect_rtcp(&mut packet, 0).unwrap();
    let expected = "81c8000bcafebabe7128035be487b9bdbef89041f977a5a880000001993e08cd54d6c1230798";
    assert_eq!(packet, hex(expected));
}

#[test]
fn packets_come_out_as_they_went_in_and_grow_by_what_the_profile_says() {
    for profile in Profile::ALL {
        let (mut outbound, mut inbound) = pair(profile);
        let mut buffer = b"what lies before".to_vec();
        for number in 65_000..65_000 + 2_000u32 {
            let (at, packet) = (buffer.len(), rtp(number as u16, 9));
            buffer.extend(&packet);
            outbound.protect_rtp(&mut buffer, at).unwrap();
            assert_eq!(buffer.len() - at, packet.len() + profile.rtp_overhead());
            let header_length = Packet::parse(&packet).unwrap().header_length();
            assert_eq!(buffer[at..at + header_length], packet[..header_length]);
            assert_ne!(buffer[at + header_length..at + packet.len()], packet[header_length..]);
            let mut received = buffer[at..].to_vec();
            assert_eq!(inbound.open_rtp(&mut received).unwrap(), packet);
        }
        for report in 0..3 {
            let mut packet = Vec::new();
            append_receiver_report(report, &[Default::default()], &mut packet);
            let mut protected = packet.clone();
            outbound.protect_rtcp(&mut protected, 0).unwrap();
            // Its tag and its index.
            let is_gcm = matches!(profile, Profile::AeadAes128Gcm | Profile::AeadAes256Gcm);
            assert_eq!(protected.len(), packet.len() + if is_gcm { 16 } else { 10 } + 4);
            let mut again = protected.clone();
            assert_eq!(inbound.open_rtcp(&mut protected).unwrap(), packet);
            assert_eq!(inbound.open_rtcp(&mut again), Err(SrtpError::Replayed));
        }
    }
}

#[test]
fn a_packet_that_is_sent_again_is_the_same_and_is_taken_once() {
    for profile in Profile::ALL {
        let (mut outbound, mut inbound) = pair(profile);
        let mut send = |number: u32| {
            let mut packet = rtp(number as u16, 9);
            outbound.protect_rtp(&mut packet, 0).unwrap();
            packet
        };
        let sent: Vec<Vec<u8>> = (65_500..65_700).map(&mut send).collect();
        for (number, first) in (65_500..65_700).zip(&sent) {
            assert_eq!(&send(number), first);
        }
        // Behind the first the newest comes first: roll-overs are guessed forwards and backwards.
        let order = [&sent[0]].into_iter().chain(sent[1..].iter().rev());
        for packet in order {
            inbound.open_rtp(&mut packet.clone()).unwrap();
            assert_eq!(inbound.open_rtp(&mut packet.clone()), Err(SrtpError::Replayed));
        }
    }
}

#[test]
fn strangers_leave_no_trace() {
    for profile in Profile::ALL {
        let (mut outbound, mut inbound) = pair(profile);
        for stranger in 0..1_000 {
            let mut forged = rtp(1, stranger);
            forged.extend([0; 16]);
            assert_eq!(inbound.open_rtp(&mut forged), Err(SrtpError::Unauthentic));
        }
        for source in 0..MAX_STREAMS as u32 {
            let mut packet = rtp(1, source);
            outbound.protect_rtp(&mut packet, 0).unwrap();
            inbound.open_rtp(&mut packet).unwrap();
        }
        assert_eq!(outbound.protect_rtp(&mut rtp(1, 9_999), 0), Err(SrtpError::TooManyStreams));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_change_of_a_packet_is_found(at: prop::sample::Index, bit in 0u8..8, which in 0usize..4, control: bool) {
        let (mut outbound, mut inbound) = pair(Profile::ALL[which]);
        let mut packet = if control { hex("80c9000100000009") } else { rtp(5, 9) };
        if control {
            outbound.protect_rtcp(&mut packet, 0).unwrap();
        } else {
            outbound.protect_rtp(&mut packet, 0).unwrap();
        }
        let mut changed = packet.clone();
        changed[at.index(packet.len())] ^= 1 << bit;
        if control {
            prop_assert!(inbound.open_rtcp(&mut changed).is_err());
            prop_assert!(inbound.open_rtcp(&mut packet).is_ok());
        } else {
            prop_assert!(inbound.open_rtp(&mut changed).is_err());
            prop_assert!(inbound.open_rtp(&mut packet).is_ok());
        }
    }

    #[test]
    fn any_bytes_are_refused_without_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..60), which in 0usize..4) {
        let (mut outbound, mut inbound) = pair(Profile::ALL[which]);
        if let Some(first) = bytes.first_mut() {
            *first = *first & 0x3F | 0x80;
        }
        prop_assert!(inbound.open_rtp(&mut bytes.clone()).is_err());
        prop_assert!(inbound.open_rtcp(&mut bytes.clone()).is_err());
        let _ = outbound.protect_rtp(&mut bytes.clone(), 0);
        let _ = outbound.protect_rtcp(&mut bytes, 100);
    }
}
