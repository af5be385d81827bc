//! The thread that saves, and has acknowledged what is saved.

use crate::batch::Batch;
use crate::counts::Counts;
use crate::error::StoreError;
use crate::exchange::Saving;
use crate::inbox::Inbox;
use crate::receive::SaverMessage;
use crate::retry::{BACK_OFF, pause};
use crate::store::{Part, Saved, Store};
use crate::store_thread::{OPENING, Waiting};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use weir_shard::{MessageSender, clock};

/// How the thread ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// All that came is saved.
    Done,
    /// There were as many records as were asked for.
    Enough,
    /// The store did not take what came.
    Failed(String),
}

/// What the thread works with.
pub(crate) struct Writer<'a> {
    pub(crate) store: &'a mut dyn Store,
    pub(crate) saving: Saving,
    /// Records after which there are enough; `None` for never.
    pub(crate) count: Option<u64>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) message_sender: MessageSender<SaverMessage>,
    pub(crate) counts: Arc<Counts>,
    /// Whether all is to end: a store that fails then is not waited for.
    pub(crate) stop: Arc<AtomicBool>,
    /// Takes one line that a person should read.
    pub(crate) say: &'a (dyn Fn(&str) + Sync),
}

impl Writer<'_> {
    /// Works until there are no more batches, or the store fails for good.
    pub(crate) fn run(mut self) -> Finish {
        while let Some(mut batch) = self.saving.take() {
            if let Err(words) = self.settle(&mut batch) {
                return Finish::Failed(words);
            }
            self.saving.give_back(batch);
        }
        if self.counts.left(self.count) == 0 { Finish::Enough } else { Finish::Done }
    }

    /// Saves a batch, has it acknowledged, and empties it.
    fn settle(&mut self, batch: &mut Batch) -> Result<(), String> {
        let saved = self.save(batch)?;
        let counts = &self.counts;
        let packets = std::mem::take(&mut batch.packets);
        let records = batch.records() as u64;
        Counts::add(&counts.records, records);
        Counts::add(&counts.settled, batch.messages);
        Counts::add(&counts.unmarked, batch.unmarked);
        Counts::add(&counts.saved, saved.rows);
        Counts::add(&counts.dead_lettered, saved.dead);
        Counts::add(&counts.duplicate, saved.duplicate);
        Counts::add(&counts.conflict, saved.conflict);
        debug_assert_eq!(records, saved.rows + saved.dead + saved.duplicate);
        if !packets.is_empty() {
            self.message_sender.post(SaverMessage::Settled(packets));
        }
        for buffer in batch.clear() {
            self.inbox.recycle(buffer);
        }
        Ok(())
    }

    /// Saves a batch, however often the store fails, unless all is to end.
    fn save(&mut self, batch: &mut Batch) -> Result<Saved, String> {
        let began = Instant::now();
        self.counts.lag.begin(batch.first_received());
        let mut wait = BACK_OFF.0;
        let mut said = None;
        let mut progress = Progress::default();
        let outcome = loop {
            match self.save_rows(batch, &mut progress, said.is_some()) {
                Ok(saved) => break Ok(saved),
                Err(StoreError::Unavailable(words)) => {
                    Counts::add(&self.counts.retries, 1);
                    if said.as_ref() != Some(&words) {
                        (self.say)(&format!("{words}; nothing is acknowledged until it is saved"));
                    }
                    said = Some(words.clone());
                    if !pause(wait, &self.stop) {
                        break Err(words);
                    }
                    wait = (wait * 2).min(BACK_OFF.1);
                    // If this fails, so does what follows, and says why.
                    match self.open_again() {
                        Ok(()) | Err(StoreError::Unavailable(_)) => {}
                        Err(error) => break Err(error.to_string()),
                    }
                }
                Err(error) => break Err(error.to_string()),
            }
        };
        Counts::add(&self.counts.save_nanos, began.elapsed().as_nanos() as u64);
        if outcome.is_ok() {
            self.counts.committed(clock::now());
            self.counts.lag.end();
            if said.is_some() {
                (self.say)(&format!("{}: saving goes on", self.store.name()));
            }
        }
        outcome
    }

    /// Opens the store, and says every ten seconds that it is still waited for.
    fn open_again(&mut self) -> Result<(), StoreError> {
        let line = format!("{}: {OPENING}", self.store.name());
        let Self { store, say, .. } = self;
        std::thread::scope(|scope| {
            let opening = scope.spawn(|| store.open());
            Waiting { is_over: &|| false, say: *say }.until(&line, || opening.is_finished());
            opening
                .join()
                .unwrap_or_else(|_| Err(StoreError::Unfit(format!("{line}: its thread has panicked"))))
        })
    }

    /// Saves what of a batch is not saved. Rows that the store refuses become dead letters; the others go in without them. After an error
    /// only the part that failed is tried again: those before it are there, and some have nothing to be recognised by.
    fn save_rows(
        &mut self,
        batch: &mut Batch,
        progress: &mut Progress,
        again: bool,
    ) -> Result<Saved, StoreError> {
        let Progress { parts, saved } = progress;
        if parts.is_none() {
            let (rows, dead) = (batch.rows.len(), batch.dead_count());
            match self.store.save(batch, &Part { rows: 0..rows, dead: 0..dead, again }) {
                Err(StoreError::Refused(_)) if rows > 0 => {}
                other => return other,
            }
            // Halves, and halves of halves, until each row that is refused stands alone. From the end, so that the places
            // of the others stay as they are when it goes.
            *parts = Some(std::iter::once(0..rows).collect());
        }
        let parts = parts.get_or_insert_default();
        while let Some(part) = parts.last().cloned() {
            match self.store.save(batch, &Part { rows: part.clone(), dead: 0..0, again }) {
                Ok(more) => {
                    *saved += more;
                    parts.pop();
                }
                Err(StoreError::Refused(words)) if part.len() == 1 => {
                    batch.refuse(part.start, words);
                    parts.pop();
                }
                Err(StoreError::Refused(_)) => {
                    let middle = part.start + part.len() / 2;
                    parts.pop();
                    parts.extend([part.start..middle, middle..part.end]);
                }
                Err(error) => return Err(error),
            }
        }
        *saved += self.store.save(batch, &Part { rows: 0..0, dead: 0..batch.dead_count(), again })?;
        Ok(*saved)
    }
}

/// What of a batch is saved while the rest is tried again.
#[derive(Default)]
struct Progress {
    /// Parts that are to be saved one by one, since a row among them was refused; the next is the last. None while the batch is whole.
    parts: Option<Vec<Range<usize>>>,
    /// What became of the parts before.
    saved: Saved,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Decode;
    use crate::exchange::exchange;
    use crate::gather::{Bounds, Gatherer};
    use crate::inbound::{InboundMessage, Origin, ReadBuffer};
    use crate::receive::ReceiverState;
    use crate::store::Contents;
    use std::collections::VecDeque;
    use std::sync::Mutex;
    use std::time::Duration;
    use weir_mqtt::PacketId;
    use weir_record::{Format, Framing, Schema, SchemaUnavailable, WriterId, WriterSchemas};
    use weir_shard::Shard;

    /// A store that keeps payloads, refuses those that begin with `!`, is away once when one that begins with `?` comes after others were
    /// kept, and fails when the test asks it to.
    #[derive(Default)]
    struct Shelf {
        kept: Vec<Vec<u8>>,
        dead: Vec<String>,
        failures: VecDeque<StoreError>,
        opened: u32,
        commits: Vec<usize>,
        again: Vec<bool>,
        was_away: bool,
    }

    impl Store for Shelf {
        fn open(&mut self) -> Result<(), StoreError> {
            self.opened += 1;
            Ok(())
        }

        fn save(&mut self, batch: &Batch, part: &Part) -> Result<Saved, StoreError> {
            self.again.push(part.again);
            if let Some(failure) = self.failures.pop_front() {
                return Err(failure);
            }
            let mut rows = Vec::new();
            for row in part.rows.clone() {
                let Some(crate::rows::Cell::Bytes(bytes)) = batch.cells(row).next() else { panic!() };
                if bytes.starts_with(b"!") {
                    return Err(StoreError::Refused("no".to_owned()));
                }
                if bytes.starts_with(b"?") && !self.kept.is_empty() && !self.was_away {
                    self.was_away = true;
                    return Err(StoreError::Unavailable("away".to_owned()));
                }
                rows.push(bytes.to_vec());
            }
            let fresh = rows.iter().filter(|row| !self.kept.contains(row)).count() as u64;
            self.commits.push(rows.len());
            self.kept.extend(rows);
            let dead = batch.dead_letters(part.dead.clone());
            self.dead.extend(dead.map(|dead| dead.reason.to_owned()));
            let duplicate = part.rows.len() as u64 - fresh;
            Ok(Saved { rows: fresh, dead: part.dead.len() as u64, duplicate, conflict: 0 })
        }

        fn clear(&mut self) -> Result<(), StoreError> {
            self.kept.clear();
            Ok(())
        }

        fn contents(&mut self) -> Result<Contents, StoreError> {
            Ok(Contents { rows: self.kept.len() as u64, ..Contents::default() })
        }

        fn name(&self) -> String {
            "shelf".to_owned()
        }
    }

    const BOUNDS: Bounds = Bounds { batch: 4, linger: Duration::from_secs(60), count: None, max_message: 8 };

    struct Ran {
        shelf: Shelf,
        counts: Arc<Counts>,
        finish: Finish,
        decoded: Result<(), String>,
        said: Vec<String>,
    }

    /// Has these payloads saved, all of one buffer.
    fn run(payloads: &[&str], bounds: Bounds, failures: impl Into<VecDeque<StoreError>>) -> Ran {
        let payloads: Vec<_> = payloads.iter().map(|payload| payload.as_bytes()).collect();
        run_decoded(&mut Decode::raw(), &payloads, bounds, failures.into())
    }

    fn run_decoded(
        decode: &mut Decode,
        payloads: &[&[u8]],
        bounds: Bounds,
        failures: VecDeque<StoreError>,
    ) -> Ran {
        let mut buffer = ReadBuffer::default();
        for (number, payload) in (0..).zip(payloads) {
            let topic = buffer.put(b"t");
            let too_large = if payload.len() > bounds.max_message { payload.len() as u32 } else { 0 };
            let payload = buffer.put(payload);
            let origin = Some(Origin { publisher: 1, sequence_number: number });
            let packet = PacketId::new(number as u16 + 1);
            buffer.messages.push(InboundMessage { topic, payload, too_large, origin, packet, received: 0 });
        }
        let counts = Arc::<Counts>::default();
        let inbox = Arc::new(Inbox::new(1 << 20, counts.clone()));
        inbox.push(&mut buffer);
        inbox.close();
        let shard = Shard::new(ReceiverState::default()).unwrap();
        let mut shelf = Shelf { failures, ..Shelf::default() };
        let said = Mutex::new(Vec::new());
        let (filling, saving) = exchange(1, Arc::default());
        let say = |line: &str| said.lock().unwrap().push(line.to_owned());
        let gatherer = Gatherer {
            decode,
            bounds,
            filling,
            inbox: inbox.clone(),
            message_sender: shard.message_sender(),
            counts: counts.clone(),
            stop: Arc::default(),
            say: &say,
        };
        let writer = Writer {
            store: &mut shelf,
            saving,
            count: bounds.count,
            inbox,
            message_sender: shard.message_sender(),
            counts: counts.clone(),
            stop: Arc::default(),
            say: &say,
        };
        let (finish, decoded) = std::thread::scope(|scope| {
            let gathering = scope.spawn(|| gatherer.run());
            (writer.run(), gathering.join().unwrap())
        });
        Ran { shelf, counts, finish, decoded, said: said.into_inner().unwrap() }
    }

    const SCHEMA: &str = r#"{"type": "record", "name": "R", "fields": [{"name": "a", "type": "bytes"}]}"#;

    /// A registry that gives one of these answers after the other.
    struct Scripted(VecDeque<Result<(), SchemaUnavailable>>, SchemaUnavailable);

    impl WriterSchemas for Scripted {
        fn find(&mut self, _: WriterId) -> Result<Schema, String> {
            let answer = self.0.pop_front().unwrap();
            answer.map(|()| Schema::parse(SCHEMA).unwrap()).map_err(|lack| {
                self.1 = lack;
                format!("{lack:?}")
            })
        }

        fn lack(&self) -> SchemaUnavailable {
            self.1
        }
    }

    /// Has records saved that were written by schemas with these ids, of which a registry knows what it says.
    fn run_registered(ids: &[u8], answers: impl Into<VecDeque<Result<(), SchemaUnavailable>>>) -> Ran {
        let records: Vec<[u8; 7]> = ids.iter().map(|id| [0, 0, 0, 0, *id, 2, *id]).collect();
        let payloads: Vec<&[u8]> = records.iter().map(|it| &it[..]).collect();
        let decode = Decode::records(&Schema::parse(SCHEMA).unwrap(), Format::Avro(Framing::Confluent));
        let mut decode = decode.with_writers(Box::new(Scripted(answers.into(), SchemaUnavailable::Lasting)));
        run_decoded(&mut decode, &payloads, BOUNDS, VecDeque::new())
    }

    #[test]
    fn a_schema_that_cannot_be_had_now_is_waited_for_and_what_came_before_it_is_saved_meanwhile() {
        let away = Err(SchemaUnavailable::Passing);
        let ran = run_registered(&[1, 1, 2, 1], [Ok(()), away, away, Ok(())]);
        assert_eq!((ran.shelf.commits, ran.finish), (vec![2, 2], Finish::Done));
        assert_eq!(ran.shelf.kept, [[1], [1], [2], [1]]);
        assert!(ran.shelf.dead.is_empty() && ran.decoded.is_ok());
        let said = [
            "schema with id 2: Passing; nothing is acknowledged until it is there",
            "schemas are there again: saving goes on",
        ];
        assert_eq!(ran.said, said);
    }

    #[test]
    fn records_of_a_schema_that_there_is_none_of_are_dead_letters_and_those_of_others_are_saved() {
        let ran = run_registered(&[1, 2, 1], [Ok(()), Err(SchemaUnavailable::Lasting)]);
        assert_eq!((ran.shelf.kept.len(), ran.shelf.dead.len(), ran.finish), (2, 1, Finish::Done));
        assert!(ran.said.is_empty() && ran.shelf.dead[0].contains("id 2"), "{:?}", ran.shelf.dead);
    }

    #[test]
    fn a_registry_that_wants_other_credentials_ends_it_behind_what_could_be_read() {
        let ran = run_registered(&[1, 2, 1], [Ok(()), Err(SchemaUnavailable::Forbidden)]);
        assert_eq!((ran.shelf.kept.len(), ran.decoded), (1, Err("Forbidden".to_owned())));
    }

    #[test]
    fn a_batch_has_no_more_records_than_it_may() {
        let ran = run(&["a", "b", "c", "d", "e", "f"], BOUNDS, []);
        assert_eq!((ran.shelf.commits, ran.finish), (vec![4, 2], Finish::Done));
        let totals = ran.counts.totals();
        assert_eq!((totals.received, totals.saved, totals.commits), (6, 6, 2));
    }

    #[test]
    fn there_are_enough_at_the_very_record() {
        let ran = run(&["a", "b", "c", "d", "e", "f"], Bounds { count: Some(5), ..BOUNDS }, []);
        assert_eq!((ran.shelf.commits, ran.finish), (vec![4, 1], Finish::Enough));
    }

    #[test]
    fn rows_that_are_refused_become_dead_letters_and_the_others_go_in() {
        let ran = run(&["a", "!b", "c", "!d"], BOUNDS, []);
        assert_eq!(ran.shelf.kept.len(), 2);
        assert_eq!((ran.shelf.dead.len(), ran.finish), (2, Finish::Done));
        let totals = ran.counts.totals();
        assert_eq!((totals.received, totals.saved, totals.dead_lettered), (4, 2, 2));
    }

    #[test]
    fn what_is_too_large_is_no_row() {
        let ran = run(&["a", "123456789"], BOUNDS, []);
        assert_eq!(ran.shelf.kept, [b"a"]);
        assert_eq!(ran.shelf.dead, ["a message of 9 bytes; 8 are taken (`max_message`)"]);
    }

    #[test]
    fn a_store_that_is_away_is_opened_and_asked_again_and_one_line_says_so() {
        let away = || StoreError::Unavailable("away".to_owned());
        let ran = run(&["a"], BOUNDS, [away(), away()]);
        assert_eq!((ran.shelf.opened, ran.shelf.again), (2, vec![false, true, true]));
        assert_eq!(ran.said.len(), 2, "{:?}", ran.said);
        assert!(ran.said[0].starts_with("away; nothing is acknowledged"), "{:?}", ran.said);
        assert_eq!((ran.counts.totals().saved, ran.counts.totals().retries), (1, 2));
    }

    #[test]
    fn a_batch_that_is_saved_in_parts_goes_on_with_the_part_that_failed() {
        let ran = run(&["?a", "b", "!c", "d"], BOUNDS, []);
        assert_eq!(ran.shelf.kept, [&b"d"[..], b"?a", b"b"]);
        assert_eq!((ran.shelf.commits, ran.finish), (vec![1, 2, 0], Finish::Done));
        let totals = ran.counts.totals();
        assert_eq!((totals.saved, totals.dead_lettered, totals.retries), (3, 1, 1));
    }

    #[test]
    fn a_store_that_can_never_take_it_ends_it() {
        let ran = run(&["a"], BOUNDS, [StoreError::Unfit("never".to_owned())]);
        assert_eq!(ran.finish, Finish::Failed("never".to_owned()));
        assert_eq!(ran.counts.totals().received, 0);
    }
}
