//! What a person or a program reads of a run, a search, a sweep, a series, a comparison and a stream, in every format.

mod fixture;

mod capacity;
mod checks;
mod codec;
mod compare;
mod pages;
mod schema;
mod series;
mod sweep;
