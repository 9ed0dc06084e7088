//go:build nightly

package strategytest

const parallelRuns = 50

// rankCounts are the numbers of processes of TestRanks.
var rankCounts = []int{2, 4}

func exchangesCounted(string, int) bool { return true }
