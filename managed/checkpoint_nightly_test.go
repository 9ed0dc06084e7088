//go:build nightly

package managed_test

func init() { stops, stoppedSteps, restarts = 20, 1000, 100 }
