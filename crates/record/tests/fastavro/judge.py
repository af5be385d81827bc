"""Reads what weir wrote with fastavro and with Python's json, writes it again, and says what differs.

judge.py avro DIRECTORY COUNT: schema.avsc, weir.schemaless, weir.single, weir.CODEC; writes peer.CODEC.
judge.py avro-json DIRECTORY COUNT: schema.avsc, weir.schemaless, weir.avro-json; writes peer.avro-json.
judge.py json DIRECTORY COUNT: schema.avsc, weir.schemaless, weir.json; writes peer.json.
"""

import base64
import io
import json
import struct
import sys
from pathlib import Path

import fastavro
from fastavro.schema import fingerprint, to_parsing_canonical_form

kind, directory, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
schema = fastavro.parse_schema(json.loads((directory / "schema.avsc").read_text()))
names = {"return_record_name": True, "return_named_type": True}


def read(name):
    return (directory / name).read_bytes()


def schemaless(payload):
    stream = io.BytesIO(payload)
    records = [fastavro.schemaless_reader(stream, schema, **names) for _ in range(count)]
    assert not stream.read(), "fastavro leaves bytes over"
    return records


def bits(records):
    """All records without anything around them: they say every bit."""
    out = io.BytesIO()
    for record in records:
        fastavro.schemaless_writer(out, schema, record)
    return out.getvalue()


expected = read("weir.schemaless")
records = schemaless(expected)

if kind == "avro":
    assert bits(records) == expected, "schemaless: other bytes"

    canonical = to_parsing_canonical_form(schema)
    crc = bytes.fromhex(fingerprint(canonical, "CRC-64-AVRO"))
    header = b"\xc3\x01" + crc
    assert canonical == (directory / "weir.canonical").read_text(), "another canonical form"
    stream, singles = io.BytesIO(read("weir.single")), []
    for number in range(count):
        assert stream.read(10) == header, f"single object {number}: another header"
        singles.append(fastavro.schemaless_reader(stream, schema, **names))
    assert not stream.read() and bits(singles) == expected, "single objects: other values"

    for codec in ["null", "deflate", "snappy", "zstandard", "bzip2", "xz"]:
        reader = fastavro.reader(io.BytesIO(read(f"weir.{codec}")), **names)
        assert reader.codec == codec
        assert bits(reader) == expected, f"container, {codec}: other values"
        # Many blocks: the interval is in bytes.
        with open(directory / f"peer.{codec}", "wb") as out:
            fastavro.writer(out, schema, records, codec=codec, sync_interval=1_000)
elif kind == "avro-json":
    # The reader of JSON does not say which branch a value was of; both are guessed alike.
    stream = io.BytesIO(expected)
    found = fastavro.json_reader(io.StringIO(read("weir.avro-json").decode()), schema)
    guessed = [fastavro.schemaless_reader(stream, schema) for _ in range(count)]
    assert bits(found) == bits(guessed), "other values"
    with open(directory / "peer.avro-json", "w") as out:
        fastavro.json_writer(out, schema, records)
else:
    plain = json.loads(read("weir.json"))
    for number, (text, record) in enumerate(zip(plain, records, strict=True)):
        for name, value in record.items():
            found = text[name]
            if isinstance(value, bytes):
                found = base64.b64decode(found, validate=True)
            elif name == "myFloat":
                found, value = struct.pack("<f", found), struct.pack("<f", value)
            assert found == value, f"record {number}, {name}: {found} is not {value}"
    for text in plain:
        # As the original measurement sends them.
        text["myBytes"] = [text["myBytes"]]
    (directory / "peer.json").write_text(json.dumps(plain))
