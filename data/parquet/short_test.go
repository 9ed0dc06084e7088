//go:build !nightly

package parquet

// flipStep: F28 changes each so many-th byte of the larger files.
const flipStep = 13
