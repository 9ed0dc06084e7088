//go:build !nightly

package parquet

// flipStep: F28 changes one byte in each flipStep of the larger files.
const flipStep = 13
