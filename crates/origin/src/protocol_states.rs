//! What protocols keep on a worker beside its sessions, such as counts or a hub of peers: one value of a type, which only the protocol
//! knows. A worker asks all of them the same.

use std::any::{Any, TypeId};
use std::sync::Arc;
use weir_metrics::Moment;
use weir_shard::SessionId;

/// What a protocol keeps on a worker.
pub(crate) trait ProtocolState: Any {
    /// What the origin's owner is told of it.
    fn report(&self) -> StateReport;

    /// Takes a message to all workers, which may be another protocol's. The session to be woken for it, if one has to be.
    fn receive(&mut self, _message: &StateMessage, _now: Moment) -> Option<SessionId> {
        None
    }
}

/// What a protocol tells the origin's owner of one thread, of a type that it knows.
pub(crate) type StateReport = Box<dyn Any + Send>;

/// What a protocol's session tells all other workers, of a type that the protocol knows.
pub(crate) type StateMessage = Arc<dyn Any + Send + Sync>;

/// The states of a worker. There are one to three, so that a look through them costs less than a table.
#[derive(Default)]
pub(crate) struct ProtocolStates(Vec<(TypeId, Option<Box<dyn ProtocolState>>)>);

impl ProtocolStates {
    /// The state of this type, if there is one.
    pub(crate) fn get<T: ProtocolState>(&self) -> Option<&T> {
        let (_, state) = self.0.iter().find(|(id, _)| *id == TypeId::of::<T>())?;
        let state: &dyn Any = &**state.as_ref()?;
        state.downcast_ref()
    }

    /// The same, to change.
    pub(crate) fn get_mut<T: ProtocolState>(&mut self) -> Option<&mut T> {
        let (_, state) = self.0.iter_mut().find(|(id, _)| *id == TypeId::of::<T>())?;
        let state: &mut dyn Any = &mut **state.as_mut()?;
        state.downcast_mut()
    }

    /// Takes the state out, for calls that need it beside its worker.
    pub(crate) fn take<T: ProtocolState>(&mut self) -> Option<Box<T>> {
        let (_, state) = self.0.iter_mut().find(|(id, _)| *id == TypeId::of::<T>())?;
        let state: Box<dyn Any> = state.take()?;
        state.downcast().ok()
    }

    /// Puts it there, or back.
    pub(crate) fn put<T: ProtocolState>(&mut self, state: Box<T>) {
        match self.0.iter_mut().find(|(id, _)| *id == TypeId::of::<T>()) {
            Some((_, place)) => *place = Some(state),
            None => self.0.push((TypeId::of::<T>(), Some(state))),
        }
    }

    /// Every state that is there.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &dyn ProtocolState> {
        self.0.iter().filter_map(|(_, state)| state.as_deref())
    }

    /// The same, to change.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Box<dyn ProtocolState>> {
        self.0.iter_mut().filter_map(|(_, state)| state.as_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Links(u64);

    impl ProtocolState for Links {
        fn report(&self) -> StateReport {
            Box::new(self.0)
        }

        fn receive(&mut self, message: &StateMessage, _: Moment) -> Option<SessionId> {
            self.0 += message.downcast_ref::<u64>()?;
            Some(SessionId::made_up(1))
        }
    }

    struct Silent;

    impl ProtocolState for Silent {
        fn report(&self) -> StateReport {
            Box::new(())
        }
    }

    #[test]
    fn a_state_is_found_by_its_type_and_gone_while_it_is_taken() {
        let mut states = ProtocolStates::default();
        assert!(states.get::<Links>().is_none());
        states.put(Box::new(Silent));
        states.put(Box::new(Links(1)));
        states.get_mut::<Links>().unwrap().0 += 1;
        let taken = states.take::<Links>().unwrap();
        assert_eq!((taken.0, states.iter().count()), (2, 1));
        assert!(states.get::<Links>().is_none() && states.take::<Links>().is_none());
        states.put(taken);
        let reports: Vec<_> = states.iter().filter_map(|it| it.report().downcast::<u64>().ok()).collect();
        assert_eq!(reports, [Box::new(2)]);
    }

    #[test]
    fn a_message_is_for_the_protocol_that_knows_its_type() {
        let mut states = ProtocolStates::default();
        states.put(Box::new(Silent));
        states.put(Box::new(Links(1)));
        let now = Moment::from_nanos(0);
        let mut woken =
            |message: StateMessage| states.iter_mut().filter_map(|it| it.receive(&message, now)).count();
        assert_eq!((woken(Arc::new(5_u64)), woken(Arc::new("of another"))), (1, 0));
        assert_eq!(states.get::<Links>().unwrap().0, 6);
    }
}
