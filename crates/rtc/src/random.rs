//! Numbers that cannot be guessed, out of the system's random numbers: names of sessions and of sources.

/// 64 random bits. `None` where the system gives none; a number made otherwise could be computed by others.
pub fn random_number() -> Option<u64> {
    let mut bytes = [0; 8];
    aws_lc_rs::rand::fill(&mut bytes).ok()?;
    Some(u64::from_le_bytes(bytes))
}
