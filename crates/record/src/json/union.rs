//! Unions in JSON, which does not say which branch a value is of.

use super::read::Reader;
use crate::error::{Fault, Problem};
use crate::plan::{Shape, TypeId};
use crate::tape::Cell;

impl Reader<'_> {
    pub(super) fn union(&mut self, branches: &[TypeId]) -> Result<(), Fault> {
        let plan = self.plan;
        let null = |id: &TypeId| matches!(plan.shape(*id), Shape::Null);
        let first = self.cursor.peek();
        if first == Some(b'n')
            && let Some(branch) = branches.iter().position(null)
        {
            return self.branch(branches, branch);
        }
        if self.avro {
            return self.named(branches);
        }
        if let Some(inner) = plan.optional(branches)
            && let Some(branch) = branches.iter().position(|id| *id == inner)
        {
            return self.branch(branches, branch);
        }
        if first == Some(b'{') { self.named(branches) } else { self.plain(branches) }
    }

    fn branch(&mut self, branches: &[TypeId], branch: usize) -> Result<(), Fault> {
        self.tape.cells.push(Cell::Branch(branch as u32));
        self.value(branches[branch])
    }

    /// An object whose only member is named after the branch.
    fn named(&mut self, branches: &[TypeId]) -> Result<(), Fault> {
        let plan = self.plan;
        self.cursor.mark(b'{', "an object")?;
        let raw = self.cursor.raw("the name of a branch")?;
        let name = raw.said()?;
        let branch = branches.iter().position(|id| plan.of(*id).name.as_bytes() == &*name);
        let Some(branch) = branch else {
            return Err(Fault::new(Problem::NoBranch("an object with that member"), raw.at));
        };
        self.cursor.mark(b':', "':'")?;
        self.branch(branches, branch).map_err(|fault| fault.in_field(&plan.of(branches[branch]).name))?;
        self.cursor.mark(b'}', "'}' after the branch")
    }

    /// Anything but an object: the first branch that can hold it. No two branches are arrays, and so what was tried in
    /// vain is never tried again at every level.
    fn plain(&mut self, branches: &[TypeId]) -> Result<(), Fault> {
        let (cursor, before) = (self.cursor, self.tape.position());
        let is_whole = {
            self.cursor.peek();
            matches!(self.cursor.number(), Some((_, true)))
        };
        // `1.0` is a whole number only where no other branch takes it.
        let plan = self.plan;
        // A text is bytes in base64 only where no other branch takes it: whether it could be some is chance.
        let is_last = |number: &usize| match plan.shape(branches[*number]) {
            Shape::Int | Shape::Long => !is_whole,
            Shape::Bytes | Shape::Fixed(_) => true,
            _ => false,
        };
        let numbers = 0..branches.len();
        let first = numbers.clone().filter(|number| !is_last(number));
        for number in first.chain(numbers.filter(is_last)) {
            if matches!(plan.shape(branches[number]), Shape::Null | Shape::Map(_) | Shape::Record(_)) {
                continue;
            }
            if self.branch(branches, number).is_ok() {
                return Ok(());
            }
            self.cursor = cursor;
            self.tape.rewind(before);
        }
        let found = self.cursor.found();
        self.cursor.fault(Problem::NoBranch(found))
    }
}
