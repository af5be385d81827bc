//! The files of a run directory, with a zero byte between them, whoever wrote or damaged them: they are read and summed
//! up, or refused with the name of the file.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    weir_engine::harness::run_directory(data);
});
