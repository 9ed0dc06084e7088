//go:build nightly

package spmd_test

import "testing"

// All samples on two processes are bit-identical to two devices in one process.
func TestAllModels_onTwoRanks(t *testing.T) {
	onRanks(t, 2, func(folder string) { expect(t, folder, 2, programs(t, 2)) }, compare)
}

// On four processes, sums have another order than in one process, but one order on all ranks.
func TestAllModels_onFourRanks(t *testing.T) {
	onRanks(t, 4, func(folder string) { expect(t, folder, 4, programs(t, 4)) }, compare)
}
