//go:build nightly

package strategytest

const parallelRuns = 50

// rankCounts are the numbers of processes of TestRanks.
var rankCounts = []int{2, 4}

// likeJit are those of TestRanks_likeJit.
var likeJit = []int{4, 8}

// killedIn are the phases in which TestF54_killedIn kills a rank. Each fault is repeated faultTimes times.
var killedIn = []string{"start", "joined", "compile", "step", "fetch", "save"}

const faultTimes = 20

func exchangesCounted(string, int) bool { return true }

func costCounted(string) bool { return true }
