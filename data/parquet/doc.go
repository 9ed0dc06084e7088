// Package parquet reads Parquet files into sets and batches of package data.
//
// It is a module because of its decompressors. It reads the default output of pyarrow, pandas, Polars, DuckDB, Spark
// and parquet-go: both page versions; plain, dictionary, run-length, delta and byte-stream-split encodings; snappy,
// gzip and zstd. It refuses encrypted files, decimals, float16, int96 times, nested lists, DELTA_BYTE_ARRAY, LZ4 and
// Brotli. A sequence ends at the first error.
package parquet
