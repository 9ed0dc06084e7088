//go:build !nightly

package strategytest

import (
	"slices"

	"github.com/lazo-ml/lazo/internal/install"
)

const parallelRuns = 5

// rankCounts are the numbers of processes of TestRanks.
var rankCounts = []int{2}

// likeJit are those of TestRanks_likeJit.
var likeJit = []int{4}

// mpis are those that start the jobs with faults. Each fault is repeated faultTimes times.
var mpis = []string{install.MPI}

const faultTimes = 1

// exchangesCounted selects models that are prone to a fault in which all examples are gathered, and a few others.
func exchangesCounted(model string, devices int) bool {
	few := []string{"LSTM", "GRU"}
	if devices == 4 {
		few = append(few, "LSTM, both directions", "LSTM, mask", "GRU, reset before", "SimpleRNN", "BatchNorm", "Conv, groups", "Attention, mask", "tied embeddings")
	}
	return slices.Contains(few, model)
}

// costCounted takes models whose programs the check's quick compilation leaves as they are.
func costCounted(model string) bool {
	return slices.Contains([]string{"Dense", "Conv, groups", "Attention"}, model)
}
