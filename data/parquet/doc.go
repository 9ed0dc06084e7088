// Package parquet reads Parquet files into sets and batches of package data.
//
// It is a module of its own because it depends on decompressors. It reads what the writers of data frames (pyarrow,
// pandas, Polars, DuckDB, Spark, parquet-go) write by default, and more: pages of both versions; plain, dictionary,
// run-length, delta and byte-stream-split encodings; snappy, gzip and zstd. Encrypted files, decimals, floats
// of 16 bits, times of 96 bits, lists of lists, delta-encoded prefixes of texts, LZ4 and Brotli are errors.
//
// The pages are decoded here, and not by a library, because parquet-go makes buffers of the sizes that a file claims: a
// run of numbers of six bytes may claim 2^31 of them. Here at most 512 values of a column are made at a time, and
// everything else that has the file's sizes is counted against [Format].Limit before it is made.
package parquet
