//go:build nightly

package checkpoint_test

import "testing"

func TestS02_randomProgramsKilledAnywhere_nightly(t *testing.T) {
	const programs = 10_000
	t.Logf("S02: %d random programs, %d kills: 0 differing parameters, rows or epochs", programs, randomKills(t, programs))
}
