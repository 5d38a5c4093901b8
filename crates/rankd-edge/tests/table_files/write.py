"""Writes a table with pyarrow in many ways: as Arrow and as Parquet, with every encoding and layout that is read.

Usage: write.py ROWS.json FOLDER, where ROWS.json is a list of rows with id, n, x, b, s, t, li, lf, ls and v.
"""

import json
import pathlib
import sys

import pyarrow as pa
import pyarrow.parquet as pq

rows = json.loads(pathlib.Path(sys.argv[1]).read_text())
folder = pathlib.Path(sys.argv[2])


def table(id=pa.int64(), n=pa.int64(), x=pa.float64(), s=pa.utf8(), lists=pa.list_, v=pa.list_(pa.float32(), 3)):
    types = [
        ("id", id), ("n", n), ("x", x), ("b", pa.bool_()), ("s", s), ("t", pa.timestamp("us")),
        ("li", lists(pa.int64())), ("lf", lists(pa.float64())), ("ls", lists(pa.utf8())), ("v", v),
        # These are left out.
        ("d", pa.decimal128(10, 2)), ("st", pa.struct([("a", pa.int32()), ("b", pa.utf8())])), ("bin", pa.binary_view()),
        ("nn", pa.null()),
    ]
    columns = {}
    for name, type_ in types:
        values = [row.get(name) for row in rows]
        if name == "t":
            # Milliseconds in the rows.
            values = [None if value is None else value * 1000 for value in values]
        if name == "bin":
            values = [b"a value that is longer than a view" for _ in rows]
        if pa.types.is_dictionary(type_):
            columns[name] = pa.array(values, pa.utf8()).dictionary_encode()
        else:
            columns[name] = pa.array(values, type_)
    return pa.table(columns)


def arrow(name, data, stream, batch=None):
    open_ = pa.ipc.new_stream if stream else pa.ipc.new_file
    with open_(str(folder / (name + ".arrow")), data.schema) as writer:
        writer.write_table(data, max_chunksize=batch)


plain = table()
arrow("file", plain, False)
arrow("stream", plain, True)
arrow("small_batches", plain, True, 7)
arrow("large", table(s=pa.large_utf8(), lists=pa.large_list, v=pa.list_(pa.float64())), False)
arrow("view", table(s=pa.string_view()), False, 50)
arrow("dictionary", table(s=pa.dictionary(pa.int32(), pa.utf8())), False, 50)
arrow("narrow", table(id=pa.int32(), v=pa.list_(pa.float16(), 3)), True)
arrow("sliced", pa.concat_tables([plain.slice(0, 3), plain.slice(3)]), True)

options = {
    "plain": dict(use_dictionary=False, compression="none"),
    "dictionary": dict(compression="none"),
    "snappy": dict(compression="snappy"),
    "lz4": dict(compression="lz4"),
    "gzip": dict(compression="gzip"),
    "zstd": dict(compression="zstd"),
    "v2": dict(compression="snappy", data_page_version="2.0", version="2.6"),
    "small_pages": dict(data_page_size=64, write_batch_size=4),
    "small_pages_v2": dict(data_page_size=64, write_batch_size=4, data_page_version="2.0"),
    "small_groups": dict(row_group_size=13),
    "dictionary_then_plain": dict(dictionary_pagesize_limit=64, write_batch_size=8),
    "delta": dict(
        use_dictionary=False,
        column_encoding={
            "id": "DELTA_BINARY_PACKED", "n": "DELTA_BINARY_PACKED", "s": "DELTA_BYTE_ARRAY", "x": "BYTE_STREAM_SPLIT",
            "ls.list.element": "DELTA_LENGTH_BYTE_ARRAY", "b": "RLE",
        },
    ),
    "old": dict(version="1.0", use_deprecated_int96_timestamps=True, use_compliant_nested_type=False),
}
readable = plain.drop_columns(["bin", "nn"])
for name, option in options.items():
    pq.write_table(readable, folder / (name + ".parquet"), **option)
pq.write_table(table(id=pa.int32(), v=pa.list_(pa.float16())).drop_columns(["bin", "nn"]), folder / "narrow.parquet")
