package loop_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

type counters struct{ each, second int }

// B94: clu refuses a period of steps that is asked about with a gap, because it would miss its step. Here a schedule is
// asked from where it was last, so a gap loses nothing.
func TestB94_aGapInStepsIsNoError(t *testing.T) {
	every := loop.Every(loop.Steps(4))
	at := func(steps int64) loop.Elapsed { return loop.Elapsed{Steps: steps} }
	require.False(t, every.Due(at(0), at(3)))
	require.True(t, every.Due(at(3), at(9)), "4 and 8 lie in the gap: once")
	require.False(t, every.Due(at(9), at(11)))
	require.True(t, every.Due(at(11), at(12)))
}
