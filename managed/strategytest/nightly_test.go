//go:build nightly

package strategytest

const parallelRuns = 50
