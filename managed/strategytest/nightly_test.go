//go:build nightly

package strategytest

import "github.com/lazo-ml/lazo/internal/install"

const parallelRuns = 50

// rankCounts are the numbers of processes of TestRanks.
var rankCounts = []int{2, 4}

// likeJit are those of TestRanks_likeJit.
var likeJit = []int{4, 8}

// mpis are those that start the jobs with faults. Each fault is repeated faultTimes times.
var mpis = []string{install.MPI, install.MPICH}

const faultTimes = 20

func exchangesCounted(string, int) bool { return true }

func costCounted(string) bool { return true }
