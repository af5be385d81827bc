//! Dialogues, handshakes, chunks and files: what is written is read, and what is malformed is refused.

mod amf0;
mod chunk_laws;
mod chunk_reader;
mod dialogue;
mod flv_file;
mod handshake;
mod malformed_input;
mod pair;
mod peculiar_servers;
mod wire;
