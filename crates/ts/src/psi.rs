//! PAT, PMT and SDT: what their sections say (ISO/IEC 13818-1 section 2.4.4, ETSI EN 300 468 section 5.2.3).

use crate::section::Long;

/// The table ids that are read here.
pub(crate) mod table {
    pub(crate) const PAT: u8 = 0x00;
    pub(crate) const CAT: u8 = 0x01;
    pub(crate) const PMT: u8 = 0x02;
    pub(crate) const SDT_ACTUAL: u8 = 0x42;
}

/// Tag and body of each descriptor; ends at the first that does not fit.
pub(crate) fn descriptors(mut bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let [tag, length, rest @ ..] = bytes else { return None };
        let (body, after) = rest.split_at_checked(usize::from(*length))?;
        bytes = after;
        Some((*tag, body))
    })
}

/// Program numbers and the PIDs of their maps; program 0, the network PID, is left out.
pub(crate) fn programs(pat: Long<'_>) -> impl Iterator<Item = (u16, u16)> + '_ {
    let (entries, _) = pat.payload.as_chunks::<4>();
    entries.iter().filter_map(|&[a, b, c, d]| {
        let number = u16::from_be_bytes([a, b]);
        (number != 0).then_some((number, u16::from_be_bytes([c, d]) & 0x1FFF))
    })
}

/// One elementary stream of a program map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) stream_type: u8,
    pub(crate) pid: u16,
    pub(crate) descriptors: &'a [u8],
}

/// A program map: the PID of its clock, and its streams.
pub(crate) fn program_map(pmt: Long<'_>) -> Option<(u16, impl Iterator<Item = Entry<'_>>)> {
    let [a, b, c, d, rest @ ..] = pmt.payload else { return None };
    let pcr_pid = u16::from_be_bytes([*a, *b]) & 0x1FFF;
    let length = usize::from(u16::from_be_bytes([*c, *d]) & 0x0FFF);
    let mut rest = rest.get(length..)?;
    let entries = std::iter::from_fn(move || {
        let [stream_type, a, b, c, d, after @ ..] = rest else { return None };
        let length = usize::from(u16::from_be_bytes([*c, *d]) & 0x0FFF);
        let (descriptors, after) = after.split_at_checked(length)?;
        rest = after;
        Some(Entry { stream_type: *stream_type, pid: u16::from_be_bytes([*a, *b]) & 0x1FFF, descriptors })
    });
    Some((pcr_pid, entries))
}

/// One service of a service description table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServiceEntry<'a> {
    pub(crate) service_id: u16,
    pub(crate) service_type: u8,
    pub(crate) provider: &'a [u8],
    pub(crate) name: &'a [u8],
}

/// The original network, and the services that have a service descriptor.
pub(crate) fn services(sdt: Long<'_>) -> Option<(u16, impl Iterator<Item = ServiceEntry<'_>>)> {
    let [a, b, _, rest @ ..] = sdt.payload else { return None };
    let mut rest = rest;
    let loops = std::iter::from_fn(move || {
        let [a, b, _, c, d, after @ ..] = rest else { return None };
        let length = usize::from(u16::from_be_bytes([*c, *d]) & 0x0FFF);
        let (body, after) = after.split_at_checked(length)?;
        rest = after;
        Some((u16::from_be_bytes([*a, *b]), body))
    });
    let services = loops.filter_map(|(service_id, body)| {
        let (_, body) = descriptors(body).find(|&(tag, _)| tag == 0x48)?;
        let (&service_type, rest) = body.split_first()?;
        let (provider, rest) = counted(rest)?;
        let (name, _) = counted(rest)?;
        Some(ServiceEntry { service_id, service_type, provider, name })
    });
    Some((u16::from_be_bytes([*a, *b]), services))
}

/// Bytes behind their count, and what follows.
fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(length))
}

/// The language of an elementary stream (ISO 639 language descriptor).
pub(crate) fn language(bytes: &[u8]) -> Option<[u8; 3]> {
    let (_, body) = descriptors(bytes).find(|&(tag, _)| tag == 0x0A)?;
    body.first_chunk().copied().filter(|code: &[u8; 3]| code.is_ascii())
}

/// The name that a component descriptor gives (ETSI EN 300 468 section 6.2.8).
pub(crate) fn component_name(bytes: &[u8]) -> Option<&[u8]> {
    let (_, body) = descriptors(bytes).find(|&(tag, _)| tag == 0x50)?;
    body.get(6..).filter(|name| !name.is_empty())
}
