//! One limit of the load generator, and what was measured against it.

use crate::summary::{Reason, VerdictState};
use weir_setting::named;

pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) measured: f64,
    pub(super) degraded_from: f64,
    pub(super) limit: f64,
    /// Whether the limit voids a run; a cause outside of weir does so only where it left a trace.
    pub(super) voids: bool,
    pub(super) stage: Option<(u16, u16)>,
    pub(super) text: String,
    /// With names of settings in braces.
    pub(super) remedy: &'static str,
}

impl Check {
    /// One that degrades from half of its limit on.
    pub(super) fn new(name: &'static str, measured: f64, limit: f64) -> Self {
        let degraded_from = limit / 2.0;
        Self {
            name,
            measured,
            degraded_from,
            limit,
            voids: true,
            stage: None,
            text: String::new(),
            remedy: "",
        }
    }

    /// One of a cause outside of weir.
    pub(super) fn by_effect(name: &'static str, measured: f64, limit: f64, trace: bool) -> Self {
        Self { voids: trace, ..Self::new(name, measured, limit) }
    }

    pub(super) fn reasons(self) -> Vec<Reason> {
        let state = if self.measured >= self.limit && self.voids {
            VerdictState::Invalid
        } else if self.measured >= self.degraded_from {
            VerdictState::Degraded
        } else {
            return Vec::new();
        };
        vec![Reason {
            state,
            check: self.name.to_owned(),
            stage: self.stage,
            also: Vec::new(),
            measured: self.measured,
            limit: self.limit,
            text: self.text,
            remedy: named(self.remedy),
        }]
    }
}
