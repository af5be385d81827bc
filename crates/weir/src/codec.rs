//! `weir codec`: the same records in Avro and in JSON, and what decoding one costs in each, and saving it.

use crate::args::Codec;
use crate::exit::Exit;
use crate::interrupt::interrupt_flag;
use crate::print::{AnswerOutput, note, written};
use std::io::Write;
use weir_codec::{CodecOptions, compare, interrupted};
use weir_record::Framing;
use weir_runner::{ErrorKind, RunError};

/// Compares the encodings, and prints what that came to.
pub(crate) fn codec(args: &Codec) -> Result<Exit, RunError> {
    let options = options(args)?;
    let interrupt = interrupt_flag()?;
    let compared = compare(&options, &interrupt, &|line| note(format_args!("weir: {line}")))?;
    written(std::io::stdout().lock().write_all(compared.original.as_bytes()))?;
    let asked = AnswerOutput { format: "text", json: args.json.as_deref(), quiet: args.quiet };
    asked.print(None, &|format, text, out| match format {
        "json" => compared.comparison.write_json(out),
        _ => text.write_codec(&compared.comparison, out),
    })?;
    compared.stopped.map_or(Ok(Exit::Passed), |when| Err(interrupted(&when)))
}

fn options(args: &Codec) -> Result<CodecOptions, RunError> {
    let usage = |line: String| RunError::new(ErrorKind::Usage, line);
    let framing: Framing = args.avro_encoding.parse().map_err(|error| usage(format!("{error}")))?;
    if args.avro_codec != weir_record::Codec::Null && framing != Framing::Container {
        let line = "--avro-codec: only a container is compressed; write --avro-encoding container";
        return Err(usage(line.to_owned()));
    }
    Ok(CodecOptions {
        schema: args.schema.clone(),
        records: args.records,
        per_message: args.per_message,
        payload: args.payload.clone(),
        original: args.original,
        decoders: args.decoders.clone(),
        repetitions: args.repetitions,
        framing,
        compression: args.avro_codec,
        save: args.save.clone(),
        save_password_file: args.save_password_file.clone(),
        batch: args.batch,
        seed: args.seed,
    })
}
