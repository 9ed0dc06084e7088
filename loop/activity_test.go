package loop_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

// A hook of each kind ends a run by an error or by ErrStop at its first call. The run must not continue.
func TestF15_errorsAndStopsInEachKindOfHook(t *testing.T) {
	boom := errors.New("boom")
	ends := 0
	for _, row := range []struct {
		place string
		// calls is the number of calls of the hook if it asks to stop, and reason the reason of the end.
		calls  int
		reason loop.Reason
		steps  int64 // that are counted then
		failed int64 // steps that are counted after an error
	}{
		{"on", 1, loop.Stopped, 1, 0}, // on an error nothing was changed in the turn
		{"on func", 1, loop.Stopped, 1, 1},
		{"on turn", 1, loop.Stopped, 1, 1},
		{"at start", 1, loop.Stopped, 0, 0},
		{"at end", 1, loop.DataEnded, 2, 2},
		{"block", 1, loop.Stopped, 1, 0},
		{"watcher", 1, loop.Stopped, 1, 1},
		{"callback at the start", 1, loop.Stopped, 0, 0},
		{"callback of an entry", 1, loop.Stopped, 1, 1},
		{"watch", 1, loop.Stopped, 1, 1},
		{"data", 1, loop.Failed, 2, 2},
		{"end", 1, loop.Failed, 2, 2},
		{"evaluation's data", 1, loop.Failed, 1, 1},
		{"inner task", 2, loop.DataEnded, 2, 1}, // of two evaluations each stops after its first step
		{"inner watcher", 2, loop.DataEnded, 2, 1},
	} {
		where := hookKinds[slices.IndexFunc(hookKinds, func(k hook) bool { return k.place == row.place })]
		t.Run(row.place+" fails", func(t *testing.T) {
			calls := 0
			h := newHooks(row.place, func() error { calls++; return boom })
			result, err := h.loop.Run(t.Context(), 0, h.data, h.options...)
			require.ErrorIs(t, err, boom)
			require.ErrorContains(t, err, where.prefix())
			require.Equal(t, loop.Failed, result.Reason)
			require.Equal(t, row.failed, result.Elapsed.Steps)
			require.Equal(t, 1, calls)
			require.Equal(t, 1, h.ended)
			ends++
		})
		t.Run(row.place+" stops", func(t *testing.T) {
			calls := 0
			h := newHooks(row.place, func() error { calls++; return loop.ErrStop })
			result, err := h.loop.Run(t.Context(), 0, h.data, h.options...)
			require.Equal(t, row.reason, result.Reason)
			require.Equal(t, row.steps, result.Elapsed.Steps)
			require.Equal(t, row.calls, calls, "it stops in the same step")
			require.Equal(t, 1, h.ended)
			switch row.reason {
			case loop.Failed:
				require.ErrorContains(t, err, where.where)
			case loop.Stopped:
				require.ErrorContains(t, result.Stop, fmt.Sprintf("loop: step %d: %s: stop", where.step, where.where), "it says who it was")
				require.NoError(t, err)
				require.Equal(t, int(row.steps), result.State, "the other tasks of the turn still ran")
			default:
				require.NoError(t, err)
			}
			ends++
		})
	}
	t.Logf("F15: %d errors and stops, each in the same step, each finish phase ran", ends)
}
