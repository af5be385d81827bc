//! The roles of a client, publisher and subscriber, each with its own script of faults; what faults answer a client.

use super::broker::Broker;
use crate::fault::{LinkPhase, Script, ScriptedAnswer, Subject};
use weir_mqtt::{PacketKind, ReasonCode};
use weir_shard::Context;

/// A client as a publisher or as a subscriber: what faults do to it as such.
pub(super) struct Role {
    /// The faults of its messages.
    pub(super) script: Option<Box<Script>>,
    /// What a fault answers its requests with, if one does.
    pub(super) answer: Option<ScriptedAnswer>,
}

impl Role {
    /// The role that a client takes with its first request of this phase, as `subject` to the faults; `link` has the
    /// faults of its connection.
    pub(super) fn begin(
        phase: LinkPhase,
        subject: Subject,
        link: &mut Option<Box<Script>>,
        context: &mut Context<'_, Broker>,
    ) -> Self {
        let mut script = Script::of(&context.world.settings.faults, subject);
        let answer = fault(&mut script, phase, None, context).or_else(|| fault(link, phase, None, context));
        if let Some(script) = &mut script {
            script.begin(context.now);
        }
        Self { script, answer }
    }
}

/// What a fault answers a client at a phase of its dialogue; `offered` are its user name and password.
pub(super) fn fault(
    script: &mut Option<Box<Script>>,
    phase: LinkPhase,
    offered: Option<&str>,
    context: &mut Context<'_, Broker>,
) -> Option<ScriptedAnswer> {
    let script = script.as_mut()?;
    let answer = script.answer(phase, offered, context.world.sessions(), context.now);
    context.world.note(script.take_effects());
    answer
}

/// The reason code that a fault names, by its number (`0x97`, `151`), or else the usual one.
pub(super) fn reason(code: Option<&str>, packet: PacketKind, usual: ReasonCode) -> ReasonCode {
    let number = code.and_then(|text| match text.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    });
    number.and_then(|number| ReasonCode::from_code(number, packet)).unwrap_or(usual)
}
