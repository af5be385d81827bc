//! Transports, protection, descriptions and accounts; Chromium is the peer that is not ours.

mod chromium;
mod descriptions;
mod srtp;
mod transports;
mod truths;
mod turn;
