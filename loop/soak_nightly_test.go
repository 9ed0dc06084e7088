//go:build nightly

package loop_test

func init() { soakTurns = 10_000_000 }
