//go:build nightly

package managed_test

func init() { stops = 20 }
