//go:build nightly

package managed_test

func init() { soakSteps = 1_000_000 }
