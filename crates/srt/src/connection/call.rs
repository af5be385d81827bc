//! The caller's handshake (draft-sharabayko-srt-01, section 4.3.1).

use super::{Connection, Phase, millis};
use crate::agreement::{ConnectionEvent, Disconnect};
use crate::handshake::{
    CONCLUSION, Capabilities, FLAG_CONFIG, FLAG_HSREQ, FLAG_KMREQ, Handshake, INDUCTION, MAGIC, SRT_VERSION,
    capability,
};
use crate::outbox::Content;
use crate::packet::ControlHeader;
use crate::receiver::FIRST_WINDOW;
use crate::rejection::Rejection;
use weir_metrics::Moment;

impl Connection {
    pub(super) fn on_handshake(&mut self, said: &Handshake, timestamp: u32, now: Moment) {
        match &self.phase {
            Phase::Induction | Phase::Conclusion => {}
            Phase::Connected(_) if said.handshake_type == CONCLUSION && !self.answer.is_empty() => {
                return self.repeat_answer(now);
            }
            Phase::Connected(_) | Phase::Over => return,
        }
        if let Some(rejection) = Rejection::of_handshake_type(said.handshake_type) {
            return self.end(Disconnect::Rejected(rejection));
        }
        match (&self.phase, said.handshake_type) {
            (Phase::Induction, INDUCTION) => {
                //= draft-sharabayko-srt-01, section 4.3.1.1
                //# whether the Extension Flags contains the magic value 0x4A17; otherwise the
                //# connection is rejected.
                if said.version != 5 || said.extension != MAGIC {
                    return self.end(Disconnect::NoListener);
                }
                self.cookie = said.cookie;
                self.phase = Phase::Conclusion;
                self.events.push_back(ConnectionEvent::Answered);
                self.ask(now);
            }
            (Phase::Conclusion, CONCLUSION) => self.on_conclusion(said, timestamp, now),
            // The answer to an induction that was said twice.
            _ => {}
        }
    }

    fn on_conclusion(&mut self, said: &Handshake, timestamp: u32, now: Moment) {
        let Some(capabilities) = said.capabilities else { return self.end(Disconnect::NoListener) };
        if capabilities.flags & capability::STREAM != 0 {
            return self.end(Disconnect::Refused(Rejection::MESSAGE_API));
        }
        if let Some(keys) = &self.offered {
            let mut ours = Vec::new();
            keys.write(&mut ours);
            match said.key_material.as_deref() {
                Some(same) if same == ours => {}
                // "4: bad secret" (section 3.2.1.2).
                Some([0, 0, 0, 4] | [4, 0, 0, 0]) => {
                    return self.end(Disconnect::Refused(Rejection::BAD_SECRET));
                }
                _ => return self.end(Disconnect::Refused(Rejection::UNSECURE)),
            }
        }
        self.peer_socket = said.socket;
        let keys = self.offered.take();
        let latencies = self.latencies(&capabilities);
        self.establish(said, timestamp, keys, latencies, now);
    }

    /// Says the handshake of its phase.
    pub(super) fn ask(&mut self, now: Moment) {
        let header = ControlHeader { destination: 0, ..self.header(now) };
        let mut said = Handshake {
            initial_sequence_number: self.initial,
            mtu: self.options.mtu,
            flow_window: FIRST_WINDOW,
            socket: self.socket,
            cookie: self.cookie,
            address: self.peer_address,
            ..Handshake::default()
        };
        if let Phase::Induction = self.phase {
            //= draft-sharabayko-srt-01, section 4.3.1.1
            //# - Version: MUST always be 4
            //# - Encryption Field: 0
            //# - Extension Field: 2
            (said.version, said.extension, said.handshake_type) = (4, 2, INDUCTION);
        } else {
            (said.version, said.extension, said.handshake_type) = (5, FLAG_HSREQ, CONCLUSION);
            said.capabilities = Some(Capabilities {
                version: SRT_VERSION,
                flags: capability::OURS,
                receive_delay: millis(self.options.receive_latency),
                send_delay: millis(self.options.send_latency),
            });
            if let Some(keys) = &self.offered {
                said.encryption = keys.length().field();
                said.extension |= FLAG_KMREQ;
                let mut message = Vec::new();
                keys.write(&mut message);
                said.key_material = Some(message);
            }
            if !self.options.stream_id.is_empty() {
                said.extension |= FLAG_CONFIG;
                said.stream_id = Some(self.options.stream_id.clone());
            }
        }
        self.outbox.add(Content::Other, |out| {
            header.handshake(out);
            said.write(true, out);
        });
        self.said_at = now;
    }
}
