"""Writes the files of TestPyarrow, with pyarrow (26.0.1 made those that are here)."""
import pyarrow as pa
import pyarrow.parquet as pq

n = 300
table = pa.table({
    "i8": pa.array([i % 100 - 50 for i in range(n)], pa.int8()),
    "u32": pa.array([2**32 - 1 - i for i in range(n)], pa.uint32()),
    "i64": pa.array([i * 10**12 - 5 for i in range(n)], pa.int64()),
    "f32": pa.array([i / 4 for i in range(n)], pa.float32()),
    "f64": pa.array([-i / 8 for i in range(n)], pa.float64()),
    "bool": pa.array([i % 3 == 0 for i in range(n)]),
    "text": pa.array([["cat", "dog", "eel"][i % 3] for i in range(n)]),
    "null": pa.array([None if i % 5 == 0 else i for i in range(n)], pa.int32()),
    "list": pa.array([[i, i + 1, i + 2] for i in range(n)], pa.list_(pa.float32())),
    "fixed": pa.array([[i, -i] for i in range(n)], pa.list_(pa.int16(), 2)),
    "raw": pa.array([bytes([i % 256, 7]) for i in range(n)], pa.binary(2)),
    "part": pa.array([{"a": i} for i in range(n)], pa.struct([("a", pa.int32())])),
})
plain = {"use_dictionary": False}
pq.write_table(table, "default.parquet", row_group_size=128)
pq.write_table(table, "pages2.parquet", data_page_version="2.0", compression="zstd", row_group_size=128, data_page_size=300, write_page_checksum=True)
pq.write_table(table, "gzip.parquet", compression="gzip", data_page_size=200, **plain)
pq.write_table(table, "none.parquet", compression="none", **plain)
delta = {"i8": "DELTA_BINARY_PACKED", "u32": "DELTA_BINARY_PACKED", "i64": "DELTA_BINARY_PACKED", "f32": "BYTE_STREAM_SPLIT", "f64": "BYTE_STREAM_SPLIT",
         "bool": "RLE", "text": "DELTA_LENGTH_BYTE_ARRAY", "raw": "BYTE_STREAM_SPLIT"}
pq.write_table(table, "delta.parquet", compression="none", column_encoding=delta, **plain)
