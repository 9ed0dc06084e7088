//go:build nightly

package strategytest

const parallelRuns = 50

// rankCounts are the numbers of processes of TestRanks.
var rankCounts = []int{2, 4}
