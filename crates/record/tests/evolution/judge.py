"""Reads payloads with fastavro by another schema than they were written by.

judge.py ASKED READ: a list of {writer, reader, payload}; writes a list of what was read, null for what cannot be.
"""

import io
import json
import struct
import sys

import fastavro


def plain(value):
    """With all bits of numbers and bytes."""
    if isinstance(value, float):
        return {"number": struct.pack(">d", value).hex()}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value


def read(asked):
    writer, reader = (fastavro.parse_schema(asked[name]) for name in ["writer", "reader"])
    stream = io.BytesIO(bytes.fromhex(asked["payload"]))
    try:
        record = fastavro.schemaless_reader(stream, writer, reader)
    except fastavro.read.SchemaResolutionError:
        return None
    assert not stream.read(), "fastavro leaves bytes over"
    return plain(record)


with open(sys.argv[1]) as asked, open(sys.argv[2], "w") as out:
    json.dump([read(question) for question in json.load(asked)], out)
