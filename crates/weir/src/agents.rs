//! Many machines: `weir agent` waits for work, `weir agents` lists those that wait, and `--agents N` has them make the load of a run.

mod list;
mod serve;
mod spawn;

pub(crate) use list::list;
pub(crate) use serve::serve;
pub(crate) use spawn::spawn;
