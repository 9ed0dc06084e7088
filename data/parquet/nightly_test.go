//go:build nightly

package parquet

const flipStep = 1
