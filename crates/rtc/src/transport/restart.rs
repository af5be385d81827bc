//! An ICE restart (RFC 8445 section 9): both sides have new credentials, and checks begin again. Keys, media and its path stay as they are
//! until another path is found.

use is::{Candidate, IceCreds};
use weir_metrics::Moment;

use super::{SETTING_UP, Transport, set_timing};

/// Credentials of ours that are not in use yet.
#[derive(Clone)]
pub struct NewCredentials(IceCreds);

impl NewCredentials {
    /// Others than any before (section 9: both "MUST change").
    pub fn new() -> Self {
        Self(IceCreds::new())
    }

    /// Their `a=ice-ufrag`.
    pub fn user_fragment(&self) -> &str {
        &self.0.ufrag
    }

    /// Their `a=ice-pwd`.
    pub fn password(&self) -> &str {
        &self.0.pass
    }
}

impl Default for NewCredentials {
    fn default() -> Self {
        Self::new()
    }
}

impl Transport {
    /// The peer has agreed to begin again with these credentials of ours and its own, at these candidates, or where it was if it names none.
    /// Candidates that cannot be read are passed over. Without a peer nothing happens.
    pub fn restart(
        &mut self,
        now: Moment,
        ours: NewCredentials,
        user_fragment: &str,
        password: &str,
        candidates: &[String],
    ) {
        let Some((remote, _)) = &mut self.remote else { return };
        (remote.user_fragment, remote.password) = (user_fragment.to_owned(), password.to_owned());
        let before: Vec<Candidate> = self.ice.remote_candidates().collect();
        self.ice.ice_restart(ours.0, true);
        self.ice
            .set_remote_credentials(IceCreds { ufrag: user_fragment.to_owned(), pass: password.to_owned() });
        set_timing(&mut self.ice, &SETTING_UP);
        self.candidates = 0;
        for candidate in candidates {
            let _ = self.add_candidate(candidate);
        }
        if self.candidates == 0 {
            before.into_iter().for_each(|candidate| self.ice.add_remote_candidate(candidate));
        }
        self.handle_timeout(now);
    }
}
