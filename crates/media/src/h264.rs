//! Just enough of an H.264 encoder for test pictures: constrained baseline, one slice a picture, CAVLC.
//! Nothing here knows bit rates or time.

pub(crate) mod level;
pub(crate) mod parameter_sets;
pub(crate) mod picture;
mod residual;
