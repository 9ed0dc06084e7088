//go:build nightly

package xla_test

func init() { soakRuns = 1_000_000 }
